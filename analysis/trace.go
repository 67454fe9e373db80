package analysis

import (
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
}

// Trace collects the requests of one trace. Feed it with Add in the order of
// the trace, then ask for Report once. It is for one goroutine.
type Trace struct {
	opts     TraceOptions
	requests int64
	sessions map[uint64]struct{} // XXH64 of the names
	input    tokenCounter
	output   tokenCounter

	arrivals   []time.Duration
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
	t := &Trace{opts: opts, sessions: map[uint64]struct{}{}}
	if opts.Header.BlockSize > 0 && !opts.Header.PrefixSynthesised {
		s, err := prefixcache.NewSequence(opts.Header.BlockSize)
		if err != nil {
			return nil, err
		}
		t.sequence = s
	}
	return t, nil
}

// Add takes one request; it keeps no reference to it.
func (t *Trace) Add(r *record.Request) error {
	t.requests++
	t.input.add(r.InputTokens)
	t.output.add(r.OutputTokens)
	if r.Session != "" {
		t.sessions[xxhash.Sum64String(r.Session)] = struct{}{}
	}
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
	return t.sequence.Add(ids, tokens, r.OutputTokens)
}

func (t *Trace) addArrival(r *record.Request) {
	if r.Arrival == record.NoTime {
		t.delayOnly++
		return
	}
	if n := len(t.arrivals); n > 0 && r.Arrival < t.arrivals[n-1] {
		t.backwards++
	}
	t.arrivals = append(t.arrivals, r.Arrival)
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
