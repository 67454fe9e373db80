package prefixcache

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestReusesByHand(t *testing.T) {
	// Blocks of 10. 0: A B C. 1: A X. 2: A B C D. After request 1 the stack is,
	// the latest first: A X B C. So request 1 reuses A at distance 1 (from 0),
	// request 2 reuses A at distance 1 (from 1), and B C at 3 and 4 (from 0).
	s, _ := NewSequence(10)
	for _, ids := range [][]uint64{{1, 2, 3}, {1, 9}, {1, 2, 3, 4}} {
		if err := s.Add(ids, -1, 0); err != nil {
			t.Fatal(err)
		}
	}
	var got []Reuse
	curve := s.LRUReuses(0, func(r Reuse) { got = append(got, r) })
	want := []Reuse{{1, 0, 1, 1}, {2, 1, 1, 1}, {2, 0, 2, 3}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// 20 tokens from 1 block on, 30 from 3, 40 from 4.
	for tokens, want := range map[int64]int{0: 0, 1: 1, 20: 1, 21: 3, 30: 3, 31: 4, 40: 4} {
		if c, ok := curve.Reaching(tokens); !ok || c != want {
			t.Errorf("capacity for %d tokens: got %d, %v, want %d", tokens, c, ok, want)
		}
	}
	if c, ok := curve.Reaching(41); ok {
		t.Errorf("capacity for 41 tokens: got %d", c)
	}
	got = nil
	s.LRUReuses(2, func(r Reuse) { got = append(got, r) })
	if d := cmp.Diff(want[1:], got); d != "" {
		t.Errorf("after a warm-up of 2 (-want +got):\n%s", d)
	}
}

// TestReusesAgainstModel checks distances and last users one by one.
func TestReusesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs, s := drawTrace(t)
		type use struct{ request, earlier, distance int }
		var want, got []use
		var stack []string // the latest first
		user := map[string]int{}
		for i, r := range reqs {
			for _, b := range r.chain {
				at := slices.Index(stack, b)
				if at < 0 {
					break
				}
				want = append(want, use{i, user[b], at + 1})
			}
			for _, b := range slices.Backward(r.chain) {
				stack = slices.DeleteFunc(stack, func(x string) bool { return x == b })
				stack = slices.Insert(stack, 0, b)
				user[b] = i
			}
		}
		s.LRUReuses(0, func(r Reuse) {
			for k := range r.Blocks {
				got = append(got, use{r.Request, r.Earlier, r.Distance + k})
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestIdealApart compares with an Ideal of each group's requests alone.
func TestIdealApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs, s := drawTrace(t)
		if rapid.Bool().Draw(t, "freeze") {
			s.Freeze()
		}
		groups := make([]uint32, len(reqs))
		var want Ideal
		for i := range groups {
			groups[i] = rapid.Uint32Range(0, 3).Draw(t, "group")
		}
		warmup := rapid.IntRange(0, len(reqs)).Draw(t, "warmup")
		seen := map[uint32]map[string]bool{1: {}, 2: {}, 3: {}}
		for i, r := range reqs {
			g := seen[groups[i]]
			if g == nil {
				continue
			}
			run := 0
			for run < len(r.chain) && g[r.chain[run]] {
				run++
			}
			for _, b := range r.chain {
				g[b] = true
			}
			if i >= warmup {
				want.HitBlocks += int64(run)
				want.HitTokens += min(int64(run)*modelBlock, r.input)
			}
		}
		got := s.IdealApart(groups, warmup)
		if got.HitBlocks != want.HitBlocks || got.HitTokens != want.HitTokens {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestSpaces(t *testing.T) {
	// The same prompt for the base model and two adapters: three chains that
	// share nothing, and each finds itself again.
	s, _ := NewSequence(4)
	for _, space := range []int{0, 1, 2, 0, 2} {
		if err := s.AddIn(space, []uint64{1, 2, 3}, 12, 1); err != nil {
			t.Fatal(err)
		}
	}
	s.Freeze()
	if got := s.Ideal(0).HitBlocks; s.Unique() != 9 || got != 6 {
		t.Errorf("got %d different blocks and %d hits, want 9 and 6", s.Unique(), got)
	}
	if got := s.LRU(0).HitTokens(9); got != 24 {
		t.Errorf("LRU: got %d hit tokens, want 24", got)
	}
	for _, f := range s.Popularity().Frequencies() {
		if f.Uses > 2 {
			t.Errorf("%d blocks are used by %d requests", f.Blocks, f.Uses)
		}
	}
	for _, space := range []int{-1, maxSpaces} {
		if s.AddIn(space, nil, 0, 0) == nil {
			t.Errorf("name space %d is accepted", space)
		}
	}
}

// TestGrouped compares with a sequence that is given the groups' paths as ids.
func TestGrouped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs, _ := drawTrace(t)
		group := rapid.IntRange(1, 4).Draw(t, "group")
		got, err := NewGrouped(modelBlock, group)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := NewSequence(modelBlock * group)
		names, numbers := map[string]uint64{}, map[string]uint64{}
		id := func(m map[string]uint64, name string) uint64 {
			if _, ok := m[name]; !ok {
				m[name] = uint64(len(m))
			}
			return m[name]
		}
		for _, r := range reqs {
			var fine, coarse []uint64
			for i, path := range r.chain {
				fine = append(fine, id(names, path))
				if (i+1)%group == 0 || i == len(r.chain)-1 {
					coarse = append(coarse, id(numbers, path))
				}
			}
			if err := got.Add(fine, r.input, r.output); err != nil {
				t.Fatal(err)
			}
			if err := want.Add(coarse, r.input, r.output); err != nil {
				t.Fatal(err)
			}
		}
		got.Freeze()
		if got.BlockSize() != modelBlock*group || got.Blocks() != want.Blocks() || got.Unique() != want.Unique() || got.Ideal(0) != want.Ideal(0) {
			t.Errorf("got %d blocks, %d different, %+v, want %d, %d, %+v", got.Blocks(), got.Unique(), got.Ideal(0), want.Blocks(), want.Unique(), want.Ideal(0))
		}
		for c := range 8 {
			if got.VLLM(c, 0) != want.VLLM(c, 0) || got.FIFO(c, 0) != want.FIFO(c, 0) {
				t.Errorf("%d blocks: other hits", c)
			}
		}
	})
	for _, group := range []int{0, -1, 1 << 62} {
		if _, err := NewGrouped(16, group); err == nil {
			t.Errorf("groups of %d blocks are accepted", group)
		}
	}
}

func TestPrefixesByHand(t *testing.T) {
	// Blocks of 10. A B C(5 tokens) twice, A B D E twice, A F, G.
	// A is shared by 5: saves 4 × 10. A B by 4: its B saves 3 × 10.
	// A B C by 2: 5 tokens. A B D E by 2: D E save 20. The endless cache hits
	// 25 + 20 + 40 + 10 = 95 tokens: A B C; A B; A B D E; A.
	s, _ := NewSequence(10)
	for _, r := range []struct {
		ids   []uint64
		input int64
	}{
		{[]uint64{7}, 10}, {[]uint64{1, 2, 3}, 25}, {[]uint64{1, 2, 3}, 25},
		{[]uint64{1, 2, 4, 5}, 40}, {[]uint64{1, 2, 4, 5}, 40}, {[]uint64{1, 6}, 20},
	} {
		if err := s.Add(r.ids, r.input, 1); err != nil {
			t.Fatal(err)
		}
	}
	s.Freeze()
	p := s.Popularity()
	a, b, c, e := Prefix{1, 10, 5, 40, 1}, Prefix{2, 20, 4, 30, 1}, Prefix{3, 25, 2, 5, 1}, Prefix{4, 40, 2, 20, 3}
	saved, uses := p.Prefixes(10)
	if d := cmp.Diff([]Prefix{a, b, e, c}, saved); d != "" {
		t.Errorf("by tokens (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Prefix{a, b, e, c}, uses); d != "" {
		t.Errorf("by requests (-want +got):\n%s", d)
	}
	if saved, uses := p.Prefixes(1); len(saved) != 1 || len(uses) != 1 || saved[0] != a {
		t.Errorf("the first one: got %v, %v", saved, uses)
	}
	if saved, _ := p.Prefixes(0); len(saved) != 0 {
		t.Errorf("none: got %v", saved)
	}
	if got := s.Ideal(0).HitTokens; got != 95 {
		t.Errorf("endless cache: %d tokens", got)
	}
	// A 5, B 4, C D E 2, F G 1.
	want := []Frequency{{5, 1}, {4, 1}, {2, 3}, {1, 2}}
	if d := cmp.Diff(want, p.Frequencies()); d != "" {
		t.Errorf("frequencies (-want +got):\n%s", d)
	}
}

// TestPrefixesAgainstModel finds them among all paths, and adds up what they
// save.
func TestPrefixesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs, s := drawTrace(t)
		uses, children := map[string]int64{}, map[string][]string{}
		for _, r := range reqs {
			parent := ""
			for _, b := range r.chain {
				if uses[b]++; uses[b] == 1 {
					children[parent] = append(children[parent], b)
				}
				parent = b
			}
		}
		want := map[int64]int{} // how many prefixes so many requests share
		for b, n := range uses {
			same := slices.ContainsFunc(children[b], func(c string) bool { return uses[c] == n })
			if n > 1 && !same {
				want[n]++
			}
		}
		s.Freeze()
		saved, byUses := s.Popularity().Prefixes(1000)
		got := map[int64]int{}
		var sum int64
		for i, p := range byUses {
			got[p.Requests]++
			sum += p.SavedTokens
			if i > 0 && p.Requests > byUses[i-1].Requests || i > 0 && saved[i].SavedTokens > saved[i-1].SavedTokens {
				t.Errorf("out of order: %v, %v", saved, byUses)
			}
			first := slices.IndexFunc(reqs, func(r modelRequest) bool {
				return int(p.Blocks) <= len(r.chain) && uses[r.chain[p.Blocks-1]] == p.Requests
			})
			if p.First < first || first < 0 {
				t.Errorf("%+v: the first request that fits is %d", p, first)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if ideal := s.Ideal(0).HitTokens; sum != ideal && evenEnds(reqs) {
			t.Errorf("the prefixes save %d tokens, an endless cache hits %d", sum, ideal)
		}
	})
}

// evenEnds says that a block is partial in all requests that end in it or in
// none, and never in one that goes on, as in a real trace.
func evenEnds(reqs []modelRequest) bool {
	lack, inner := map[string]int64{}, map[string]bool{}
	for _, r := range reqs {
		for i, b := range r.chain {
			if i < len(r.chain)-1 {
				inner[b] = true
			}
		}
	}
	for _, r := range reqs {
		n := len(r.chain)
		if n == 0 {
			continue
		}
		missing := int64(n)*modelBlock - r.input
		if before, ok := lack[r.chain[n-1]]; ok && before != missing || missing > 0 && inner[r.chain[n-1]] {
			return false
		}
		lack[r.chain[n-1]] = missing
	}
	return true
}
