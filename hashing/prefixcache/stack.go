package prefixcache

import "math/bits"

// stack is a set of times, those of the last touches of all blocks, which
// counts the members from a time on in O(log n): a bit set under a Fenwick
// tree of the counts of its words (P. M. Fenwick, "A new data structure for
// cumulative frequency tables", Software: Practice and Experience 24(3), 1994).
// Times only come at the end, so the tree grows with them.
type stack struct {
	words []uint64
	tree  []int32 // tree[i] counts words i-(i&-i) to i-1; those up to full
	full  int     // words before it get no more times
	now   int     // the next time
	size  int
}

// newStack makes an empty set for times from 0 to n-1.
func newStack(n int) *stack {
	words := n/64 + 1
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

// push puts the next n times into the set.
func (s *stack) push(n int) {
	s.size += n
	for n > 0 {
		low := s.now % 64
		k := min(64-low, n)
		s.words[s.now/64] |= (1<<k - 1) << low
		s.now += k
		n -= k
		if s.now%64 == 0 {
			s.finish()
		}
	}
}

// finish counts the word that is full now.
func (s *stack) finish() {
	count := int32(bits.OnesCount64(s.words[s.full]))
	s.full++
	i := s.full
	for j := i - 1; j > i&(i-1); j &= j - 1 {
		count += s.tree[j]
	}
	s.tree[i] = count
}

// clear takes the times from a to b-1 out, all of which are in it.
func (s *stack) clear(a, b int) {
	s.size -= b - a
	for a < b {
		w, low := a/64, a%64
		n := min(64-low, b-a)
		s.words[w] ^= (1<<n - 1) << low
		for i := w + 1; i <= s.full; i += i & -i {
			s.tree[i] -= int32(n)
		}
		a += n
	}
}
