package analysis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"retrace/hashing/prefixcache"
	"retrace/internal/plural"
)

// CacheBenchSchema names the JSON form of a CacheBench.
const CacheBenchSchema = "retrace.bench-cache/1"

// CacheBench is how fast the cache models go through a trace.
type CacheBench struct {
	Schema    string           `json:"schema"`
	Requests  int64            `json:"requests"`
	Blocks    int64            `json:"blocks"`
	Unique    int64            `json:"unique_blocks"`
	BlockSize int              `json:"block_size"`
	Trials    int              `json:"trials"`
	Results   []CacheBenchItem `json:"results"`
}

// CacheBenchItem is one model at one capacity.
type CacheBenchItem struct {
	Policy prefixcache.Policy `json:"policy"`
	// CapacityBlocks and HitTokens do not exist for LRU, whose one pass gives
	// the hits of every capacity.
	CapacityBlocks Value `json:"capacity_blocks"`
	HitTokens      Value `json:"hit_tokens"`
	BlocksPerS     Stats `json:"blocks_per_s"`
	RequestsPerS   Stats `json:"requests_per_s"`
	NSPerBlock     Stats `json:"ns_per_block"`
}

// BenchCache measures the models of the options' policies at the options'
// capacities (none: 1/64, 1/8 and all of the different blocks) on the requests
// that were added, each trials times on one core after one pass that is not
// counted. Reading the trace and numbering its blocks are not part of it.
// Nothing can be added after it.
func (t *Trace) BenchCache(ctx context.Context, trials int) (*CacheBench, error) {
	if trials < 1 {
		return nil, fmt.Errorf("measure caches: found %d trials, expected 1 or more", trials)
	}
	why := t.noCache()
	if why == "" && t.sequence.Blocks() == 0 {
		why = "no request has prefix blocks"
	}
	if why != "" {
		return nil, errors.New("measure caches: " + why)
	}
	s := t.sequence
	s.Freeze()
	b := &CacheBench{
		Schema: CacheBenchSchema, Requests: int64(s.Requests()), Blocks: int64(s.Blocks()),
		Unique: int64(s.Unique()), BlockSize: s.BlockSize(), Trials: trials,
	}
	policies, capacities := t.opts.Policies, t.opts.Capacities
	if len(policies) == 0 {
		policies = prefixcache.Policies()
	}
	if len(capacities) == 0 {
		capacities = benchCapacities(s.Unique())
	}
	for _, p := range policies {
		list := capacities
		if p == prefixcache.PolicyLRU {
			list = list[:1]
		}
		for _, c := range list {
			item, err := b.measure(ctx, s, p, c)
			if err != nil {
				return nil, err
			}
			b.Results = append(b.Results, item)
		}
	}
	return b, nil
}

// benchCapacities are a small, a middling and an endless cache.
func benchCapacities(unique int) []int {
	var list []int
	for _, part := range []int{64, 8, 1} {
		if c := max(unique/part, 1); len(list) == 0 || c > list[len(list)-1] {
			list = append(list, c)
		}
	}
	return list
}

func (b *CacheBench) measure(ctx context.Context, s *prefixcache.Sequence, p prefixcache.Policy, capacity int) (CacheBenchItem, error) {
	item := CacheBenchItem{Policy: p}
	var blocks, requests, ns Sample
	for trial := range b.Trials + 1 {
		if err := ctx.Err(); err != nil {
			return item, err
		}
		start := time.Now()
		points, err := s.Curve([]prefixcache.Policy{p}, []int{capacity}, 0)
		took := time.Since(start)
		if err != nil {
			return item, err
		}
		if trial == 0 { // Optimal looks for the next uses once
			if p != prefixcache.PolicyLRU {
				item.CapacityBlocks, item.HitTokens = Some(float64(capacity)), Some(float64(points[0].HitTokens))
			}
			continue
		}
		took = max(took, time.Nanosecond)
		blocks.Add(float64(b.Blocks) / took.Seconds())
		requests.Add(float64(b.Requests) / took.Seconds())
		ns.Add(float64(took) / float64(b.Blocks))
	}
	item.BlocksPerS, item.RequestsPerS, item.NSPerBlock = blocks.Stats(), requests.Stats(), ns.Stats()
	return item, nil
}

// WriteJSON writes the report as indented JSON with a final newline.
func (b *CacheBench) WriteJSON(w io.Writer) error { return writeJSON(w, b) }

// WriteTable writes the report for people.
func (b *CacheBench) WriteTable(w io.Writer) error {
	p := &report{w: w}
	p.line("Cache models on %s, %s of %s, %s; medians of %s", plural.Of(b.Requests, "request"), plural.Of(b.Blocks, "block"),
		plural.Of(b.BlockSize, "token"), plural.Of(b.Unique, "different one"), plural.Of(b.Trials, "trial"))
	p.line("")
	var rows [][]string
	for _, r := range b.Results {
		capacity, hits := "every", absent
		if r.CapacityBlocks.OK {
			capacity, hits = strconv.FormatFloat(r.CapacityBlocks.V, 'f', 0, 64), strconv.FormatFloat(r.HitTokens.V, 'f', 0, 64)
		}
		rows = append(rows, []string{
			string(r.Policy), capacity, hits, figure(r.BlocksPerS.P50), figure(r.RequestsPerS.P50),
			figure(r.NSPerBlock.Min), figure(r.NSPerBlock.P50), figure(r.NSPerBlock.Max),
		})
	}
	p.table([]string{"policy", "blocks", "hit tokens", "blocks/s", "requests/s", "ns/block, min", "p50", "max"}, rows)
	return p.end("measurement")
}
