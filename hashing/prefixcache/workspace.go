package prefixcache

// workspace is the memory of one simulation, kept for the next one. The zero
// workspace is ready.
type workspace struct {
	words []uint32
	held  *positions
	pool  runPool
}

// zeros gives n zeros, valid until the next call.
func (w *workspace) zeros(n int) []uint32 {
	if cap(w.words) < n {
		w.words = make([]uint32, n)
		return w.words
	}
	w.words = w.words[:n]
	clear(w.words)
	return w.words
}

// positions gives an empty set for numbers from 0 to n-1, valid until the next
// call, which is of the same n.
func (w *workspace) positions(n int) *positions {
	if w.held == nil {
		w.held = newPositions(n)
		return w.held
	}
	for _, level := range w.held.levels {
		clear(level)
	}
	return w.held
}
