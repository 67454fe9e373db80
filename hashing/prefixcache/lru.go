package prefixcache

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

// LRU counts the hit tokens of LRU caches of every capacity in one pass,
// requests from warmup on.
//
// A request touches its blocks from the last to the first, so a block's last
// touch is always later than that of every block which follows it in a prompt:
// the distances of a prompt's blocks grow from its first to its last, and the
// run that a cache of c blocks hits is simply the blocks with a distance of at
// most c. Blocks touched one after the other by one request and not since
// stand side by side on the stack, so one look-up serves them all.
func (s *Sequence) LRU(warmup int) *LRUCurve {
	last := make([]uint32, s.unique) // time of last touch + 1, 0 for never
	stack := newStack(s.blocks)
	c := &LRUCurve{hits: []int64{0}}
	var now uint32
	s.each(warmup, func(r *request) {
		var dist int
		var before uint32 // last[] of the block before
		for i, b := range r.blocks {
			t := last[b]
			if t == 0 {
				break
			}
			if i > 0 && t == before-1 {
				dist++
			} else {
				dist = stack.from(int(t - 1))
			}
			before = t
			if r.measured {
				c.add(dist, s.hitTokens(i+1, r.input)-s.hitTokens(i, r.input))
			}
		}
		s.touch(r.blocks, last, stack)
		now += uint32(len(r.blocks))
		for i, b := range r.blocks {
			last[b] = now - uint32(i)
		}
		stack.set(int(now)-len(r.blocks), int(now))
	})
	for i := 1; i < len(c.hits); i++ {
		c.hits[i] += c.hits[i-1]
	}
	return c
}

// touch takes a request's blocks from the stack, neighbours together.
func (s *Sequence) touch(blocks []uint32, last []uint32, stack *stack) {
	for i := 0; i < len(blocks) && last[blocks[i]] != 0; {
		high := last[blocks[i]] // times high-1 down to low-1
		low := high
		for i++; i < len(blocks) && last[blocks[i]] == low-1 && low > 1; i++ {
			low--
		}
		stack.clear(int(low)-1, int(high))
	}
}

// add counts tokens that a cache of dist blocks or more hits.
func (c *LRUCurve) add(dist int, tokens int64) {
	if tokens == 0 {
		return
	}
	if n := dist + 1 - len(c.hits); n > 0 {
		c.hits = append(c.hits, make([]int64, n)...)
	}
	c.hits[dist] += tokens
}
