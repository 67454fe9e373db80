package simserver

import (
	"sync/atomic"
	"time"

	"retrace/hashing"
)

// call is one HTTP request as the engine sees it: the sequences of its
// prompts and choices, and the bell that rings when they have grown.
type call struct {
	seqs []*sequence
	bell chan struct{} // capacity 1
}

// ring tells the handler that there is something new.
func (c *call) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// sequence is one answer in the making. The first group of fields is fixed
// when it is submitted, the second is the engine's own, the third is shared.
type sequence struct {
	call      *call
	index     int // the choice's number
	promptLen int
	target    int // output tokens at its end
	maxTokens int
	choices   int    // n of its request
	finish    string // finish_reason at its end
	stop      string // stop_reason at its end
	textLen   int    // bytes of output text to show; -1: all
	seed      uint64 // of the output
	promptIDs []uint32
	priority  int64   // lower is earlier
	lead      int     // reasoning tokens before the answer
	script    *script // the answer's text where it is not free words
	pooled    bool    // no tokens are wanted, only that the prompt is computed
	tailKeys  []any   // extra keys of the blocks after the one that is open
	keyed     bool    // the open block has extra keys of its own

	hashes    []uint64       // of all full blocks known so far
	chain     *hashing.Chain // hashes the tokens to come
	blocks    []int32        // held, in the order of the tokens
	committed int            // leading blocks that have their hash
	computed  int            // tokens whose KV is there
	step      int            // tokens scheduled in this step
	output    int            // tokens made
	preempted int            // times
	times     sequenceTimes

	shown   atomic.Int64 // output tokens the handler may show
	cached  atomic.Int64 // prompt tokens found in the cache; -1 before it is known
	dropped atomic.Bool  // the client went away
}

// sequenceTimes are the moments of a sequence's life that metrics need.
type sequenceTimes struct {
	arrived, scheduled, first, last time.Time
}

// tokenID is the id of the i-th output token.
func (s *sequence) tokenID(t *tokenizer, i int) uint32 {
	if s.script != nil && i >= s.lead {
		return t.id([]byte(s.script.piece(i - s.lead)))
	}
	return t.ids[t.output(s.seed, i)]
}

// known is the number of tokens that the sequence has: prompt and output.
func (s *sequence) known() int { return s.promptLen + s.output }

// done says whether the sequence has all of its output.
func (s *sequence) done() bool { return s.output >= s.target }
