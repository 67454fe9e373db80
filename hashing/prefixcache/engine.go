package prefixcache

// VLLM counts the hit tokens of a vLLM engine with capacity usable blocks that
// serves one request at a time, requests from warmup on. Only full blocks are
// cached, and the block that holds a prompt's last token is always computed:
// at most ⌊(input-1)/block size⌋ blocks hit. An answer takes blocks of its own,
// which no other prompt shares. A request that does not fit into the pool at
// all is refused by the engine: it hits nothing and changes nothing.
func (s *Sequence) VLLM(capacity, warmup int) (int64, error) {
	if capacity < 1 {
		return 0, nil
	}
	e := engine{size: int64(s.blockSize), private: uint64(s.unique)}
	// A pool that holds all blocks of the trace at once never evicts, so a
	// larger one would only cost memory.
	all := 1
	s.each(0, func(r *request) { all += e.need(r) })
	var err error
	if e.pool, err = NewVLLMPool(min(capacity, all)); err != nil {
		return 0, err
	}
	var hits int64
	s.each(warmup, func(r *request) {
		run := e.serve(r)
		if r.measured {
			hits += s.hitTokens(run, r.input)
		}
	})
	return hits, nil
}

// engine serves requests with a pool of blocks.
type engine struct {
	pool    *VLLMPool
	size    int64
	private uint64 // hash of the next block of an answer
	hashes  []uint64
	blocks  []int32
}

// serve runs one request from its prompt to its last token and gives the
// number of blocks that hit.
func (e *engine) serve(r *request) (run int) {
	need := e.need(r)
	if need > e.pool.Len() {
		return 0
	}
	e.hashes = e.hashes[:0]
	for i := range int64(need) {
		if i < int64(len(r.blocks)) && (i+1)*e.size <= r.input {
			e.hashes = append(e.hashes, uint64(r.blocks[i]))
			continue
		}
		e.hashes = append(e.hashes, e.private)
		e.private++
	}
	usable := min(int(max(r.input-1, 0)/e.size), len(e.hashes))
	e.blocks = e.pool.Lookup(e.blocks[:0], e.hashes[:usable])
	run = len(e.blocks)
	e.pool.Touch(e.blocks)
	e.blocks, _ = e.pool.Take(e.blocks, need-run)
	for i := run; i < int(tokens(r)/e.size); i++ {
		e.pool.Commit(e.blocks[i], e.hashes[i])
	}
	e.pool.Release(e.blocks)
	return run
}

// tokens is what a request leaves in the cache. The last token of an answer is
// never fed back, so its keys and values are not computed.
func tokens(r *request) int64 { return r.input + max(r.output-1, 0) }

// need is the number of blocks that a request fills or begins.
func (e *engine) need(r *request) int { return int((tokens(r) + e.size - 1) / e.size) }
