package record

import (
	"math"
	"time"
)

// Kind says what a container holds.
type Kind string

// The kinds of a container.
const (
	KindTrace     Kind = "trace"
	KindRecording Kind = "recording"
)

// UnitBytes is the Header.BlockUnit of blocks of bytes.
const UnitBytes = "bytes"

// Header opens a container. Of a converted trace it holds nothing that depends
// on where, when or from which path it was converted.
type Header struct {
	Kind Kind
	// BlockSize is the length of a prefix block in tokens, or of BlockUnit where
	// that is set; 0 where the trace has no blocks.
	BlockSize int
	// BlockUnit is UnitBytes where blocks are of the prompt's bytes, for want of
	// its tokens; "" means tokens.
	BlockUnit string
	// BytesPerToken is what was measured of the prompts where blocks are of
	// bytes, 0 where nothing could be.
	BytesPerToken float64
	// Capture is what was kept of the traffic that the trace was made from
	// ("lengths", "blocks", "full"), "" where that was no choice.
	Capture string
	// Source names the format that the trace came from ("mooncake", …).
	Source string
	// Unit is the source's unit of time, where one was given or known, so that
	// an export writes the source's own figures.
	Unit time.Duration
	// Origin is where on the source's clock the offset 0 lies: a duration from
	// the source's zero, or, where Wall is set, from the Unix epoch (UTC).
	Origin time.Duration
	Wall   bool
	// TimeBasis says what an arrival is: "arrival", or "unknown" where the
	// source does not document it.
	TimeBasis string
	// Turns says what later turns hold: "full", "increment", "mixed", or ""
	// where the trace has no sessions.
	Turns string
	// DelayMeaning is the source's definition of Delay, "" where no row has one.
	DelayMeaning string
	// PrefixSynthesised says that no row has block ids: what the prompts share
	// is not the source's.
	PrefixSynthesised bool
	// Quantum is the step that arrivals are rounded to, 0 where none shows.
	Quantum time.Duration
	// Layout names the columns of the source's rows in their order, where the
	// format leaves that to the file (CSV); nil otherwise.
	Layout []string
	// Namespace keeps the blocks of one trace apart from another's (hex).
	Namespace string
	// Seed is the seed of what was drawn at random.
	Seed int64
	// RunID tells the shards of one run from its repeats.
	RunID string
	// Run describes the run of a recording; nil in a trace.
	Run *Run
}

// bytesPerToken is taken where nothing was measured: that of English prose.
const bytesPerToken = 4

// TokensPerBlock is the length of a prefix block in tokens: of blocks of bytes
// about that, by the measured bytes of a token.
func (h *Header) TokensPerBlock() int {
	if h.BlockUnit != UnitBytes || h.BlockSize == 0 {
		return h.BlockSize
	}
	per := h.BytesPerToken
	if per <= 0 {
		per = bytesPerToken
	}
	return int(max(1, min(math.Round(float64(h.BlockSize)/per), math.MaxInt32)))
}

// Run is what a recording's header says of its run. Credentials are masked
// before it is filled.
type Run struct {
	// Start is the wall-clock time of the schedule's origin.
	Start time.Time
	URLs  []string
	// Proxy is the effective proxy, "" for none; Insecure says that server
	// certificates were not checked.
	Proxy    string
	Insecure bool
	Model    string
	API      string
	Prompt   string
	Sessions string
	Speed    float64
	Shard    int
	Shards   int
	Salt     string
	// MaxConcurrency is 0 where nothing limited it.
	MaxConcurrency int
	// MaxLag is the lateness p99 beyond which the schedule was not kept.
	MaxLag time.Duration
	// ServerBlockSize is the server's prefix block in tokens, 0 where unknown.
	ServerBlockSize int
	// Overhead is what the server's template adds to a prompt, in tokens.
	Overhead int64
	// Planned is the number of requests in the plan of this shard.
	Planned int64
	// Load says how the requests were made to arrive and what else was sent.
	Load Load
}

// Load is the part of Run that shapes the load. Rates are in requests a second;
// 0 and "" stand for what was not asked for.
type Load struct {
	// Arrival names the law of arrivals ("recorded", "poisson", …), RampUp that
	// of its growth from RampStart to RampEnd.
	Arrival    string
	Rate       float64
	Burstiness float64
	RampUp     string
	RampStart  float64
	RampEnd    float64
	// Overflow says what MaxConcurrency does with a request beyond it: "queue" or
	// "shed". MaxInFlight is the limit of those served and waiting.
	Overflow    string
	MaxInFlight int
	// Assistant is "live" where later turns held the server's own answers,
	// FailedTurn "stop" or "continue" where turns waited for others.
	Assistant  string
	FailedTurn string
	// MaxDelay bounds the delays of turns, 0 not at all.
	MaxDelay time.Duration
	// WarmUp is how many requests warmed the server up before the origin,
	// ProbeRate the rate of the probes beside the load.
	WarmUp    int64
	ProbeRate float64
	// Retries is how often a request may be made again, RetryMaxTime for how long.
	Retries      int
	RetryMaxTime time.Duration
	// Repeat, from 1, is which of Repeats runs this is; 0 of 0 for a single one.
	Repeat, Repeats int
}

// Footer closes a container that was closed in good order.
type Footer struct {
	Requests int64
	Results  int64
	Series   int64
	// Dropped counts what was left out on the way, by reason.
	Dropped map[string]int64
	// Interrupted says that the run ended before its plan did.
	Interrupted bool
	// Notes are sentences that a reader of the file should see.
	Notes []string
}

// Series is one metric of the server over the run, or a part of it: those of
// one name and the same labels belong together.
type Series struct {
	// Name and Labels as in the exposition format.
	Name   string
	Labels map[string]string
	// Times are offsets from the schedule's origin; Values runs along with it.
	Times  []time.Duration
	Values []float64
}
