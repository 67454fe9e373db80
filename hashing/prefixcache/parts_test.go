package prefixcache

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPositionsAgainstMap drives the set of positions and its maximum beside
// a plain map.
func TestPositionsAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 63, 64, 65, 4096, 4097, 300_000}).Draw(t, "n")
		p := newPositions(n)
		model := map[int]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "position")
			if rapid.Bool().Draw(t, "set") {
				p.set(i)
				model[i] = true
			} else {
				p.clear(i)
				delete(model, i)
			}
			if p.has(i) != model[i] {
				t.Fatalf("%d: got %v, want %v", i, p.has(i), model[i])
			}
			top := -1
			for k := range model {
				top = max(top, k)
			}
			if len(model) > 0 && p.max() != top {
				t.Fatalf("maximum: got %d, want %d", p.max(), top)
			}
		}
	})
}

// TestStackAgainstSlice counts the members from a time on beside a plain slice.
func TestStackAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 1000
		s := newStack(n)
		var member []bool
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if more := rapid.IntRange(0, min(200, n-len(member))).Draw(t, "push"); more > 0 {
				s.push(more)
				for range more {
					member = append(member, true)
				}
			}
			if len(member) == 0 {
				continue
			}
			a := rapid.IntRange(0, len(member)-1).Draw(t, "from")
			b := a
			for limit := rapid.IntRange(a, len(member)).Draw(t, "to"); b < limit && member[b]; b++ {
				member[b] = false
			}
			s.clear(a, b)
			at := rapid.IntRange(0, len(member)-1).Draw(t, "at")
			count := 0
			for _, m := range member[at:] {
				if m {
					count++
				}
			}
			if got := s.from(at); got != count {
				t.Fatalf("from %d on: got %d members, want %d", at, got, count)
			}
		}
	})
}

// TestChainAgainstMap numbers paths beside a map from the path's text, and
// walks them back.
func TestChainAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c, bulk chain // the one numbers blocks singly, the other prompts
		numbers := map[string]uint32{}
		for range rapid.IntRange(1, 60).Draw(t, "prompts") {
			ids := rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(0, 2), rapid.Uint64()), 1, 8).Draw(t, "ids")
			at := root
			var want []uint32
			for i, id := range ids {
				at = c.number(at, id)
				name := fmt.Sprint(ids[:i+1])
				known, ok := numbers[name]
				if !ok {
					known = uint32(len(numbers))
					numbers[name] = known
				}
				if at != known {
					t.Fatalf("path %s: got number %d, want %d", name, at, known)
				}
				want = append(want, known)
			}
			got := make([]uint32, len(ids))
			for name, all := range map[string]*chain{"known": &c, "bulk": &bulk} {
				if last := all.numberAll(got, root, ids); last != at || !slices.Equal(got, want) {
					t.Fatalf("%s: all of %v at once: got numbers %v, want %v", name, ids, got, want)
				}
			}
			clear(got)
			c.path.walk(got, at)
			if !slices.Equal(got, want) {
				t.Fatalf("path back from %d: got %v, want %v", at, got, want)
			}
			bulk.path.walk(got, at)
			if !slices.Equal(got, want) {
				t.Fatalf("path back from %d: got %v, want %v", at, got, want)
			}
		}
	})
}

func TestListPages(t *testing.T) {
	var l list[int]
	const n = 2*listPage + 3
	for i := range n {
		l.add(i)
	}
	*l.ref(listPage) = -1
	for _, i := range []int{0, listPage - 1, listPage + 1, n - 1} {
		if l.at(i) != i {
			t.Errorf("element %d: got %d", i, l.at(i))
		}
	}
	if l.at(listPage) != -1 || l.n != n {
		t.Errorf("got %d elements, the changed one is %d", l.n, l.at(listPage))
	}
}

// TestLongTraceIsNotFlat goes through a trace with more blocks than are
// spelt out, and finds the same as for its first part.
func TestLongTraceIsNotFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("has four million blocks")
	}
	s, _ := NewSequence(1)
	ids := make([]uint64, 4096)
	for i := range ids {
		ids[i] = uint64(i)
	}
	n := flatBlocks/len(ids) + 1
	for range n {
		if err := s.Add(ids, int64(len(ids)), 0); err != nil {
			t.Fatal(err)
		}
	}
	s.Freeze()
	if s.flat.n != 0 {
		t.Fatal("the blocks are spelt out")
	}
	want := int64(n-1) * int64(len(ids))
	for name, got := range map[string]int64{
		"ideal": s.Ideal(0).HitTokens, "LRU": s.LRU(0).HitTokens(len(ids)), "FIFO": s.FIFO(len(ids), 0), "optimal": s.Optimal(len(ids), 0),
	} {
		if got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
