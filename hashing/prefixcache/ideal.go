package prefixcache

// Ideal is what a cache that never evicts would have hit. Its three hit rates
// are HitBlocks/Blocks, HitTokens/Tokens and FullHits/FullBlocks.
type Ideal struct {
	// HitBlocks of Blocks were in the cache; a partial last block counts as one.
	HitBlocks, Blocks int64
	// HitTokens of Tokens were in the cache, min(run × block size, input) a request.
	HitTokens, Tokens int64
	// FullHits of FullBlocks were in the cache, full blocks alone.
	FullHits, FullBlocks int64
}

// Ideal counts the hits of an endless cache, requests from warmup on.
func (s *Sequence) Ideal(warmup int) Ideal {
	var sum Ideal
	var known uint32 // blocks are numbered as they come: all below were there before
	size := int64(s.blockSize)
	s.each(warmup, func(r *request) {
		run := 0
		for run < len(r.blocks) && r.blocks[run] < known {
			run++
		}
		for _, b := range r.blocks[run:] {
			known = max(known, b+1)
		}
		if !r.measured {
			return
		}
		full := min(r.input/size, int64(len(r.blocks)))
		sum.HitBlocks += int64(run)
		sum.Blocks += int64(len(r.blocks))
		sum.HitTokens += s.hitTokens(run, r.input)
		sum.Tokens += r.input
		sum.FullHits += min(int64(run), full)
		sum.FullBlocks += full
	})
	return sum
}
