package record

// blockTable gives the block ids of one chunk dense local numbers, in order
// of their first appearance. It is an open-addressing table that is emptied in
// no time: an entry below base belongs to an earlier chunk.
type blockTable struct {
	slots []uint32 // base + local number
	base  uint32
	ids   []uint64 // local number → block id
}

// reset forgets the chunk before.
func (t *blockTable) reset() {
	if t.slots == nil {
		t.slots = make([]uint32, 1<<10)
	}
	if t.base > 1<<31 {
		clear(t.slots)
		t.base = 0
	}
	t.base += uint32(len(t.ids))
	if t.base == 0 {
		t.base = 1
	}
	t.ids = t.ids[:0]
}

// slot is where the search for id starts. 16 successive ids share a cache
// line, the lines are scattered.
func (t *blockTable) slot(id uint64) uint64 {
	h := (id >> 4) * 0x9E3779B97F4A7C15
	return (h>>32<<4 | id&15) & uint64(len(t.slots)-1)
}

// number is the local number of id, a new one where it has not been seen in
// this chunk.
func (t *blockTable) number(id uint64) uint32 {
	mask := uint64(len(t.slots) - 1)
	for s := t.slot(id); ; s = (s + 1) & mask {
		v := t.slots[s]
		if v < t.base {
			t.slots[s] = t.base + uint32(len(t.ids))
			t.ids = append(t.ids, id)
			if 2*len(t.ids) > len(t.slots) {
				t.grow()
			}
			return uint32(len(t.ids) - 1)
		}
		if t.ids[v-t.base] == id {
			return v - t.base
		}
	}
}

func (t *blockTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	t.base = 1
	mask := uint64(len(t.slots) - 1)
	for k, id := range t.ids {
		s := t.slot(id)
		for t.slots[s] >= t.base {
			s = (s + 1) & mask
		}
		t.slots[s] = t.base + uint32(k)
	}
}

// numbers appends the local numbers of ids to dst.
func (t *blockTable) numbers(dst []uint32, ids []uint64) []uint32 {
	next := len(t.ids) // a local number that the next id may well have
	for _, id := range ids {
		if next < len(t.ids) && t.ids[next] == id {
			dst = append(dst, uint32(next))
			next++
			continue
		}
		k := t.number(id)
		dst = append(dst, k)
		next = int(k) + 1
	}
	return dst
}
