package prompt

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
)

// ErrNoLength says that a request tells neither its input tokens nor blocks.
var ErrNoLength = errors.New("input tokens are unknown")

// Planner turns requests into prompts. It takes them in the order of the
// trace, a session's earlier turns before its later ones, and is not safe for
// concurrent use.
//
// Where turns are increments, a turn's prompt is the previous turn's prompt,
// then that turn's output, then what is new. For this a Planner remembers each
// turn of a session in a few bytes (two and up a block, less than 100 a turn
// beside its blocks); of traces with full prompts it remembers nothing.
type Planner struct {
	blockSize int
	history   *history
	orphans   int64
}

// NewPlanner makes a Planner for the trace that the header opens. Of the
// header it reads BlockSize, and Turns: "increment" and "mixed" traces need
// their earlier turns remembered.
func NewPlanner(h record.Header) *Planner {
	p := &Planner{blockSize: h.TokensPerBlock()}
	if h.Turns == "increment" || h.Turns == "mixed" {
		p.history = newHistory()
	}
	return p
}

// Orphans counts the increments whose earlier turn was not in what was
// planned, because a window left it out or the trace lacks it: their prompts
// are the new part alone.
func (p *Planner) Orphans() int64 { return p.orphans }

// Plan makes the request's whole prompt.
//
// Input beyond the blocks is unique to the request; blocks beyond the input
// are left out. Where the input's length is unknown the blocks count in full;
// without blocks Plan returns ErrNoLength.
func (p *Planner) Plan(r *record.Request) (Prompt, error) {
	t, err := p.turn(r)
	if err != nil {
		return Prompt{}, fmt.Errorf("plan prompt of request %s: %w", r.Key(), err)
	}
	if r.Increment && p.history == nil {
		p.orphans++ // the header denies increments
	}
	if p.history == nil || r.Session == "" && r.ID == "" && r.Parent == "" {
		var prompt Prompt
		t.appendNew(&prompt, p.blockSize)
		return prompt, nil
	}
	parent, found := p.history.parent(r)
	if r.Increment && !found && isLater(r) {
		p.orphans++
	}
	if r.Increment && found {
		t.parent = parent
	}
	prompt := p.history.prompt(t, p.blockSize)
	p.history.remember(r, t)
	return prompt, nil
}

// isLater says that something must have come before the request.
func isLater(r *record.Request) bool {
	return r.Parent != "" || r.Turn > 1 || r.Arrival == record.NoTime
}

// turn reads what is new in a request.
func (p *Planner) turn(r *record.Request) (turn, error) {
	t := turn{key: RequestKey(r), blocks: r.Blocks, output: uint32(clamp(r.OutputTokens))}
	if len(r.Blocks) > 0 && p.blockSize <= 0 {
		return turn{}, fmt.Errorf("%d blocks in a trace whose block size is not known", len(r.Blocks))
	}
	switch {
	case r.InputTokens > math.MaxInt32:
		return turn{}, fmt.Errorf("input of %d tokens, want at most %d", r.InputTokens, math.MaxInt32)
	case r.InputTokens >= 0:
		t.tokens = uint32(r.InputTokens)
	case len(r.Blocks) == 0:
		return turn{}, ErrNoLength
	default:
		t.tokens = uint32(clamp(int64(len(r.Blocks)) * int64(p.blockSize)))
	}
	if len(t.blocks) > 0 {
		whole := (int64(t.tokens) + int64(p.blockSize) - 1) / int64(p.blockSize)
		t.blocks = t.blocks[:min(int64(len(t.blocks)), whole)]
	}
	return t, nil
}

// clamp brings a count between 0, which stands for an unknown one too, and the
// most that a segment holds.
func clamp(n int64) int64 { return min(max(n, 0), math.MaxInt32) }

// RequestKey is the segment key of what is unique to the request: the XXH64 of
// its ID, or of its row where it has none.
func RequestKey(r *record.Request) uint64 {
	var b [64]byte
	if r.ID != "" {
		return xxhash.Sum64(append(append(b[:0], 'i'), r.ID...))
	}
	return xxhash.Sum64(strconv.AppendInt(append(b[:0], 'r'), r.Row, 10))
}
