package prefixcache

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelRequest is a request of the models below, which follow the rules of the
// package comment word by word, with the chain of ids as a block's name.
type modelRequest struct {
	chain  []string
	input  int64
	output int64
}

const modelBlock = 4

// drawTrace makes requests that walk down a small tree, so that prefixes are
// shared and the same id comes after different predecessors.
func drawTrace(t *rapid.T) ([]modelRequest, *Sequence) {
	s, err := NewSequence(modelBlock)
	if err != nil {
		t.Fatal(err)
	}
	var reqs []modelRequest
	for range rapid.IntRange(0, 40).Draw(t, "requests") {
		ids := rapid.SliceOfN(rapid.Uint64Range(0, 3), 0, 6).Draw(t, "ids")
		spare := rapid.Int64Range(0, modelBlock-1).Draw(t, "spare")
		input := max(int64(len(ids))*modelBlock-spare, 0)
		r := modelRequest{input: input, output: rapid.Int64Range(-1, 9).Draw(t, "output")}
		name := ""
		for _, id := range ids {
			name += fmt.Sprint("/", id)
			r.chain = append(r.chain, name)
		}
		reqs = append(reqs, r)
		if err := s.Add(ids, input, r.output); err != nil {
			t.Fatal(err)
		}
	}
	return reqs, s
}

// replay counts the hits of a cache given by its look-up and its entering.
func replay(reqs []modelRequest, warmup int, has func(string) bool, enter func(modelRequest)) int64 {
	var hits int64
	for i, r := range reqs {
		run := 0
		for run < len(r.chain) && has(r.chain[run]) {
			run++
		}
		if i >= warmup {
			hits += min(int64(run)*modelBlock, r.input)
		}
		enter(r)
	}
	return hits
}

func modelLRU(reqs []modelRequest, capacity, warmup int) int64 {
	var held []string // the newest first
	return replay(reqs, warmup, func(b string) bool { return slices.Contains(held, b) }, func(r modelRequest) {
		for _, b := range slices.Backward(r.chain) {
			held = slices.DeleteFunc(held, func(x string) bool { return x == b })
			held = slices.Insert(held, 0, b)
			held = held[:min(len(held), capacity)]
		}
	})
}

func modelFIFO(reqs []modelRequest, capacity, warmup int) int64 {
	var held []string // the oldest first
	return replay(reqs, warmup, func(b string) bool { return slices.Contains(held, b) }, func(r modelRequest) {
		for _, b := range r.chain {
			if slices.Contains(held, b) || capacity == 0 {
				continue
			}
			if len(held) == capacity {
				held = held[1:]
			}
			held = append(held, b)
		}
	})
}

func modelOptimal(reqs []modelRequest, capacity, warmup int) int64 {
	var all []string
	for _, r := range reqs {
		all = append(all, r.chain...)
	}
	nextUse := func(b string, after int) int {
		if i := slices.Index(all[after+1:], b); i >= 0 {
			return after + 1 + i
		}
		return math.MaxInt
	}
	held := map[string]int{} // next use
	at := -1
	return replay(reqs, warmup, func(b string) bool { _, ok := held[b]; return ok }, func(r modelRequest) {
		for _, b := range r.chain {
			at++
			use := nextUse(b, at)
			if _, ok := held[b]; !ok && len(held) >= capacity {
				victim, latest := "", -1
				for name, u := range held {
					if u > latest {
						victim, latest = name, u
					}
				}
				if use > latest {
					continue // not admitted
				}
				delete(held, victim)
			}
			held[b] = use
		}
	})
}

func TestPoliciesAgainstModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs, s := drawTrace(t)
		s.Freeze()
		warmup := rapid.IntRange(0, len(reqs)).Draw(t, "warmup")
		lru := s.LRU(warmup)
		for capacity := range 20 {
			if got, want := lru.HitTokens(capacity), modelLRU(reqs, capacity, warmup); got != want {
				t.Errorf("LRU, %d blocks: got %d, want %d", capacity, got, want)
			}
			if got, want := s.FIFO(capacity, warmup), modelFIFO(reqs, capacity, warmup); got != want {
				t.Errorf("FIFO, %d blocks: got %d, want %d", capacity, got, want)
			}
			if got, want := s.Optimal(capacity, warmup), modelOptimal(reqs, capacity, warmup); got != want {
				t.Errorf("optimal, %d blocks: got %d, want %d", capacity, got, want)
			}
		}
	})
}

// TestLaws states what holds for every trace: nothing beats optimal, LRU and
// optimal never lose by more blocks, a cache of all blocks is ideal.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, s := drawTrace(t)
		ideal := s.Ideal(0)
		lru := s.LRU(0)
		var before int64
		for capacity := range s.Unique() + 2 {
			opt := s.Optimal(capacity, 0)
			if l, f := lru.HitTokens(capacity), s.FIFO(capacity, 0); l > opt || f > opt {
				t.Errorf("%d blocks: LRU %d or FIFO %d beats optimal %d", capacity, l, f, opt)
			}
			if opt < before || lru.HitTokens(capacity) < lru.HitTokens(capacity-1) {
				t.Errorf("%d blocks hit less than one block less", capacity)
			}
			before = opt
		}
		n := s.Unique()
		for name, got := range map[string]int64{"LRU": lru.HitTokens(n), "FIFO": s.FIFO(n, 0), "optimal": s.Optimal(n, 0)} {
			if got != ideal.HitTokens {
				t.Errorf("%s with room for all: got %d, ideal is %d", name, got, ideal.HitTokens)
			}
		}
		if e := lru.Enough(); lru.HitTokens(e) != ideal.HitTokens || e > 0 && lru.HitTokens(e-1) == ideal.HitTokens {
			t.Errorf("enough for all hits: got %d", e)
		}
	})
}

// TestVLLMEndless compares an engine that never evicts with the formula for it:
// full blocks that were there before, at most ⌊(n-1)/B⌋ of a prompt.
func TestVLLMEndless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs, s := drawTrace(t)
		seen := map[string]bool{}
		var want int64
		for _, r := range reqs {
			run := int64(0)
			for run < int64(len(r.chain)) && seen[r.chain[run]] {
				run++
			}
			want += min(run, max(r.input-1, 0)/modelBlock) * modelBlock
			for i, b := range r.chain {
				if int64(i+1)*modelBlock <= r.input {
					seen[b] = true
				}
			}
		}
		if got := s.VLLM(1<<40, 0); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
}
