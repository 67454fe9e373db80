package prefixcache

// Ideal is what a cache that never evicts would have hit. Its hit rates are
// HitBlocks/Blocks, HitTokens/Tokens, FullHits/FullBlocks and
// ServerTokens/Tokens.
type Ideal struct {
	// HitBlocks of Blocks were in the cache; a partial last block counts as one.
	HitBlocks, Blocks int64
	// HitTokens of Tokens were in the cache, min(run × block size, input) a request.
	HitTokens, Tokens int64
	// FullHits of FullBlocks were in the cache, full blocks alone.
	FullHits, FullBlocks int64
	// ServerTokens are those that a server would find and report: it caches
	// full blocks only, and computes the block of each prompt's last token
	// again: block size × min(run, ⌊(input-1) / block size⌋) a request.
	ServerTokens int64
}

// Ideal counts the hits of an endless cache, requests from warmup on.
func (s *Sequence) Ideal(warmup int) Ideal {
	var sum Ideal
	var known uint32 // blocks are numbered as they come: all below were there before
	s.each(warmup, func(r *request) {
		run := 0
		for run < len(r.blocks) && r.blocks[run] < known {
			run++
		}
		if run < len(r.blocks) {
			known = max(known, r.blocks[len(r.blocks)-1]+1)
		}
		if r.measured {
			sum.add(run, len(r.blocks), r.input, int64(s.blockSize))
		}
	})
	return sum
}

// add counts a request of so many blocks, the first run of which hit.
func (sum *Ideal) add(run, blocks int, input, size int64) {
	full := min(input/size, int64(blocks))
	sum.HitBlocks += int64(run)
	sum.Blocks += int64(blocks)
	sum.HitTokens += min(int64(run)*size, input)
	sum.Tokens += input
	sum.FullHits += min(int64(run), full)
	sum.FullBlocks += full
	sum.ServerTokens += size * min(int64(run), max(input-1, 0)/size)
}
