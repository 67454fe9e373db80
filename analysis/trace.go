package analysis

import (
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/hashing/prefixcache"
	"retrace/record"
)

// TraceOptions says how a trace is analysed.
type TraceOptions struct {
	// Header is the trace's.
	Header record.Header
	// Capacities of the cache curve, in blocks; none means a doubling sweep.
	Capacities []int
	// Policies of the cache curve; none means LRU.
	Policies []prefixcache.Policy
	// Warmup is the share of requests, from 0 to 1, that fill the cache and
	// are not counted.
	Warmup float64
	// CacheBlockSize is the block size of the caches in tokens, a multiple of
	// the trace's; 0 means the trace's own.
	CacheBlockSize int
	// ShareModels lets requests to different models and adapters hit each
	// other's blocks, which no server does.
	ShareModels bool
	// KVBytesPerToken is what the keys and values of a token take, 0 where
	// that is not known.
	KVBytesPerToken int64
	// Top is how many shared prefixes are listed by each order.
	Top int
}

// Trace collects the requests of one trace. Feed it with Add in the order of
// the trace, then ask for Report once. It is for one goroutine.
type Trace struct {
	opts     TraceOptions
	requests int64
	sessions map[uint64]uint32 // XXH64 of the names → number from 1 on
	inside   []uint32          // the session of each request, 0 for none; empty before the first session
	models   map[string]int    // name → number from 0 on
	input    tokenCounter
	output   tokenCounter

	arrivals   []time.Duration // of each request, record.NoTime where it has none
	latest     time.Duration   // the last one that is known
	backwards  int64
	delayOnly  int64
	increments int64
	blockless  int64

	sequence *prefixcache.Sequence // nil where there is nothing to look at
	open     conversations
}

// tokenCounter is the distribution of known token counts.
type tokenCounter struct {
	counter Counter
	total   Total
}

func (c *tokenCounter) add(n int64) {
	c.total.Add(n)
	if n != record.Unknown {
		c.counter.Add(n)
	}
}

func (c *tokenCounter) report() TokenStats {
	return TokenStats{Total: c.total, Stats: c.counter.Stats(1)}
}

// NewTrace starts the analysis of a trace.
func NewTrace(opts TraceOptions) (*Trace, error) {
	t := &Trace{opts: opts, sessions: map[uint64]uint32{}, models: map[string]int{}, latest: record.NoTime}
	size := opts.Header.TokensPerBlock()
	if size <= 0 || opts.Header.PrefixSynthesised {
		return t, nil
	}
	group := 1
	if n := opts.CacheBlockSize; n != 0 {
		if n < size || n%size != 0 {
			return nil, fmt.Errorf("found a block size of %d for the cache, expected a multiple of the trace's, such as %d, %d or %d",
				n, size, 2*size, 4*size)
		}
		group = n / size
	}
	var err error
	t.sequence, err = prefixcache.NewGrouped(size, group)
	return t, err
}

// Add takes one request; it keeps no reference to it.
func (t *Trace) Add(r *record.Request) error {
	t.requests++
	t.input.add(r.InputTokens)
	t.output.add(r.OutputTokens)
	t.addSession(r.Session)
	t.addArrival(r)
	if r.Increment {
		t.increments++
	}
	if len(r.Blocks) == 0 {
		t.blockless++
	}
	if t.sequence == nil {
		return nil
	}
	ids, tokens := t.open.prompt(r, t.opts.Header)
	return t.sequence.AddIn(t.space(r.Model), ids, tokens, r.OutputTokens)
}

// addSession notes the session of the next request.
func (t *Trace) addSession(name string) {
	if name == "" {
		if len(t.inside) > 0 {
			t.inside = append(t.inside, 0)
		}
		return
	}
	hash := xxhash.Sum64String(name)
	number := t.sessions[hash]
	if number == 0 {
		number = uint32(len(t.sessions)) + 1
		t.sessions[hash] = number
	}
	if len(t.inside) == 0 {
		t.inside = make([]uint32, t.requests-1, 2*t.requests)
	}
	t.inside = append(t.inside, number)
}

// space is the name space of a model's blocks.
func (t *Trace) space(model string) int {
	number, ok := t.models[model]
	if !ok {
		number = len(t.models)
		t.models[model] = number
	}
	if t.opts.ShareModels {
		return 0
	}
	return number
}

func (t *Trace) addArrival(r *record.Request) {
	t.arrivals = append(t.arrivals, r.Arrival)
	if r.Arrival == record.NoTime {
		t.delayOnly++
		return
	}
	if t.latest != record.NoTime && r.Arrival < t.latest {
		t.backwards++
	}
	t.latest = r.Arrival
}

// timed are the arrivals that are known.
func (t *Trace) timed() []time.Duration {
	if t.delayOnly == 0 {
		return t.arrivals
	}
	return slices.DeleteFunc(slices.Clone(t.arrivals), func(at time.Duration) bool { return at == record.NoTime })
}

// conversations remembers the prompts of sessions whose later turns hold only
// what is new, so that those can be looked at as whole prompts.
type conversations struct {
	turns map[string]*conversation
}

type conversation struct {
	ids    []uint64
	tokens int64
}

// prompt is the whole prompt of a request: its blocks, and its tokens. Of an
// increment it is the blocks of the session's turns so far, one after the
// other; the answers between them have no blocks, though their tokens count.
func (c *conversations) prompt(r *record.Request, h record.Header) (ids []uint64, tokens int64) {
	if r.Session == "" || !r.Increment && h.Turns != "increment" && h.Turns != "mixed" {
		return r.Blocks, r.InputTokens
	}
	if c.turns == nil {
		c.turns = map[string]*conversation{}
	}
	turn := c.turns[r.Session]
	if turn == nil || !r.Increment {
		turn = &conversation{}
		c.turns[r.Session] = turn
	}
	turn.ids = append(turn.ids, r.Blocks...)
	turn.tokens += max(r.InputTokens, 0)
	ids, tokens = turn.ids, turn.tokens
	turn.tokens += max(r.OutputTokens, 0)
	return ids, tokens
}
