package prefixcache

import "math/bits"

// positions is a set of whole numbers with a fast maximum: bit sets in levels,
// where a bit of a level says that a word of the level below has members.
type positions struct {
	levels [][]uint64 // levels[0] holds the members, the last is one word
}

// newPositions makes an empty set for numbers from 0 to n-1.
func newPositions(n int) *positions {
	p := &positions{}
	for {
		n = (n + 63) / 64
		p.levels = append(p.levels, make([]uint64, max(n, 1)))
		if n <= 1 {
			return p
		}
	}
}

func (p *positions) has(i int) bool { return p.levels[0][i>>6]>>(i&63)&1 != 0 }

func (p *positions) set(i int) {
	for _, level := range p.levels {
		w := &level[i>>6]
		before := *w
		*w |= 1 << (i & 63)
		if before != 0 {
			return
		}
		i >>= 6
	}
}

func (p *positions) clear(i int) {
	for _, level := range p.levels {
		w := &level[i>>6]
		*w &^= 1 << (i & 63)
		if *w != 0 {
			return
		}
		i >>= 6
	}
}

// max is the largest member of a set that has one.
func (p *positions) max() int {
	at := 0
	for l := len(p.levels) - 1; l >= 0; l-- {
		at = at<<6 | (63 - bits.LeadingZeros64(p.levels[l][at]))
	}
	return at
}
