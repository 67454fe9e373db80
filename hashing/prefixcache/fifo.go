package prefixcache

// FIFO counts the hit tokens of a cache of capacity blocks that evicts the
// block which entered first, requests from warmup on.
func (s *Sequence) FIFO(capacity, warmup int) int64 {
	return s.fifo(capacity, warmup, &workspace{})
}

// fifo needs no queue: a block that entered as number k is there until block
// k + capacity enters.
func (s *Sequence) fifo(capacity, warmup int, w *workspace) int64 {
	if capacity < 1 {
		return 0
	}
	entered := w.zeros(s.unique) // as which number, 0 for never
	limit := uint64(capacity)
	var count uint64
	var hits int64
	held := func(b uint32) bool {
		k := uint64(entered[b])
		return k != 0 && count < k+limit
	}
	s.each(warmup, func(r *request) {
		run := 0
		for run < len(r.blocks) && held(r.blocks[run]) {
			run++
		}
		if r.measured {
			hits += s.hitTokens(run, r.input)
		}
		for _, b := range r.blocks[run:] {
			if !held(b) {
				count++
				entered[b] = uint32(count)
			}
		}
	})
	return hits
}
