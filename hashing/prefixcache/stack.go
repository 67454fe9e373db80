package prefixcache

import "math/bits"

// stack is a set of times, those of the last touches of all blocks, which
// counts the members from a time on in O(log n): a bit set under a Fenwick
// tree of the counts of its words (P. M. Fenwick, "A new data structure for
// cumulative frequency tables", Software: Practice and Experience 24(3), 1994).
type stack struct {
	words []uint64
	tree  []int32 // tree[i] counts words i-(i&-i) to i-1
	size  int
}

// newStack makes an empty set of times from 0 to n-1.
func newStack(n int) *stack {
	words := (n + 63) / 64
	return &stack{words: make([]uint64, words), tree: make([]int32, words+1)}
}

// from is the number of members at time t and later.
func (s *stack) from(t int) int {
	w := t / 64
	below := bits.OnesCount64(s.words[w] & (1<<(t%64) - 1))
	for i := w; i > 0; i &= i - 1 {
		below += int(s.tree[i])
	}
	return s.size - below
}

// set puts the times from a to b-1 into the set, none of which is in it.
func (s *stack) set(a, b int) { s.change(a, b, 1) }

// clear takes the times from a to b-1 out, all of which are in it.
func (s *stack) clear(a, b int) { s.change(a, b, -1) }

func (s *stack) change(a, b int, sign int32) {
	s.size += int(sign) * (b - a)
	for a < b {
		w, low := a/64, a%64
		n := min(64-low, b-a)
		s.words[w] ^= (1<<n - 1) << low
		for i := w + 1; i < len(s.tree); i += i & -i {
			s.tree[i] += sign * int32(n)
		}
		a += n
	}
}
