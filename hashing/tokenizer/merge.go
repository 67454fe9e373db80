package tokenizer

import (
	"math/bits"
	"sync"
)

// merges finds the merge of two tokens: a table with open addressing.
type merges struct {
	slots []mergeSlot
	shift int
	used  int
}

// mergeSlot is one merge: the pair, the rank plus one (0 in a free slot), and
// what comes of it.
type mergeSlot struct {
	pair uint64
	rank uint32
	id   uint32
}

// newMerges makes a table for about n merges.
func newMerges(n int) *merges {
	m := &merges{}
	m.resize(max(n, 8))
	return m
}

func (m *merges) resize(n int) {
	size := bits.Len(uint(2*n - 1))
	m.slots, m.shift = make([]mergeSlot, 1<<size), 64-size
}

func pairOf(left, right uint32) uint64 { return uint64(left)<<32 | uint64(right) }

// slot is where the pair is, or may be put.
func (m *merges) slot(pair uint64) *mergeSlot {
	at := int((pair ^ pair>>29) * 0x9e3779b97f4a7c15 >> m.shift)
	for {
		s := &m.slots[at]
		if s.rank == 0 || s.pair == pair {
			return s
		}
		if at++; at == len(m.slots) {
			at = 0
		}
	}
}

// put stores a merge; the last of equal pairs counts.
func (m *merges) put(pair uint64, rank, id uint32) {
	if 2*m.used >= len(m.slots) {
		old := m.slots
		m.resize(len(old))
		for _, s := range old {
			if s.rank != 0 {
				*m.slot(s.pair) = s
			}
		}
	}
	s := m.slot(pair)
	if s.rank == 0 {
		m.used++
	}
	*s = mergeSlot{pair: pair, rank: rank + 1, id: id}
}

// symbol is one token of a word on its way, in a linked list.
type symbol struct {
	id         uint32
	prev, next int32
}

// candidate is a merge that may be made: the pair that stood at pos.
type candidate struct {
	order uint64 // rank, then position
	pair  uint64
	id    uint32
}

// workspace is what a merge needs, kept for the next one.
type workspace struct {
	symbols []symbol
	heap    []candidate
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// gone marks a symbol that was merged into the one before it.
const gone = -2

// merge makes merges among the symbols, the one of the lowest rank first and of
// equal ones the first, until there is none, and appends what is left.
func (w *workspace) merge(dst []uint32, m *merges) []uint32 {
	w.heap = w.heap[:0]
	for i := range len(w.symbols) - 1 {
		w.consider(m, int32(i))
	}
	for len(w.heap) > 0 {
		c := w.pop()
		at := int32(uint32(c.order))
		left := &w.symbols[at]
		if left.next < 0 {
			continue // gone, or the last one now
		}
		right := &w.symbols[left.next]
		if pairOf(left.id, right.id) != c.pair {
			continue
		}
		left.id = c.id
		left.next, right.next = right.next, gone
		if left.next >= 0 {
			w.symbols[left.next].prev = at
			w.consider(m, at)
		}
		if left.prev >= 0 {
			w.consider(m, left.prev)
		}
	}
	for i := int32(0); i >= 0 && len(w.symbols) > 0; i = w.symbols[i].next {
		dst = append(dst, w.symbols[i].id)
	}
	return dst
}

// push appends a symbol.
func (w *workspace) push(id uint32) {
	n := int32(len(w.symbols))
	w.symbols = append(w.symbols, symbol{id: id, prev: n - 1, next: -1})
	if n > 0 {
		w.symbols[n-1].next = n
	}
}

// consider puts the merge of a symbol with the next one into the heap.
func (w *workspace) consider(m *merges, at int32) {
	s := &w.symbols[at]
	pair := pairOf(s.id, w.symbols[s.next].id)
	slot := m.slot(pair)
	if slot.rank == 0 {
		return
	}
	c := candidate{order: uint64(slot.rank)<<32 | uint64(at), pair: pair, id: slot.id}
	w.heap = append(w.heap, c)
	i := len(w.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if w.heap[up].order <= c.order {
			break
		}
		w.heap[i] = w.heap[up]
		i = up
	}
	w.heap[i] = c
}

// pop takes the first candidate from the heap.
func (w *workspace) pop() candidate {
	h := w.heap
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	w.heap = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		kid := 2*i + 1
		if kid >= len(h) {
			break
		}
		if kid+1 < len(h) && h[kid+1].order < h[kid].order {
			kid++
		}
		if last.order <= h[kid].order {
			break
		}
		h[i] = h[kid]
		i = kid
	}
	h[i] = last
	return first
}
