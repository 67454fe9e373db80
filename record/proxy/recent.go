package proxy

// recent is a map that forgets: it holds at least the last size keys that were
// set or found, and at most twice as many.
type recent[K comparable, V any] struct {
	size       int
	young, old map[K]V
}

func newRecent[K comparable, V any](size int) *recent[K, V] {
	return &recent[K, V]{size: size, young: map[K]V{}}
}

func (m *recent[K, V]) get(k K) (V, bool) {
	if v, ok := m.young[k]; ok {
		return v, true
	}
	v, ok := m.old[k]
	if ok {
		delete(m.old, k)
		m.set(k, v)
	}
	return v, ok
}

func (m *recent[K, V]) set(k K, v V) {
	if len(m.young) >= m.size {
		m.young, m.old = map[K]V{}, m.young
	}
	m.young[k] = v
}
