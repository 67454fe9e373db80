package prefixcache

import (
	"testing"

	"pgregory.net/rapid"
)

// poolEngine serves requests with a VLLMPool, which is tested against a real
// server: the slow model of Sequence.VLLM.
type poolEngine struct {
	pool    *VLLMPool
	size    int64
	private uint64 // hash of the next block that nobody shares
}

func (e *poolEngine) serve(r *request) (run int) {
	tokens := r.input + max(r.output-1, 0)
	need := int((tokens + e.size - 1) / e.size)
	if need > e.pool.Len() {
		return 0
	}
	var hashes []uint64
	for i := range int64(need) {
		if i < int64(len(r.blocks)) && (i+1)*e.size <= r.input {
			hashes = append(hashes, uint64(r.blocks[i]))
			continue
		}
		hashes = append(hashes, e.private)
		e.private++
	}
	usable := min(int(max(r.input-1, 0)/e.size), len(hashes))
	blocks := e.pool.Lookup(nil, hashes[:usable])
	run = len(blocks)
	e.pool.Touch(blocks)
	blocks, _ = e.pool.Take(blocks, need-run)
	for i := run; i < int(tokens/e.size); i++ {
		e.pool.Commit(blocks[i], hashes[i])
	}
	e.pool.Release(blocks)
	return run
}

func poolVLLM(t testing.TB, s *Sequence, capacity, warmup int) (hits int64) {
	t.Helper()
	pool, err := NewVLLMPool(capacity)
	if err != nil {
		t.Fatal(err)
	}
	e := poolEngine{pool: pool, size: int64(s.blockSize), private: 1 << 32}
	s.each(warmup, func(r *request) {
		if run := e.serve(r); r.measured {
			hits += s.hitTokens(run, r.input)
		}
	})
	return hits
}

// TestVLLMAgainstPool: the engine of a Sequence hits what a VLLMPool hits.
func TestVLLMAgainstPool(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		reqs, s := drawTrace(rt)
		warmup := rapid.IntRange(0, len(reqs)).Draw(rt, "warmup")
		for capacity := 1; capacity < 30; capacity++ {
			if got, want := s.VLLM(capacity, warmup), poolVLLM(t, s, capacity, warmup); got != want {
				rt.Fatalf("%d blocks: got %d hit tokens, want %d", capacity, got, want)
			}
		}
	})
}

// TestVLLMCopies has the same full prompts again and again, so that their last
// blocks are computed into copies, in a pool that evicts all the time and a log
// that is compacted.
func TestVLLMCopies(t *testing.T) {
	s, _ := NewSequence(4)
	for i := range uint64(20_000) {
		ids := []uint64{i % 2, i % 3, i % 5, i % 7}[:1+i%4]
		if err := s.Add(ids, int64(len(ids))*4, int64(i%11)); err != nil {
			t.Fatal(err)
		}
	}
	for _, capacity := range []int{4, 5, 7, 16, 40, 100, 1000} {
		if got, want := s.VLLM(capacity, 100), poolVLLM(t, s, capacity, 100); got != want {
			t.Errorf("%d blocks: got %d hit tokens, want %d", capacity, got, want)
		}
	}
}

func TestMooncakeVLLM(t *testing.T) {
	s := readMooncake(t, 0)
	for _, capacity := range []int{200, 5637, 22550} {
		if got, want := s.VLLM(capacity, 6015), poolVLLM(t, s, capacity, 6015); got != want {
			t.Errorf("%d blocks: got %d hit tokens, want %d", capacity, got, want)
		}
	}
}
