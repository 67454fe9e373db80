package prefixcache

// VLLM counts the hit tokens of a vLLM engine with capacity usable blocks that
// serves one request at a time, requests from warmup on. Only full blocks are
// cached, and the block that holds a prompt's last token is always computed:
// at most ⌊(input-1)/block size⌋ blocks hit. An answer takes blocks of its own,
// which no other prompt shares, and so do prompt tokens that the trace's blocks
// do not cover. A request that does not fit into the pool at all is refused by
// the engine: it hits nothing and changes nothing.
func (s *Sequence) VLLM(capacity, warmup int) int64 {
	return s.vllm(capacity, warmup, &workspace{})
}

func (s *Sequence) vllm(capacity, warmup int, w *workspace) int64 {
	if capacity < 1 {
		return 0
	}
	p := &w.pool
	p.reset(capacity, w.zeros(s.unique))
	size := int64(s.blockSize)
	var hits int64
	s.each(warmup, func(r *request) {
		run := p.serve(r, size)
		if r.measured {
			hits += s.hitTokens(run, r.input)
		}
	})
	return hits
}

// runPool has the rules of a VLLMPool for one request at a time, on blocks that
// are numbers of a Sequence. Then every block is free between two requests, and
// the queue is: the empty blocks, then those with content in the order in which
// they were given back. The latter is a log with gaps, for a hit takes its
// block out of the middle.
type runPool struct {
	capacity int64
	empty    int64
	// log[head:] is the queue: a block's number, or own and a count of blocks
	// that nobody shares, which may be 0.
	log  []uint64
	head int
	base uint32 // place of log[0]
	// first is the place + 1 of the copy of each block that look-ups find, 0
	// where there is none; more are those of younger copies, in their order.
	first []uint32
	more  map[uint32][]uint32
}

// own marks an entry of blocks that nobody shares.
const own = 1 << 63

// reset empties the pool; first is all zeros, one for each block number.
func (p *runPool) reset(capacity int, first []uint32) {
	p.capacity, p.empty = int64(capacity), int64(capacity)
	p.log, p.head, p.base, p.first = p.log[:0], 0, 0, first
	p.more = map[uint32][]uint32{}
}

// serve runs one request from its prompt to its last token and gives the
// number of blocks that hit.
func (p *runPool) serve(r *request, size int64) (run int) {
	// The last token of an answer is never fed back, so it is not in the cache.
	tokens := r.input + max(r.output-1, 0)
	need := (tokens + size - 1) / size
	if need > p.capacity {
		return 0
	}
	known := r.blocks[:min(r.input/size, int64(len(r.blocks)))] // full ones
	usable := int(min(max(r.input-1, 0)/size, int64(len(known))))
	for run < usable && p.first[known[run]] != 0 {
		p.log[p.first[known[run]]-1-p.base] = own
		run++
	}
	p.take(need - int64(run))
	if need > tokens/size {
		p.empty++ // the last block is not full: it goes back to the front
	}
	if n := tokens/size - int64(len(known)); n > 0 {
		p.log = append(p.log, own|uint64(n))
	}
	for i := len(known) - 1; i >= 0; i-- {
		b := known[i]
		p.log = append(p.log, uint64(b))
		place := p.base + uint32(len(p.log))
		if i < run || p.first[b] == 0 {
			p.first[b] = place
		} else {
			p.more[b] = append(p.more[b], place)
		}
	}
	p.compact()
	return run
}

// take takes n blocks from the front of the queue, evicting what they held.
func (p *runPool) take(n int64) {
	e := min(n, p.empty)
	p.empty -= e
	for n -= e; n > 0; {
		entry := p.log[p.head]
		if entry&own == 0 {
			p.evict(uint32(entry))
			n--
		} else if count := int64(entry &^ own); count > n {
			p.log[p.head] = entry - uint64(n)
			return
		} else {
			n -= count
		}
		p.head++
	}
}

// evict drops the copy of a block at the head of the queue.
func (p *runPool) evict(b uint32) {
	isFirst := p.first[b] == p.base+uint32(p.head)+1
	if isFirst {
		p.first[b] = 0
	}
	if len(p.more) == 0 {
		return
	}
	younger, ok := p.more[b]
	if !ok {
		return
	}
	if isFirst {
		p.first[b] = younger[0]
	}
	if len(younger) == 1 {
		delete(p.more, b)
	} else {
		p.more[b] = younger[1:]
	}
}

// compact gives back the log's used part once that is most of it.
func (p *runPool) compact() {
	const least = 1 << 12
	if p.head < least || p.head < len(p.log)/2 {
		return
	}
	p.base += uint32(p.head)
	p.log = p.log[:copy(p.log, p.log[p.head:])]
	p.head = 0
}
