package analysis

import (
	"fmt"
	"io"
	"time"

	"retrace/hashing/prefixcache"
	"retrace/internal/plural"
)

// TraceSchema names the JSON form of a TraceReport.
const TraceSchema = "retrace.trace/1"

// TraceReport is the analysis of a trace. Its JSON is a contract:
// docs/analysis.md has every key with its unit.
type TraceReport struct {
	Schema   string `json:"schema"`
	Requests int64  `json:"requests"`
	// Sessions counts the different session names, 0 where requests have none.
	Sessions int64 `json:"sessions"`
	// DurationS is from the first arrival to the last.
	DurationS    Value      `json:"duration_s"`
	InputTokens  TokenStats `json:"input_tokens"`
	OutputTokens TokenStats `json:"output_tokens"`
	Arrivals     Arrivals   `json:"arrivals"`
	// PrefixCache is nil where the trace says nothing about prefixes; a
	// warning has the reason.
	PrefixCache *TracePrefix `json:"prefix_cache"`
	Source      string       `json:"source"`
	QuantumMS   Value        `json:"arrival_quantum_ms"`
	// DistinctArrivals is the number of different times among the arrivals.
	DistinctArrivals int64     `json:"distinct_arrivals"`
	RateProfile      []RateBin `json:"rate_profile"`
	Warnings         []string  `json:"warnings"`

	noCache string // why PrefixCache is nil
}

// TokenStats is the distribution of token counts, and their sum.
type TokenStats struct {
	Total Total `json:"total"`
	Stats
}

// TracePrefix is what prefix caches would hit on a trace.
type TracePrefix struct {
	BlockSize int `json:"block_size"`
	// Blocks and Unique are of the whole trace, warm-up included.
	Blocks int64   `json:"blocks"`
	Unique int64   `json:"unique_blocks"`
	Warmup float64 `json:"warmup"`
	// Ideal is a cache that never evicts; Curve has one point for each policy
	// and capacity. Both leave out the warm-up's requests.
	Ideal TraceIdeal   `json:"ideal"`
	Curve []CurvePoint `json:"curve"`
	// Models counts the different model names; ModelsShared says that their
	// blocks were taken for the same nevertheless.
	Models       int64 `json:"models"`
	ModelsShared bool  `json:"models_shared"`
	// TraceBlockSize is the block size of the trace, of which BlockSize is a
	// multiple.
	TraceBlockSize int `json:"trace_block_size"`
	// KVBytesPerToken is what the capacities in bytes were computed with.
	KVBytesPerToken Value `json:"kv_bytes_per_token"`
	// LRUReaches are the smallest LRU caches that hit 50, 90 and 99 % of what
	// an endless one does; none where that hits nothing.
	LRUReaches  []LRUReach      `json:"lru_reaches"`
	Reuse       TraceReuse      `json:"reuse"`
	Popularity  TracePopularity `json:"popularity"`
	TopPrefixes TopPrefixes     `json:"top_prefixes"`
}

// TraceIdeal are the hits of an endless cache, and its three hit rates.
type TraceIdeal struct {
	HitBlocks int64 `json:"hit_blocks"`
	HitTokens int64 `json:"hit_tokens"`
	// ByBlock counts a partial last block as one, ByToken is
	// min(run × block size, input tokens) by input tokens, ByFull looks at
	// full blocks alone.
	ByBlock Value `json:"block_hit_rate"`
	ByToken Value `json:"token_hit_rate"`
	ByFull  Value `json:"full_block_hit_rate"`
	// ServerTokens are the hits that a server would report: it caches full
	// blocks only and computes the block of a prompt's last token again.
	ServerTokens int64 `json:"server_hit_tokens"`
	ByServer     Value `json:"server_token_hit_rate"`
}

// CurvePoint is the hits of one policy at one capacity.
type CurvePoint struct {
	Policy         prefixcache.Policy `json:"policy"`
	CapacityBlocks int64              `json:"capacity_blocks"`
	CapacityTokens int64              `json:"capacity_tokens"`
	HitTokens      int64              `json:"hit_tokens"`
	TokenHitRate   Value              `json:"token_hit_rate"`
	// CapacityBytes does not exist where the bytes of a token are not known.
	CapacityBytes Value `json:"capacity_bytes"`
}

// Report computes the figures of all that was added. Nothing can be added
// after it.
func (t *Trace) Report() (*TraceReport, error) {
	arrivals := t.timed()
	rep := &TraceReport{
		Schema:           TraceSchema,
		Requests:         t.requests,
		Sessions:         int64(len(t.sessions)),
		InputTokens:      t.input.report(),
		OutputTokens:     t.output.report(),
		Arrivals:         arrivalsOf(arrivals),
		Source:           t.opts.Header.Source,
		DistinctArrivals: int64(distinct(arrivals)),
		RateProfile:      profile(arrivals),
	}
	if d, ok := span(arrivals); ok {
		rep.DurationS = Some(d.Seconds())
	}
	if q := t.opts.Header.Quantum; q > 0 {
		rep.QuantumMS = Some(float64(q) / float64(time.Millisecond))
	}
	if rep.noCache = t.noCache(); rep.noCache == "" {
		var err error
		if rep.PrefixCache, err = t.prefixCache(); err != nil {
			return nil, err
		}
	}
	rep.Warnings = t.warnings(rep, arrivals)
	return rep, nil
}

// noCache is why the trace says nothing about prefix caches, "" if it does.
func (t *Trace) noCache() string {
	switch {
	case t.opts.Header.PrefixSynthesised:
		return "the source has no prefix blocks: what its prompts share is not known, so this is no measurement of a cache"
	case t.sequence == nil:
		return "the trace has no prefix blocks"
	case t.requests > 0 && t.blockless == t.requests:
		return "no request has prefix blocks"
	}
	return ""
}

// warnings are the sentences that belong beside the figures.
func (t *Trace) warnings(rep *TraceReport, arrivals []time.Duration) []string {
	w := []string{}
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if q, ok := rep.QuantumMS.Get(); ok {
		add("arrivals quantised to %s ms: %s share %s; bursts within a step are the source's rounding",
			grouped(q), plural.Of(len(arrivals), "request"), plural.Of(rep.DistinctArrivals, "time"))
	}
	if n, d, median := idleHead(arrivals); n > 0 {
		add("the head is nearly idle: the first %d requests take %s s, a rate of %s/s, where the median is %s/s; "+
			"start later with --start", n, figure(Some(d.Seconds())), figure(Ratio(float64(n), d.Seconds())), figure(Some(median)))
	}
	if t.backwards > 0 {
		add("%s earlier than the one before", plural.Of(t.backwards, "arrival"))
	}
	if t.delayOnly > 0 {
		add("%s with a delay after the parent's end instead of an arrival, in no figure of arrivals", plural.Of(t.delayOnly, "request"))
	}
	if t.increments > 0 {
		add("%s %s only what is new in the session: tokens are those of the new parts, "+
			"prefix blocks are those of the session so far, without the answers",
			plural.Of(t.increments, "turn"), plural.Pick(t.increments, "holds", "hold"))
	}
	if rep.noCache != "" {
		add("no prefix-cache analysis: %s", rep.noCache)
	} else if t.blockless > 0 {
		add("%s without prefix blocks, which hit nothing", plural.Of(t.blockless, "request"))
	}
	return w
}

// JSON is the report as indented JSON with a final newline.
func (rep *TraceReport) JSON() ([]byte, error) { return marshal(rep) }

// WriteJSON writes JSON's bytes to w.
func (rep *TraceReport) WriteJSON(w io.Writer) error { return writeJSON(w, rep) }
