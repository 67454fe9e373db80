package record

// blockTable gives the block ids of one chunk dense local numbers, in order
// of their first appearance.
//
// Ids that continue beyond all before them, as fresh ones do where ids are
// numbers, are kept as runs. The others are in an open-addressing table that
// is emptied in no time: an entry below base belongs to an earlier chunk.
type blockTable struct {
	ids   []uint64 // local number → block id
	max   uint64   // the largest of ids
	runs  []idRun  // by start, and by number
	slots []uint32 // base + local number
	base  uint32
	used  int    // slots
	hint  uint32 // local number of the first block of the latest request
}

// idRun is n successive ids with successive local numbers.
type idRun struct {
	start  uint64
	number uint32
	n      uint32
}

// maxRuns bounds the search among runs.
const maxRuns = 2 * maxRecords

// reset forgets the chunk before.
func (t *blockTable) reset() {
	if t.slots == nil {
		t.slots = make([]uint32, 1<<8)
	}
	if t.base > 1<<31 {
		clear(t.slots)
		t.base = 0
	}
	t.base = max(t.base+uint32(len(t.ids)), 1)
	t.ids, t.runs, t.max, t.used = t.ids[:0], t.runs[:0], 0, 0
	t.hint = 0
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
	next := uint32(len(t.ids))
	if next == 0 || id > t.max {
		t.max = id
		if last := len(t.runs) - 1; last >= 0 && t.runs[last].start+uint64(t.runs[last].n) == id && t.runs[last].number+t.runs[last].n == next {
			t.runs[last].n++
			t.ids = append(t.ids, id)
			return next
		}
		if len(t.runs) < maxRuns {
			t.runs = append(t.runs, idRun{start: id, number: next, n: 1})
			t.ids = append(t.ids, id)
			return next
		}
		return t.hashed(id)
	}
	if run := t.before(id); run != nil && id-run.start < uint64(run.n) {
		return run.number + uint32(id-run.start)
	}
	return t.hashed(id)
}

// before is the last run that does not start behind id, nil where all do.
func (t *blockTable) before(id uint64) *idRun {
	runs := t.runs
	if len(runs) == 0 || runs[0].start > id {
		return nil
	}
	first, n := 0, len(runs)
	for n > 1 { // it is among the n from first on
		half := n / 2
		if runs[first+half].start <= id {
			first += half
		}
		n -= half
	}
	return &runs[first]
}

// hashed finds or adds an id that is in no run.
func (t *blockTable) hashed(id uint64) uint32 {
	mask := uint64(len(t.slots) - 1)
	for s := t.slot(id); ; s = (s + 1) & mask {
		v := t.slots[s]
		if v < t.base {
			t.slots[s] = t.base + uint32(len(t.ids))
			t.ids = append(t.ids, id)
			if t.used++; 2*t.used > len(t.slots) {
				t.grow()
			}
			return uint32(len(t.ids) - 1)
		}
		if t.ids[v-t.base] == id {
			return v - t.base
		}
	}
}

// grow makes the table four times as large.
func (t *blockTable) grow() {
	old, base := t.slots, t.base
	t.slots = make([]uint32, 4*len(old))
	t.base = 1
	mask := uint64(len(t.slots) - 1)
	for _, v := range old {
		if v < base {
			continue
		}
		s := t.slot(t.ids[v-base])
		for t.slots[s] >= t.base {
			s = (s + 1) & mask
		}
		t.slots[s] = t.base + (v - base)
	}
}

// localRun is n blocks with successive local numbers.
type localRun struct{ start, n uint32 }

// numbers appends the local numbers of ids to dst, as runs.
func (t *blockTable) numbers(dst []localRun, ids []uint64) []localRun {
	t.ids = room(t.ids, len(ids))
	for first := true; len(ids) > 0; first = false {
		fresh := uint32(len(t.ids))
		start, n := t.hint, 1
		if !first || t.hint >= fresh || t.ids[t.hint] != ids[0] {
			start = t.number(ids[0])
		}
		if first {
			t.hint = start
		}
		if start == fresh {
			n += t.extend(ids)
		} else {
			known := t.ids[start:]
			known = known[:min(len(known), len(ids))]
			for n < len(known) && known[n] == ids[n] {
				n++
			}
		}
		dst = append(dst, localRun{start, uint32(n)})
		ids = ids[n:]
	}
	return dst
}

// extend lets the latest run go on as ids do, where ids[0], which is new, is
// its end; it is how many more ids that takes.
func (t *blockTable) extend(ids []uint64) int {
	k := len(t.runs) - 1
	if k < 0 || ids[0] != t.max || t.runs[k].start+uint64(t.runs[k].n)-1 != t.max {
		return 0
	}
	n := consecutive(ids)
	if last := ids[n-1]; last < ids[0] { // beyond 2^64 they start anew
		n -= int(last) + 1
	}
	t.ids = append(t.ids, ids[1:n]...)
	t.max = ids[n-1]
	t.runs[k].n += uint32(n - 1)
	return n - 1
}

// consecutive is how many of ids, which are not none, go up by one from the first on.
func consecutive(ids []uint64) int {
	next := ids[0]
	for n, id := range ids {
		if id != next {
			return n
		}
		next++
	}
	return len(ids)
}
