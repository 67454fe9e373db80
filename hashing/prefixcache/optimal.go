package prefixcache

// never is the next use of a block that is not used again.
const never = ^uint32(0)

// nextUses gives the position of the next occurrence of each position's block.
func (s *Sequence) nextUses() []uint32 {
	s.nextOnce.Do(func() { s.next = s.findNextUses() })
	return s.next
}

func (s *Sequence) findNextUses() []uint32 {
	seen := make([]uint32, s.unique) // position + 1 of the latest occurrence
	next := make([]uint32, s.blocks)
	s.each(0, func(r *request) {
		for i, b := range r.blocks {
			at := uint32(r.start + i)
			if p := seen[b]; p != 0 {
				next[p-1] = at
			}
			seen[b] = at + 1
			next[at] = never
		}
	})
	return next
}

// Optimal counts the hit tokens of a cache of capacity blocks under Belady's
// policy, requests from warmup on.
func (s *Sequence) Optimal(capacity, warmup int) int64 {
	return s.optimal(capacity, warmup, &workspace{})
}

// optimal keeps a set of positions: a block that is held is known
// by its next use alone, so it is there if its own position is in the set.
// Blocks without a next use never count and are the first to go; the set leaves
// them out, which changes no hit.
func (s *Sequence) optimal(capacity, warmup int, w *workspace) int64 {
	if capacity < 1 {
		return 0
	}
	next := s.nextUses()
	held := w.positions(len(next))
	size := 0
	var hits int64
	s.each(warmup, func(r *request) {
		end := r.start + len(r.blocks)
		if r.measured {
			run := 0
			for run < len(r.blocks) && held.has(r.start+run) {
				run++
			}
			hits += s.hitTokens(run, r.input)
		}
		for at := r.start; at < end; at++ {
			if held.has(at) {
				held.clear(at)
				size--
			}
			use := next[at]
			if use == never {
				continue
			}
			if size == capacity {
				latest := held.max()
				if int(use) > latest {
					continue
				}
				held.clear(latest)
				size--
			}
			held.set(int(use))
			size++
		}
	})
	return hits
}
