package prompt

import "math/bits"

// shards is the number of tables of a hashMap: each grows by itself, so that
// growing never doubles the whole.
const shards = 64

// hashMap maps 64-bit hashes to lengths in six bytes a hash (ten where it
// keeps lengths) plus a quarter of free room.
//
// It does not keep the lowest 10 bits of a hash. With n hashes in it, one that is
// absent is taken for present with odds of n in 2^54: 4 in 10^10 at 8,000,000.
type hashMap struct {
	tables [shards]table
	// lengths says whether values are kept.
	lengths bool
}

// get returns the length under the hash, and whether there is one.
func (m *hashMap) get(hash uint64) (length uint32, found bool) {
	t := &m.tables[hash>>58]
	if t.used == 0 {
		return 0, false
	}
	i, found := t.find(stored(hash))
	if found && m.lengths {
		length = t.value[i]
	}
	return length, found
}

// put stores the length under the hash.
func (m *hashMap) put(hash uint64, length uint32) {
	t := &m.tables[hash>>58]
	if t.used >= len(t.high)*7/8 {
		t.grow(m.lengths)
	}
	rest := stored(hash)
	i, found := t.find(rest)
	if !found {
		t.used++
		t.high[i], t.low[i] = uint32(rest>>16), uint16(rest)
	}
	if m.lengths {
		t.value[i] = length
	}
}

// stored is what a table keeps of a hash, 48 bits and never 0, which marks a
// free slot.
func stored(hash uint64) uint64 { return max(hash<<6>>16, 1) }

// table is an open-addressing table with linear probing, in which a hash's
// place follows from its highest 32 stored bits, for any number of slots.
type table struct {
	high  []uint32
	low   []uint16
	value []uint32
	used  int
}

// find returns the slot that holds rest, or the free one where it belongs.
func (t *table) find(rest uint64) (slot int, found bool) {
	high, low := uint32(rest>>16), uint16(rest)
	at, _ := bits.Mul32(high, uint32(len(t.high)))
	for i := int(at); ; {
		switch {
		case t.high[i] == high && t.low[i] == low:
			return i, true
		case t.high[i] == 0 && t.low[i] == 0:
			return i, false
		}
		if i++; i == len(t.high) {
			i = 0
		}
	}
}

// grow moves to a table a third larger.
func (t *table) grow(lengths bool) {
	size := max(16, len(t.high)*4/3)
	next := table{high: make([]uint32, size), low: make([]uint16, size), used: t.used}
	if lengths {
		next.value = make([]uint32, size)
	}
	for i, high := range t.high {
		rest := uint64(high)<<16 | uint64(t.low[i])
		if rest == 0 {
			continue
		}
		j, _ := next.find(rest)
		next.high[j], next.low[j] = high, t.low[i]
		if lengths {
			next.value[j] = t.value[i]
		}
	}
	*t = next
}
