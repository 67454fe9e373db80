package prompt

import (
	"encoding/binary"
	"slices"
)

// chunk is how many indices are spelt at a time: few enough to stay in the
// first-level cache.
const chunk = 512

// AppendTokens appends the prompt as a JSON array of token ids, "[1,2,3]".
func (m *Maker) AppendTokens(dst []byte, p Prompt) []byte {
	var buf [chunk]uint32
	dst = append(slices.Grow(dst, m.MaxTokensLen(p)+8), '[')
	n, out := len(dst), dst[:cap(dst)]
	for c := (cursor{segs: p.segs}); c.more(); {
		for _, i := range m.tokens.next(&c, &buf) {
			d := m.digits[i]
			binary.LittleEndian.PutUint64(out[n:], d)
			n += int(d >> 56)
		}
	}
	if p.tokens > 0 {
		n-- // the last comma
	}
	out[n] = ']'
	return out[:n+1]
}

// MaxTokensLen is the most bytes that AppendTokens appends for the prompt.
func (m *Maker) MaxTokensLen(p Prompt) int { return p.tokens*m.digitsMax + 2 }

// AppendTokenIDs appends the prompt's token ids.
func (m *Maker) AppendTokenIDs(dst []uint32, p Prompt) []uint32 {
	var buf [chunk]uint32
	dst = slices.Grow(dst, p.tokens)
	for c := (cursor{segs: p.segs}); c.more(); {
		for _, i := range m.tokens.next(&c, &buf) {
			dst = append(dst, m.ids[i])
		}
	}
	return dst
}

// AppendText appends the prompt as text: as many words as it has tokens,
// joined by one space. The bytes are a-z and spaces alone, so they may stand
// between the quotes of a JSON string as they are.
func (m *Maker) AppendText(dst []byte, p Prompt) []byte {
	var buf [chunk]uint32
	start := len(dst)
	for c := (cursor{segs: p.segs}); c.more(); {
		indices := m.words.next(&c, &buf)
		dst = slices.Grow(dst, len(indices)*len(word{}))
		n, out := len(dst), dst[:cap(dst)]
		for _, i := range indices {
			w := &m.table[i]
			copy(out[n:n+len(w)], w[:])
			n += int(w[len(w)-1])
		}
		if len(dst) == start {
			n = start + copy(out[start:], out[start+1:n]) // the first word's space
		}
		dst = out[:n]
	}
	return dst
}

// cursor is a place in a list of segments, none of them empty.
type cursor struct {
	segs []Segment
	from int
}

// more says whether anything is left.
func (c *cursor) more() bool { return len(c.segs) > 0 }

// next spells what follows the cursor into buf, as far as a chunk and the
// segment go, and moves the cursor behind it.
func (s *speller) next(c *cursor, buf *[chunk]uint32) []uint32 {
	seg := c.segs[0]
	part := buf[:min(chunk, int(seg.N)-c.from)]
	s.spell(part, seg.Kind, seg.Key, c.from)
	if c.from += len(part); c.from == int(seg.N) {
		c.segs, c.from = c.segs[1:], 0
	}
	return part
}
