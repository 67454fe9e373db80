package prefixcache

import (
	"fmt"
	"math"
)

// maxBlocks is the number of blocks that a Sequence can hold.
const maxBlocks = math.MaxUint32 - 1

// Sequence is the prefix blocks of a trace's requests, in its order. Fill it
// with Add, then ask for Ideal, LRU, FIFO or Optimal. It is for one goroutine.
type Sequence struct {
	blockSize int
	chain     chain
	blocks    list[uint32] // every block of every request, by its number in chain
	ends      list[uint32] // where each request's blocks end
	input     list[int64]  // tokens of each request's prompt
	output    list[int64]  // tokens of each request's answer, -1 where unknown
	unique    int
	longest   int
	next      []uint32 // for Optimal, made when first needed
}

// NewSequence starts a sequence of blocks of blockSize tokens.
func NewSequence(blockSize int) (*Sequence, error) {
	if blockSize < 1 {
		return nil, fmt.Errorf("make block sequence: found block size %d, expected 1 or more", blockSize)
	}
	return &Sequence{blockSize: blockSize}, nil
}

// Add appends one request: the ids of its prompt's blocks, all full but maybe
// the last, and its tokens. Where the input tokens are unknown (negative), all
// blocks count as full; a negative output is unknown and taken as 0.
func (s *Sequence) Add(ids []uint64, input, output int64) error {
	if s.blocks.n+len(ids) > maxBlocks {
		return fmt.Errorf("add request: more than %d blocks in a trace", maxBlocks)
	}
	if input < 0 {
		input = int64(len(ids)) * int64(s.blockSize)
	}
	parent := root
	for _, id := range ids {
		parent = s.chain.number(parent, id)
		s.blocks.add(parent)
	}
	s.ends.add(uint32(s.blocks.n))
	s.input.add(input)
	s.output.add(max(output, 0))
	s.unique = s.chain.ids.n
	s.longest = max(s.longest, len(ids))
	return nil
}

// Freeze gives back the memory that only Add needs. Add must not be called
// after it.
func (s *Sequence) Freeze() { s.chain = chain{} }

// BlockSize is the length of a block in tokens.
func (s *Sequence) BlockSize() int { return s.blockSize }

// Requests is the number of requests.
func (s *Sequence) Requests() int { return s.ends.n }

// Blocks is the number of blocks of all requests together.
func (s *Sequence) Blocks() int { return s.blocks.n }

// Unique is the number of different blocks.
func (s *Sequence) Unique() int { return s.unique }

// WarmupRequests is how many requests a warm-up of a share of all takes: ⌊share · n⌋.
func (s *Sequence) WarmupRequests(share float64) int {
	return min(max(int(math.Floor(share*float64(s.ends.n))), 0), s.ends.n)
}

// request is one request of a Sequence.
type request struct {
	blocks   []uint32 // overwritten by the next request
	start    int      // position of its first block among all blocks
	input    int64
	output   int64
	measured bool
}

// each calls f for every request in order; those before warmup are not measured.
func (s *Sequence) each(warmup int, f func(*request)) {
	buf := make([]uint32, s.longest)
	var r request
	for i := range s.ends.n {
		n := int(s.ends.at(i)) - r.start
		r.blocks = buf[:n]
		s.blocks.copyTo(r.blocks, r.start)
		r.input, r.output, r.measured = s.input.at(i), s.output.at(i), i >= warmup
		f(&r)
		r.start += n
	}
}

// hitTokens are the tokens of a run of leading blocks of a prompt.
func (s *Sequence) hitTokens(run int, input int64) int64 {
	return min(int64(run)*int64(s.blockSize), input)
}

// Tokens is the number of prompt tokens of the requests from warmup on.
func (s *Sequence) Tokens(warmup int) int64 {
	var sum int64
	for i := warmup; i < s.input.n; i++ {
		sum += s.input.at(i)
	}
	return sum
}
