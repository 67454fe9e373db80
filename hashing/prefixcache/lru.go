package prefixcache

import "sort"

// LRUCurve holds the LRU hits of every capacity.
type LRUCurve struct {
	// hits[c] are the hit tokens of a cache of c blocks; the last one holds
	// for all larger ones.
	hits []int64
}

// HitTokens are the hit tokens of a cache of capacity blocks.
func (c *LRUCurve) HitTokens(capacity int) int64 {
	if capacity < 0 || len(c.hits) == 0 {
		return 0
	}
	return c.hits[min(capacity, len(c.hits)-1)]
}

// Enough is the smallest capacity that hits as much as any larger one.
func (c *LRUCurve) Enough() int { return max(len(c.hits)-1, 0) }

// Reaching is the smallest capacity that hits at least so many tokens, and
// whether there is one.
func (c *LRUCurve) Reaching(tokens int64) (capacity int, ok bool) {
	if tokens <= 0 {
		return 0, true
	}
	at := sort.Search(len(c.hits), func(i int) bool { return c.hits[i] >= tokens })
	return at, at < len(c.hits)
}

// Reuse is neighbouring blocks of a prompt that an endless cache hits and that
// the same earlier request was the last to use.
type Reuse struct {
	// Request uses blocks that Earlier had used before it; both are indices
	// from 0 in the order of the trace.
	Request, Earlier int
	// Blocks is how many there are.
	Blocks int
	// Distance is the smallest LRU cache in blocks that hits the first of them,
	// its stack distance. Each further one takes a cache of one block more.
	Distance int
}

// LRU counts the hit tokens of LRU caches of every capacity in one pass,
// requests from warmup on.
func (s *Sequence) LRU(warmup int) *LRUCurve { return s.LRUReuses(warmup, nil) }

// LRUReuses counts as LRU does and, where visit is not nil, tells it every
// reuse, in the order of the trace.
//
// A request touches its blocks from the last to the first, so a block's last
// touch is always later than that of every block which follows it in a prompt:
// the distances of a prompt's blocks grow from its first to its last, and the
// run that a cache of c blocks hits is simply the blocks with a distance of at
// most c. Blocks touched one after the other by one request and not since
// stand side by side on the stack, so one look-up serves them all.
func (s *Sequence) LRUReuses(warmup int, visit func(Reuse)) *LRUCurve {
	last := make([]uint32, s.unique) // time of last touch + 1, 0 for never
	stack := newStack(s.blocks)
	steps := newSteps(s.unique, int64(s.blockSize))
	index := -1
	s.each(warmup, func(r *request) {
		index++
		taken := 0 // blocks of this request that are off the stack, all touched later than the next
		for taken < len(r.blocks) && last[r.blocks[taken]] != 0 {
			n, high := neighbours(r.blocks[taken:], last)
			dist := stack.from(int(high-1)) + taken
			stack.clear(int(high)-n, int(high))
			taken += n
			if r.measured {
				steps.add(dist, n, min(int64(taken)*steps.size-r.input, int64(n)*steps.size))
				if visit != nil {
					visit(Reuse{Request: index, Earlier: s.requestAt(high - 1), Blocks: n, Distance: dist})
				}
			}
		}
		now := uint32(r.start + len(r.blocks))
		for i, b := range r.blocks {
			last[b] = now - uint32(i)
		}
		stack.push(len(r.blocks))
	})
	return steps.curve()
}

// neighbours counts the leading blocks that one request touched one after the
// other and none did since, and gives the first one's time + 1. Two requests
// never make such a row: the later one would have touched the first block of
// its prompt last, which has no block before it.
func neighbours(blocks []uint32, last []uint32) (n int, high uint32) {
	high = last[blocks[0]]
	for n = 1; n < len(blocks) && last[blocks[n]] == high-uint32(n) && high > uint32(n); n++ {
	}
	return n, high
}

// requestAt is the request whose blocks are at a position.
func (s *Sequence) requestAt(position uint32) int {
	return sort.Search(s.ends.n, func(i int) bool { return s.ends.at(i) > position })
}
