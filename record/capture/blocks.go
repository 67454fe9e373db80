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
	// texts says whether any prompt was text.
	texts   bool
	numbers idMap
	buf     []byte
	// bytes and tokens are of the text whose length in tokens is known.
	bytes, tokens int64
}

// NewNumbering starts a file with blocks of blockSize tokens.
func NewNumbering(salt Salt, blockSize int) *Numbering {
	return &Numbering{mac: salt.mac(), blockSize: blockSize, numbers: idMap{young: map[digest]uint64{}}}
}

// Settle says what the blocks are of, "" for tokens or record.UnitBytes, in
// place of the first prompt.
func (b *Numbering) Settle(unit string) { b.started, b.unit = true, unit }

// Remember bounds the memory to at least the last n blocks that came, and at
// most twice as many. A block that was forgotten gets another number when it
// comes again.
func (b *Numbering) Remember(n int) { b.numbers.keep = n }

// Forgotten is how many blocks are not remembered any more.
func (b *Numbering) Forgotten() int64 { return b.numbers.forgotten }

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
	b.texts = b.texts || !p.IsTokens
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
		dst = append(dst, b.numbers.of(last))
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
	h.PrefixSynthesised = b.numbers.next == 0
	h.BlockSize, h.BlockUnit, h.BytesPerToken = 0, "", 0
	if h.PrefixSynthesised {
		return
	}
	h.BlockSize = b.blockSize
	if b.unit != record.UnitBytes || !b.texts {
		return
	}
	h.BlockSize, h.BlockUnit = b.blockSize*BytesPerToken, b.unit
	if b.tokens > 0 {
		h.BytesPerToken = float64(b.bytes) / float64(b.tokens)
	}
}
