package prompt

import (
	"testing"

	"pgregory.net/rapid"
)

// TestHashMapAgainstMap compares with Go's own map, at every size on the way up.
func TestHashMapAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		h := hashMap{lengths: rapid.Bool().Draw(t, "lengths")}
		want := make(map[uint64]uint32)
		for i := range uint64(3000) {
			key := mix(seed + i%2000)
			want[key] = uint32(i)
			h.put(key, uint32(i))
			absent := mix(seed + 2000 + i)
			if _, found := h.get(absent); found {
				t.Fatalf("%x is found, but was never put", absent)
			}
		}
		for key, length := range want {
			got, found := h.get(key)
			if !found || h.lengths && got != length {
				t.Fatalf("%x: %d, %v, want %d", key, got, found, length)
			}
		}
	})
}

// TestHashMapCrowd puts hashes that all belong to one place, the last of a
// table, so that probing wraps around.
func TestHashMapCrowd(t *testing.T) {
	var h hashMap
	hash := func(i uint64) uint64 { return ^uint64(0) - i<<10 }
	for i := range uint64(1000) {
		h.put(hash(i), 0)
	}
	for i := range uint64(2000) {
		if _, found := h.get(hash(i)); found != (i < 1000) {
			t.Fatalf("hash %d: found %v", i, found)
		}
	}
	if _, found := h.get(0); found {
		t.Error("0 is found, but was never put")
	}
	h.put(0, 0)
	if _, found := h.get(0); !found {
		t.Error("0 is not found")
	}
}

// TestHashMapIsSmall: at most ten bytes a hash, between two growths, and never
// more room than half as much again.
func TestHashMapIsSmall(t *testing.T) {
	var h hashMap
	const n = 500_000
	for i := range uint64(n) {
		h.put(mix(i), 0)
	}
	slots, used := 0, 0
	for i := range h.tables {
		slots += len(h.tables[i].high)
		used += h.tables[i].used
	}
	if used != n {
		t.Errorf("%d hashes in it, want %d", used, n)
	}
	if slots > n*16/10 {
		t.Errorf("%d slots for %d hashes", slots, n)
	}
}
