package hashing

import (
	"encoding/binary"
	"fmt"
)

// Chain hashes a growing sequence of tokens, block by block. It serialises
// each token as it comes and keeps nothing but the open block's bytes and the
// last digest. A Chain is for one goroutine.
type Chain struct {
	alg       Algorithm
	blockSize int
	root      [maxDigest]byte
	last      [maxDigest]byte

	buf    []byte // the open block: head, parent digest, tokens so far; with room to spare
	parent int    // where the parent's digest begins in buf
	head   int    // where the tokens begin in buf
	end    int    // where they end so far
	filled int    // tokens in the open block
	extra  []byte // the extra keys of the blocks to come, in CBOR
}

// MaxBlockSize bounds the block size of a Chain, in tokens.
const MaxBlockSize = 1 << 20

// maxToken is the length of the longest token in CBOR, slack what a token may
// be overwritten by when it is stored as one word.
const (
	maxToken = 9
	slack    = 8
)

// NewChain starts a chain over blocks of blockSize tokens at the root of the
// seed text (for vLLM: its PYTHONHASHSEED, used literally, or DefaultSeed).
func NewChain(alg Algorithm, blockSize int, seed string) (*Chain, error) {
	if alg.Size() == 0 {
		return nil, fmt.Errorf("start hash chain: found %v, expected a known algorithm", alg)
	}
	if blockSize < 1 || blockSize > MaxBlockSize {
		return nil, fmt.Errorf("start hash chain: block size: found %d, expected 1 to %d", blockSize, MaxBlockSize)
	}
	c := &Chain{alg: alg, blockSize: blockSize}
	c.alg.sum(&c.root, appendText(nil, seed))

	c.buf = appendHead(c.buf, cborArray, 3)
	c.buf = appendHead(c.buf, cborBytes, uint64(alg.Size()))
	c.parent = len(c.buf)
	c.buf = append(c.buf, c.root[:alg.Size()]...)
	c.buf = appendHead(c.buf, cborArray, uint64(blockSize))
	c.head = len(c.buf)
	c.buf = append(c.buf, make([]byte, blockSize*maxToken+slack)...)
	c.Reset()
	return c, nil
}

// Reset goes back to the root, with no tokens and no extra keys.
func (c *Chain) Reset() {
	c.last = c.root
	copy(c.buf[c.parent:], c.root[:c.alg.Size()])
	c.end, c.filled = c.head, 0
	c.extra = append(c.extra[:0], cborNull)
}

// CopyFrom makes c a copy of src, so that sequences which share a beginning
// hash it once. It reuses c's memory.
func (c *Chain) CopyFrom(src *Chain) {
	buf, extra := append(c.buf[:0], src.buf...), append(c.extra[:0], src.extra...)
	*c = *src
	c.buf, c.extra = buf, extra
}

// Algorithm is the chain's algorithm.
func (c *Chain) Algorithm() Algorithm { return c.alg }

// BlockSize is the number of tokens in a block.
func (c *Chain) BlockSize() int { return c.blockSize }

// Pending is the number of tokens after the last full block.
func (c *Chain) Pending() int { return c.filled }

// Digest is the digest of the last full block, or the root. The slice is the
// chain's own and changes with the next block.
func (c *Chain) Digest() []byte { return c.last[:c.alg.Size()] }

// SetExtra sets the extra keys of every block that is completed from now on:
// no keys are null, as for a request without any. A key is nil, a string, an
// integer, a []byte, or a []any of such (a Python tuple). vLLM 0.32 uses
// tagged tuples, e.g. []any{"cache_salt", "tenant-a"} (first block only);
// before, they were bare.
func (c *Chain) SetExtra(keys ...any) error {
	if len(keys) == 0 {
		c.extra = append(c.extra[:0], cborNull)
		return nil
	}
	return c.SetExtraTuple(keys)
}

// SetExtraTuple is SetExtra for a tuple that may be empty, which is not the
// same as null.
func (c *Chain) SetExtraTuple(keys []any) error {
	extra, err := appendList(nil, keys)
	if err != nil {
		return err
	}
	c.extra = extra
	return nil
}

// Append adds tokens and appends to dst the event value (last eight bytes of
// the digest, big-endian) of each block that they complete.
func (c *Chain) Append(dst []uint64, tokens []uint32) []uint64 {
	for len(tokens) > 0 {
		n := fill(c, tokens)
		if tokens = tokens[n:]; c.filled == 0 {
			dst = append(dst, c.Event())
		}
	}
	return dst
}

// Append64 is Append for ids beyond 32 bits.
func (c *Chain) Append64(dst []uint64, tokens []uint64) []uint64 {
	for len(tokens) > 0 {
		n := fill(c, tokens)
		if tokens = tokens[n:]; c.filled == 0 {
			dst = append(dst, c.Event())
		}
	}
	return dst
}

// AppendDigests adds tokens and appends to dst the whole digest, of
// Algorithm().Size() bytes, of each block that they complete.
func (c *Chain) AppendDigests(dst []byte, tokens []uint64) []byte {
	for len(tokens) > 0 {
		n := fill(c, tokens)
		if tokens = tokens[n:]; c.filled == 0 {
			dst = append(dst, c.Digest()...)
		}
	}
	return dst
}

// Event is the 64-bit value by which vLLM's KV-cache events name the last full
// block: the last eight bytes of its digest, big-endian.
func (c *Chain) Event() uint64 {
	return binary.BigEndian.Uint64(c.last[c.alg.Size()-8:])
}

// fill adds tokens to the open block until it is full, which closes it, or
// they end, and returns how many it took.
//
// Nearly all ids of a real vocabulary take three or five bytes, in no
// foreseeable order, so these are stored without a branch: as one word of
// eight bytes whose surplus the next token overwrites.
func fill[T uint32 | uint64](c *Chain, tokens []T) int {
	n := min(len(tokens), c.blockSize-c.filled)
	buf, end := c.buf, c.end
	for _, t := range tokens[:n] {
		v := uint64(t)
		if v < 1<<8 || v >= 1<<32 {
			end = len(appendHead(buf[:end], cborUint, v))
			continue
		}
		long := (v>>16 + 0xffff) >> 16 // 1 where it takes four bytes, 0 where two
		binary.BigEndian.PutUint64(buf[end:], (cborUint|25+long)<<56|v<<(40-16*long))
		end += int(3 + 2*long)
	}
	c.end = end
	c.filled += n
	if c.filled == c.blockSize {
		c.close()
	}
	return n
}

// close hashes the full block and begins the next one.
func (c *Chain) close() {
	block := append(c.buf[:c.end], c.extra...)
	if len(block) > len(c.buf) { // long extra keys: make room for the next time
		c.buf = append(block, make([]byte, slack)...)
	}
	c.alg.sum(&c.last, block)
	copy(c.buf[c.parent:], c.last[:c.alg.Size()])
	c.end, c.filled = c.head, 0
}
