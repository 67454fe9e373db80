package formats

// slab hands out block lists from large pieces of memory, so that a row costs
// no allocation of its own.
type slab struct {
	free []uint64
}

const slabSize = 16 << 10

// open gives an empty list with room for n ids; at most so many are appended to
// it, and the whole is then handed to keep.
func (s *slab) open(n int) []uint64 {
	if cap(s.free)-len(s.free) < n {
		s.free = make([]uint64, 0, max(slabSize, n))
	}
	return s.free[len(s.free):len(s.free):cap(s.free)]
}

// keep takes the list's memory out of the slab.
func (s *slab) keep(list []uint64) []uint64 {
	n := len(list)
	if n > 0 && cap(s.free) >= len(s.free)+n && &s.free[:cap(s.free)][len(s.free)] == &list[0] {
		s.free = s.free[:len(s.free)+n]
	}
	return list[:n:n]
}

// recycle takes back all lists of the current piece.
func (s *slab) recycle() { s.free = s.free[:0] }
