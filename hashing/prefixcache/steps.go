package prefixcache

// steps adds up the hits of LRU caches: steps[d] is what a cache of d blocks
// hits more than one of d-1 blocks does, kept as differences, so that a row of
// equal steps is two numbers.
type steps struct {
	size        int64 // tokens of a block
	differences []int64
	missing     []missing
	top         int // the largest distance
}

// missing are tokens that a block lacks to be full.
type missing struct {
	dist   int
	tokens int64
}

func newSteps(unique int, size int64) *steps {
	return &steps{size: size, differences: make([]int64, unique+2)}
}

// add counts n blocks, the first of which hits from dist blocks on, the next
// from one more, of which the last ones lack so many tokens in all.
func (s *steps) add(dist, n int, lack int64) {
	s.differences[dist] += s.size
	s.differences[dist+n] -= s.size
	for at := dist + n - 1; lack > 0; at-- {
		s.missing = append(s.missing, missing{at, min(lack, s.size)})
		lack -= s.size
	}
	s.top = max(s.top, dist+n-1)
}

// curve is the sum of the steps.
func (s *steps) curve() *LRUCurve {
	hits := s.differences[:s.top+1]
	var step int64
	for i := range hits {
		step += hits[i]
		hits[i] = step
	}
	for _, m := range s.missing {
		hits[m.dist] -= m.tokens
	}
	end := 1 // distances that hit no token are no steps
	for i := 1; i < len(hits); i++ {
		if hits[i] != 0 {
			end = i + 1
		}
		hits[i] += hits[i-1]
	}
	return &LRUCurve{hits: hits[:end]}
}
