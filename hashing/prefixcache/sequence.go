package prefixcache

import (
	"fmt"
	"math"
	"sync"
)

const (
	// maxSpaces is the number of name spaces that blocks can be told apart by.
	maxSpaces = 1 << 16
	// maxBlocks is the number of blocks and requests that a Sequence can hold.
	maxBlocks = math.MaxUint32 - maxSpaces
	// maxBlockSize lets the tokens of maxCapacity blocks be counted.
	maxBlockSize = 1 << 22
)

// flatBlocks is the number of blocks up to which a Sequence spells them out,
// which is faster to go through.
const flatBlocks = 1 << 22

// Sequence is the prefix blocks of a trace's requests, in its order. Fill it
// with Add, then ask for Ideal, LRU, FIFO, Optimal or VLLM. Add is for one
// goroutine; once frozen, a Sequence may be asked by several.
//
// A block stands for its whole path, so a request is kept as its last block
// and their count. A million requests of 8 blocks that nobody shares take some
// 95 MB, and 22 MB once frozen.
type Sequence struct {
	blockSize int
	group     int   // blocks of the trace that make one block here
	fine      chain // the trace's blocks, where a block here is several of them
	chain     chain
	last      list[uint32] // the last block of each request, by its number in chain
	ends      list[uint32] // where each request's blocks end
	input     list[uint32] // tokens of each request's prompt
	output    list[uint32] // tokens of each request's answer, 0 where unknown
	blocks    int
	unique    int
	longest   int
	flat      list[uint32] // all blocks of all requests, empty where they are many
	buf       []uint32     // for the blocks of the next request
	next      []uint32     // for Optimal, made when first needed
	nextOnce  sync.Once
}

// NewSequence starts a sequence of blocks of blockSize tokens.
func NewSequence(blockSize int) (*Sequence, error) { return NewGrouped(blockSize, 1) }

// NewGrouped starts a sequence of blocks that are group blocks of the trace
// each, of blockSize tokens. Of a prompt whose blocks are no multiple of group
// the last block is the blocks that are left, equal only to the same ones.
func NewGrouped(blockSize, group int) (*Sequence, error) {
	if blockSize < 1 || blockSize > maxBlockSize {
		return nil, fmt.Errorf("make block sequence: found block size %d, expected 1 to %d", blockSize, maxBlockSize)
	}
	if group < 1 || blockSize > maxBlockSize/group {
		return nil, fmt.Errorf("make block sequence: found groups of %d blocks of %d tokens, expected at most %d tokens", group, blockSize, maxBlockSize)
	}
	return &Sequence{blockSize: blockSize * group, group: group}, nil
}

// Add appends one request: the ids of its prompt's blocks, all full but maybe
// the last, and its tokens. Where the input tokens are unknown (negative), all
// blocks count as full; a negative output is unknown and taken as 0.
func (s *Sequence) Add(ids []uint64, input, output int64) error {
	return s.AddIn(0, ids, input, output)
}

// AddIn appends one request, as Add, whose blocks are those of a name space:
// requests of different spaces, from 0 to 65,535, share no block.
func (s *Sequence) AddIn(space int, ids []uint64, input, output int64) error {
	if space < 0 || space >= maxSpaces {
		return fmt.Errorf("add request: found name space %d, expected 0 to %d (a trace's blocks can be told apart for %d models)", space, maxSpaces-1, maxSpaces)
	}
	if s.blocks+len(ids)+s.last.n >= maxBlocks {
		return fmt.Errorf("add request: more than %d blocks and requests in a trace", maxBlocks)
	}
	if input > math.MaxUint32 || output > math.MaxUint32 {
		return fmt.Errorf("add request: found %d input and %d output tokens, expected at most %d", input, output, math.MaxUint32)
	}
	if input < 0 {
		input = int64(len(ids)) * int64(s.blockSize/s.group)
	}
	last, n := s.number(root-uint32(space), ids)
	s.last.add(last)
	s.ends.add(uint32(s.blocks))
	s.input.add(uint32(input))
	s.output.add(uint32(max(output, 0)))
	s.unique = s.chain.ids.n
	s.longest = max(s.longest, n)
	return nil
}

// number finds a prompt's last block, and how many there are.
func (s *Sequence) number(from uint32, ids []uint64) (last uint32, n int) {
	n = (len(ids) + s.group - 1) / s.group
	if cap(s.buf) < n {
		s.buf = make([]uint32, 2*n)
	}
	dst := s.buf[:n]
	defer s.keep(dst)
	if s.group == 1 {
		return s.chain.numberAll(dst, from, ids), n
	}
	last = from
	fine := from
	for i, id := range ids {
		fine = s.fine.number(fine, id)
		if (i+1)%s.group == 0 || i == len(ids)-1 {
			last = s.chain.number(last, uint64(fine))
			dst[i/s.group] = last
		}
	}
	return last, n
}

// keep spells blocks out as long as they are few.
func (s *Sequence) keep(blocks []uint32) {
	s.blocks += len(blocks)
	if s.blocks <= flatBlocks {
		s.flat.addAll(blocks)
	} else {
		s.flat = list[uint32]{}
	}
}

// Freeze gives back the memory that only Add needs. Add must not be called
// after it.
func (s *Sequence) Freeze() {
	s.chain.parts, s.chain.ids, s.fine, s.buf = [chainParts]chainPart{}, list[uint64]{}, chain{}, nil
}

// BlockSize is the length of a block in tokens.
func (s *Sequence) BlockSize() int { return s.blockSize }

// Requests is the number of requests.
func (s *Sequence) Requests() int { return s.ends.n }

// Blocks is the number of blocks of all requests together.
func (s *Sequence) Blocks() int { return s.blocks }

// Unique is the number of different blocks.
func (s *Sequence) Unique() int { return s.unique }

// WarmupRequests is how many requests a warm-up of a share of all takes: ⌊share · n⌋.
func (s *Sequence) WarmupRequests(share float64) int {
	return min(max(int(math.Floor(share*float64(s.ends.n))), 0), s.ends.n)
}

// request is one request of a Sequence.
type request struct {
	blocks   []uint32 // not to be changed, overwritten by the next request
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
		end := int(s.ends.at(i))
		r.blocks = s.blocksOf(i, r.start, buf)
		r.input, r.output, r.measured = int64(s.input.at(i)), int64(s.output.at(i)), i >= warmup
		f(&r)
		r.start = end
	}
}

// blocksOf are the blocks of request i, which start at a position among all
// blocks; buf has room for those of the longest request.
func (s *Sequence) blocksOf(i, start int, buf []uint32) []uint32 {
	end := int(s.ends.at(i))
	buf = buf[:end-start]
	if s.flat.n > 0 && start < end {
		page := s.flat.page(start)
		if len(page) >= len(buf) {
			return page[:len(buf)]
		}
		copy(buf[copy(buf, page):], s.flat.page(start+len(page)))
		return buf
	}
	s.chain.path.walk(buf, s.last.at(i))
	return buf
}

// hitTokens are the tokens of a run of leading blocks of a prompt.
func (s *Sequence) hitTokens(run int, input int64) int64 {
	return min(int64(run)*int64(s.blockSize), input)
}

// Tokens is the number of prompt tokens of the requests from warmup on.
func (s *Sequence) Tokens(warmup int) int64 {
	var sum int64
	for i := warmup; i < s.input.n; i++ {
		sum += int64(s.input.at(i))
	}
	return sum
}
