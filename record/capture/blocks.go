package capture

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"retrace/record"
)

// BytesPerToken is how many bytes of text a block has for each token of the block
// size, where text is not turned into tokens: about as many as in English prose.
// A token's own id takes as many.
const BytesPerToken = 4

// digest is what a block is known by: its hash, chained with those before it.
type digest [sha256.Size]byte

// Numbering numbers the prefix blocks of the prompts of one file. Two prompts
// share their first n numbers exactly when they share their first n blocks. It
// is for one goroutine.
type Numbering struct {
	mac       hash.Hash
	blockSize int
	// unit is that of the first prompt: of text without tokens it is the byte.
	unit    string
	started bool
	numbers map[digest]uint64
	buf     []byte
	// bytes and tokens are of the text whose length in tokens is known.
	bytes, tokens int64
}

// NewNumbering starts a file with blocks of blockSize tokens.
func NewNumbering(salt Salt, blockSize int) *Numbering {
	return &Numbering{mac: salt.mac(), blockSize: blockSize, numbers: map[digest]uint64{}}
}

// Append appends the numbers of a prompt's blocks, the last of which may be
// partial. Where the file's blocks are of tokens, a prompt without has none: ok
// is false.
func (b *Numbering) Append(dst []uint64, p Prompt) (blocks []uint64, ok bool) {
	if !b.started {
		b.started = true
		if !p.IsTokens {
			b.unit = record.UnitBytes
		}
	}
	if !p.IsTokens && b.unit == "" {
		return dst, false
	}
	b.buf = b.buf[:0]
	for _, id := range p.Tokens {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, id)
	}
	if !p.IsTokens {
		b.buf = append(b.buf, p.Text...)
	}
	last := b.sum(nil, []byte("scope\x00"+p.Scope))
	for text := b.buf; len(text) > 0; {
		n := min(len(text), BytesPerToken*b.blockSize)
		last = b.sum(last[:], text[:n])
		dst = append(dst, b.number(last))
		text = text[n:]
	}
	return dst, true
}

func (b *Numbering) sum(before, block []byte) (d digest) {
	b.mac.Reset()
	_, _ = b.mac.Write(before) // a hash never fails
	_, _ = b.mac.Write(block)
	b.mac.Sum(d[:0])
	return d
}

func (b *Numbering) number(d digest) uint64 {
	n, ok := b.numbers[d]
	if !ok {
		n = uint64(len(b.numbers))
		b.numbers[d] = n
	}
	return n
}

// Measure takes the length of a prompt in tokens, as its server counted it.
func (b *Numbering) Measure(p Prompt, tokens int64) {
	if p.IsTokens || tokens <= 0 {
		return
	}
	b.bytes += int64(len(p.Text))
	b.tokens += tokens
}

// Describe adds to the header what a block is.
func (b *Numbering) Describe(h *record.Header) {
	h.PrefixSynthesised = len(b.numbers) == 0
	h.BlockSize, h.BlockUnit, h.BytesPerToken = 0, "", 0
	if h.PrefixSynthesised {
		return
	}
	h.BlockSize, h.BlockUnit = b.blockSize, b.unit
	if b.unit != record.UnitBytes {
		return
	}
	h.BlockSize *= BytesPerToken
	if b.tokens > 0 {
		h.BytesPerToken = float64(b.bytes) / float64(b.tokens)
	}
}
