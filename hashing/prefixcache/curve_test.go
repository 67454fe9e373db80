package prefixcache

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestIdealByHand(t *testing.T) {
	// Blocks of 10 tokens. Request 1: A B C', C' of 5 tokens: nothing is known.
	// Request 2: A B C' again: 3 of 3 blocks, 25 of 25 tokens, 2 of 2 full ones.
	// Request 3: B alone: B after nothing is another block than B after A.
	// Request 4: A X, 20 tokens: 1 of 2 blocks, 10 of 20 tokens, 1 of 2.
	// A server computes the last token, so request 2 shows 2 blocks, 4 shows 1.
	s, _ := NewSequence(10)
	for _, r := range []struct {
		ids   []uint64
		input int64
	}{{[]uint64{1, 2, 3}, 25}, {[]uint64{1, 2, 3}, 25}, {[]uint64{2}, 10}, {[]uint64{1, 9}, 20}} {
		if err := s.Add(r.ids, r.input, 1); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Ideal(0), (Ideal{4, 9, 35, 80, 3, 7, 30}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := s.Ideal(2), (Ideal{1, 3, 10, 30, 1, 3, 10}); got != want {
		t.Errorf("after a warm-up of 2: got %+v, want %+v", got, want)
	}
	if got := s.Unique(); got != 5 { // A, AB, ABC, B, AX
		t.Errorf("unique blocks: got %d, want 5", got)
	}
	if got := s.Tokens(2); got != 30 {
		t.Errorf("tokens after a warm-up of 2: got %d, want 30", got)
	}
}

func TestUnknownInputCountsFullBlocks(t *testing.T) {
	s, _ := NewSequence(10)
	for range 2 {
		if err := s.Add([]uint64{1, 2}, -1, -1); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Ideal(0), (Ideal{2, 4, 20, 40, 2, 4, 10}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestVLLMByHand(t *testing.T) {
	// Blocks of 4, prompts of 8 tokens, one output token, which leaves nothing.
	// The same prompt twice hits ⌊7/4⌋ = 1 block; 9 tokens would hit 2.
	// With a pool of 2 blocks a prompt in between evicts everything; with 4
	// blocks it does not. A prompt of 12 tokens does not fit into 2 blocks.
	build := func(lengths ...int64) *Sequence {
		s, _ := NewSequence(4)
		for i, n := range lengths {
			ids := []uint64{1, 2, 3}[:(n+3)/4]
			if i == 1 && len(lengths) == 3 {
				ids = []uint64{7, 8}
			}
			if err := s.Add(ids, n, 1); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	for _, c := range []struct {
		lengths  []int64
		capacity int
		want     int64
	}{
		{[]int64{8, 8}, 2, 4},
		{[]int64{8, 9}, 3, 8},
		{[]int64{8, 8, 8}, 2, 0},
		{[]int64{8, 8, 8}, 4, 4},
		{[]int64{12, 12}, 2, 0},
		{[]int64{8, 8}, 0, 0},
	} {
		if got := build(c.lengths...).VLLM(c.capacity, 0); got != c.want {
			t.Errorf("prompts of %v on %d blocks: got %d, want %d", c.lengths, c.capacity, got, c.want)
		}
	}
}

func TestSweep(t *testing.T) {
	for _, c := range []struct {
		unique int
		want   []int
	}{
		{0, []int{1}},
		{1, []int{1}},
		{3, []int{1, 2, 4}},
		{4, []int{1, 2, 4}},
		{182790, []int{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144}},
	} {
		s := &Sequence{unique: c.unique}
		if got := s.Sweep(); !slices.Equal(got, c.want) {
			t.Errorf("%d different blocks: got %v, want %v", c.unique, got, c.want)
		}
	}
}

func TestWarmupRequests(t *testing.T) {
	s, _ := NewSequence(1)
	for range 7 {
		if err := s.Add(nil, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for share, want := range map[float64]int{0: 0, 0.5: 3, 0.99: 6, 1: 7, 2: 7, -1: 0} {
		if got := s.WarmupRequests(share); got != want {
			t.Errorf("%g of 7 requests: got %d, want %d", share, got, want)
		}
	}
}

func TestParsePolicies(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Policy
		err  string
	}{
		{"lru", []Policy{PolicyLRU}, ""},
		{"optimal, fifo,vllm", []Policy{PolicyOptimal, PolicyFIFO, PolicyVLLM}, ""},
		{"", nil, `parse policies "": found "", expected lru, fifo, optimal or vllm`},
		{"lru,LRU", nil, `parse policies "lru,LRU": found "LRU", expected lru, fifo, optimal or vllm`},
		{"lru,lru", nil, `parse policies "lru,lru": lru is given twice`},
	} {
		got, err := ParsePolicies(c.text)
		if !slices.Equal(got, c.want) || fmt.Sprint(err) != orNil(c.err) {
			t.Errorf("%q: got %v, %v", c.text, got, err)
		}
	}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

func TestBadInput(t *testing.T) {
	if _, err := NewSequence(0); err == nil {
		t.Error("a block size of 0 is accepted")
	}
	s, _ := NewSequence(1)
	if err := s.Add([]uint64{1}, 1<<32, 0); err == nil {
		t.Error("a prompt of 2^32 tokens is accepted")
	}
	if _, err := s.Curve([]Policy{"mru"}, []int{1}, 0); err == nil {
		t.Error("an unknown policy is accepted")
	}
}

func TestEmptySequence(t *testing.T) {
	s, _ := NewSequence(16)
	points, err := s.Curve(Policies(), []int{0, 1, 1000}, 0)
	if err != nil || len(points) != 12 {
		t.Fatalf("got %d points, %v", len(points), err)
	}
	for _, p := range points {
		if p.HitTokens != 0 {
			t.Errorf("%+v of an empty trace", p)
		}
	}
}

// TestFrozenIsTheSame: spelling the blocks out changes nothing.
func TestFrozenIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs, s := drawTrace(t)
		warmup := len(reqs) / 3
		before := fmt.Sprint(s.Ideal(warmup), s.LRU(warmup), s.FIFO(3, warmup), s.Optimal(3, warmup))
		s.Freeze()
		if after := fmt.Sprint(s.Ideal(warmup), s.LRU(warmup), s.FIFO(3, warmup), s.Optimal(3, warmup)); after != before {
			t.Errorf("got %s, before %s", after, before)
		}
	})
}

// TestManyBlocks drives the hash table and the lists over many pages.
func TestManyBlocks(t *testing.T) {
	s, _ := NewSequence(2)
	ids := make([]uint64, 1000)
	const requests = 200
	for r := range uint64(requests) {
		for i := range ids {
			ids[i] = uint64(i) // the same ids, but the first one differs
		}
		ids[0] = 1<<40 + r%(requests/2)
		if err := s.Add(ids, int64(len(ids))*2, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Unique(), requests/2*len(ids); got != want {
		t.Errorf("unique blocks: got %d, want %d", got, want)
	}
	if got := s.Ideal(0); got.HitBlocks != requests/2*int64(len(ids)) {
		t.Errorf("got %+v", got)
	}
	if got := s.LRU(0).Enough(); got != requests/2*len(ids) {
		t.Errorf("a cyclic trace needs room for all: got %d", got)
	}
}

func TestParseCapacities(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
		err  string
	}{
		{"5637", []int{5637}, ""},
		{"2, 1", []int{2, 1}, ""},
		{"", nil, `parse capacities "": found "", expected a number of blocks from 1 to 1099511627776`},
		{"1,x", nil, `parse capacities "1,x": found "x", expected a number of blocks from 1 to 1099511627776`},
		{"0", nil, `parse capacities "0": found "0", expected a number of blocks from 1 to 1099511627776`},
		{"-5", nil, `parse capacities "-5": found "-5", expected a number of blocks from 1 to 1099511627776`},
		{"1e3", nil, `parse capacities "1e3": found "1e3", expected a number of blocks from 1 to 1099511627776`},
		{"7,7", nil, `parse capacities "7,7": 7 is given twice`},
	} {
		got, err := ParseCapacities(c.text)
		if !slices.Equal(got, c.want) || fmt.Sprint(err) != orNil(c.err) {
			t.Errorf("%q: got %v, %v", c.text, got, err)
		}
	}
}

// FuzzParseCapacities states that what is accepted is positive and distinct.
func FuzzParseCapacities(f *testing.F) {
	for _, seed := range []string{"1,2,3", "5637,22550", "", ",", "1,1", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseCapacities(text)
		if err != nil {
			return
		}
		seen := map[int]bool{}
		for _, c := range list {
			if c < 1 || seen[c] {
				t.Errorf("%q: got %v", text, list)
			}
			seen[c] = true
		}
	})
}

// FuzzParsePolicies states that what is accepted is known and distinct.
func FuzzParsePolicies(f *testing.F) {
	for _, seed := range []string{"lru", "lru,fifo,optimal,vllm", "", "lru,lru"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParsePolicies(text)
		if err != nil {
			return
		}
		for i, p := range list {
			if !slices.Contains(Policies(), p) || slices.Contains(list[:i], p) {
				t.Errorf("%q: got %v", text, list)
			}
		}
	})
}
