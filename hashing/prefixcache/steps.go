package prefixcache

// steps adds up the hits of LRU caches: steps[d] is what a cache of d blocks
// hits more than one of d-1 blocks does, kept as differences, so that a row of
// equal steps is two numbers.
type steps struct {
	size        int64 // tokens of a block
	differences []int64
	top         int // the largest distance
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
		s.differences[at] -= min(lack, s.size)
		s.differences[at+1] += min(lack, s.size)
		lack -= s.size
	}
	s.top = max(s.top, dist+n-1)
}

// curve is the sum of the steps.
func (s *steps) curve() *LRUCurve {
	hits := s.differences[:s.top+1]
	var step, sum int64
	end := 1 // distances that hit no token are no steps
	for i, difference := range hits {
		if step += difference; step != 0 {
			sum += step
			end = i + 1
		}
		hits[i] = sum
	}
	return &LRUCurve{hits: hits[:end]}
}
