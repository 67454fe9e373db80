package hashing

import (
	"encoding/binary"
	"fmt"
)

// Chain hashes a growing sequence of tokens, block by block. It keeps nothing
// but the open block's tokens and the last digest. A Chain is for one
// goroutine.
type Chain struct {
	alg       Algorithm
	blockSize int
	root      [maxDigest]byte
	last      [maxDigest]byte

	pending []uint64 // the open block's tokens
	extra   any      // the extra keys of the blocks to come
	block   block
	request *requestKeys // makes the extra keys, where it is there
}

// MaxBlockSize bounds the block size of a Chain, in tokens.
const MaxBlockSize = 1 << 20

// NewChain starts a chain over blocks of blockSize tokens at the root of the
// seed text (for vLLM: its PYTHONHASHSEED, used literally, or DefaultSeed).
func NewChain(alg Algorithm, blockSize int, seed string) (*Chain, error) {
	if !alg.known() {
		return nil, fmt.Errorf("start hash chain: found %v, expected a known algorithm", alg)
	}
	if blockSize < 1 || blockSize > MaxBlockSize {
		return nil, fmt.Errorf("start hash chain: block size: found %d, expected 1 to %d", blockSize, MaxBlockSize)
	}
	c := &Chain{alg: alg, blockSize: blockSize, block: newBlock(alg, blockSize)}
	text, err := alg.AppendValue(nil, seed)
	if err != nil {
		return nil, fmt.Errorf("start hash chain: %w", err)
	}
	alg.sum(&c.root, text)
	c.Reset()
	return c, nil
}

// Reset goes back to the root, with no tokens and no extra keys.
func (c *Chain) Reset() {
	c.last = c.root
	c.pending = c.pending[:0]
	_ = c.SetExtra() // no keys can be encoded
}

// CopyFrom makes c a copy of src, so that sequences which share a beginning
// hash it once. It reuses c's memory.
func (c *Chain) CopyFrom(src *Chain) {
	own := *c
	*c = *src
	c.pending = append(own.pending[:0], src.pending...)
	c.block.buf = append(own.block.buf[:0], src.block.buf...)
	c.block.tail = append(own.block.tail[:0], src.block.tail...)
	c.block.spare = own.block.spare
	if src.request != nil {
		copied := *src.request
		c.request = &copied
	}
}

// Algorithm is the chain's algorithm.
func (c *Chain) Algorithm() Algorithm { return c.alg }

// BlockSize is the number of tokens in a block.
func (c *Chain) BlockSize() int { return c.blockSize }

// Pending is the number of tokens after the last full block.
func (c *Chain) Pending() int { return len(c.pending) }

// Digest is the digest of the last full block, or the root. The slice is the
// chain's own and changes with the next block.
func (c *Chain) Digest() []byte { return c.last[:c.alg.Size()] }

// SetExtra sets the extra keys of every block that is completed from now on:
// no keys are None, as for a request without any. A key is nil, a bool, a
// string, a Constant, a []byte, an int, an int64, a uint64, a float64, or a
// []any of such, a Python tuple. SetRequest makes the keys that vLLM has.
func (c *Chain) SetExtra(keys ...any) error {
	if len(keys) == 0 {
		return c.SetExtraValue(nil)
	}
	return c.SetExtraValue(keys)
}

// SetExtraValue is SetExtra for what is not a tuple of at least one key, or
// may not be: an empty []any is an empty tuple, which is not None.
func (c *Chain) SetExtraValue(extra any) error {
	c.request = nil
	return c.setExtra(extra)
}

func (c *Chain) setExtra(extra any) error {
	if err := c.block.setExtra(extra); err != nil {
		return fmt.Errorf("set extra keys: %w", err)
	}
	c.extra = extra
	return nil
}

// Append adds tokens and appends to dst the event value (last eight bytes of
// the digest, big-endian) of each block that they complete.
func (c *Chain) Append(dst []uint64, tokens []uint32) []uint64 {
	return appendEvents(c, dst, tokens)
}

// Append64 is Append for ids beyond 32 bits.
func (c *Chain) Append64(dst []uint64, tokens []uint64) []uint64 {
	return appendEvents(c, dst, tokens)
}

func appendEvents[T uint32 | uint64](c *Chain, dst []uint64, tokens []T) []uint64 {
	for len(tokens) > 0 {
		n, full := take(c, tokens)
		if tokens = tokens[n:]; full {
			dst = append(dst, c.Event())
		}
	}
	return dst
}

// AppendDigests adds tokens and appends to dst the whole digest, of
// Algorithm().Size() bytes, of each block that they complete.
func (c *Chain) AppendDigests(dst []byte, tokens []uint64) []byte {
	for len(tokens) > 0 {
		n, full := take(c, tokens)
		if tokens = tokens[n:]; full {
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

// take adds tokens to the open block until it is full, or they end. It returns
// how many it took and whether the block is full.
func take[T uint32 | uint64](c *Chain, tokens []T) (n int, full bool) {
	if len(c.pending) == 0 && len(tokens) >= c.blockSize {
		hashBlock(c, tokens[:c.blockSize])
		return c.blockSize, true
	}
	n = min(len(tokens), c.blockSize-len(c.pending))
	for _, t := range tokens[:n] {
		c.pending = append(c.pending, uint64(t))
	}
	if len(c.pending) < c.blockSize {
		return n, false
	}
	hashBlock(c, c.pending)
	c.pending = c.pending[:0]
	return n, true
}

// hashBlock goes on to the digest of the next block.
func hashBlock[T uint32 | uint64](c *Chain, tokens []T) {
	if c.request != nil {
		c.request.next(c)
	}
	data := serialise(&c.block, &c.last, tokens)
	if data == nil {
		data = longPickle(c, tokens)
	}
	c.alg.sum(&c.last, data)
}

// longPickle is the pickle of a block that is longer than one frame.
func longPickle[T uint32 | uint64](c *Chain, tokens []T) []byte {
	data, err := appendPickle(nil, []any{c.Digest(), tokens, c.extra})
	if err != nil {
		panic(err) // setExtra has encoded the same values
	}
	return data
}
