package prompt

import "slices"

// Kind tells the name spaces of segment keys apart.
type Kind uint8

// The kinds of segments.
const (
	// Block is a prefix block of the trace; its key is the block's id.
	Block Kind = iota
	// Tail is what a request's blocks do not cover; its key is RequestKey.
	Tail
	// Output stands for the answer to an earlier turn of the session; its key
	// is the RequestKey of that turn.
	Output
	kinds
)

// Segment is a run of tokens: the first N of the endless text that Kind and
// Key name.
type Segment struct {
	Key  uint64
	N    uint32
	Kind Kind
}

// Prompt is a prompt that is planned but not rendered. The zero Prompt is
// empty. Copies share their segments, which nothing here changes in place.
type Prompt struct {
	segs   []Segment
	tokens int
}

// NewPrompt makes a prompt of the segments, leaving out empty ones. It keeps
// no reference to segs.
func NewPrompt(segs ...Segment) Prompt {
	var p Prompt
	for _, s := range segs {
		p.add(s)
	}
	return p
}

// add appends a segment, unless it is empty.
func (p *Prompt) add(s Segment) {
	if s.N == 0 {
		return
	}
	p.segs = append(p.segs, s)
	p.tokens += int(s.N)
}

// Tokens is the prompt's length in tokens (words, where it is rendered as text).
func (p Prompt) Tokens() int { return p.tokens }

// Size is the memory in bytes that the prompt's segments take, for those who
// hold many prompts and count.
func (p Prompt) Size() int { return len(p.segs) * segmentSize }

// segmentSize is what a Segment takes with its padding.
const segmentSize = 16

// Segments is a copy of the prompt's segments; none is empty.
func (p Prompt) Segments() []Segment { return slices.Clone(p.segs) }

// Truncate is the prompt's first n tokens, or the whole prompt where it has no
// more. The last segment that is kept may become partial.
func (p Prompt) Truncate(n int) Prompt {
	if n >= p.tokens {
		return p
	}
	if n <= 0 {
		return Prompt{}
	}
	end, sum := 0, 0
	for sum < n {
		sum += int(p.segs[end].N)
		end++
	}
	q := Prompt{segs: p.segs[:end:end], tokens: n}
	if over := sum - n; over > 0 {
		q.segs = slices.Clone(q.segs)
		q.segs[end-1].N -= uint32(over)
	}
	return q
}

// Cut drops n tokens from the end; a negative n drops none.
func (p Prompt) Cut(n int) Prompt { return p.Truncate(p.tokens - max(n, 0)) }
