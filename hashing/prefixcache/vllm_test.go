package prefixcache_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"retrace/hashing"
	"retrace/hashing/prefixcache"
)

// goldenRequest is one line of kvpool_golden.jsonl: a request to a real vLLM
// server with 512 usable blocks, and what its KV-cache events said.
type goldenRequest struct {
	I         json.Number
	Segments  [][]any
	PromptLen json.Number `json:"prompt_len"`
	OutIDs    []uint32    `json:"out_ids"`
	Cached    json.Number `json:"cached_tokens"`
	Removed   []string    `json:"removed"`
	Stored    []string    `json:"stored"`
}

// engine serves one request after the other as vLLM does: the smallest user of
// a pool, against which the pool's rules are tested.
type engine struct {
	pool            *prefixcache.VLLMPool
	chain           *hashing.Chain
	blockSize       int
	stored, removed []string
}

func newTestEngine(t testing.TB, blocks, blockSize int) *engine {
	t.Helper()
	pool, err := prefixcache.NewVLLMPool(blocks)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := hashing.NewChain(hashing.SHA256CBOR, blockSize, "0")
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{pool: pool, chain: chain, blockSize: blockSize}
	pool.OnStore = func(h uint64) { e.stored = append(e.stored, strconv.FormatUint(h, 10)) }
	pool.OnRemove = func(h uint64) { e.removed = append(e.removed, strconv.FormatUint(h, 10)) }
	return e
}

// serve runs a request and returns its cached tokens.
func (e *engine) serve(prompt, output []uint32) int {
	e.stored, e.removed = nil, nil
	e.chain.Reset()
	hashes := e.chain.Append(nil, prompt)
	blocks := e.pool.Lookup(nil, hashes[:min(len(hashes), (len(prompt)-1)/e.blockSize)])
	cached := len(blocks) * e.blockSize
	committed := len(blocks)
	e.pool.Touch(blocks)
	grow := func(tokens int) {
		var ok bool
		if blocks, ok = e.pool.Take(blocks, (tokens+e.blockSize-1)/e.blockSize-len(blocks)); !ok {
			panic("one request alone does not fit")
		}
		for ; committed < tokens/e.blockSize; committed++ {
			e.pool.Commit(blocks[committed], hashes[committed])
		}
	}
	grow(len(prompt))
	for i, id := range output {
		if i == len(output)-1 {
			break // the last sampled token gets no KV
		}
		hashes = e.chain.Append(hashes, []uint32{id})
		grow(len(prompt) + i + 1)
	}
	e.pool.Release(blocks)
	return cached
}

func TestVLLMPoolAgainstRealServer(t *testing.T) {
	data, err := os.ReadFile("../../../shared/data/vllm/kvpool_golden.jsonl")
	if os.IsNotExist(err) {
		t.Skip("shared test data kvpool_golden.jsonl is not here")
	} else if err != nil {
		t.Fatal(err)
	}
	e := newTestEngine(t, 512, 16)
	outputs := map[json.Number][]uint32{}
	requests, evictions := 0, 0
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte(`{"kind":"config"`)) {
			continue
		}
		g := decodeGolden(t, line)
		prompt := buildPrompt(t, g, outputs)
		outputs[g.I] = g.OutIDs
		cached := e.serve(prompt, g.OutIDs)
		if fmt.Sprint(cached) != g.Cached.String() || !slices.Equal(e.removed, g.Removed) || !slices.Equal(e.stored, g.Stored) {
			t.Fatalf("request %s: cached %d, removed %v, stored %v; want %v, %v, %v",
				g.I, cached, e.removed, e.stored, g.Cached, g.Removed, g.Stored)
		}
		requests++
		evictions += len(g.Removed)
	}
	// Counted in the file with Python.
	if requests != 300 || evictions != 541 {
		t.Errorf("checked %d requests with %d evictions, want 300 and 541", requests, evictions)
	}
}

func decodeGolden(t *testing.T, line []byte) goldenRequest {
	t.Helper()
	var g goldenRequest
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

// buildPrompt spells out a request's segments: ["f", base, n] is a run of
// made-up ids, ["o", i] the output of an earlier request.
func buildPrompt(t *testing.T, g goldenRequest, outputs map[json.Number][]uint32) []uint32 {
	t.Helper()
	var prompt []uint32
	for _, s := range g.Segments {
		first := s[1].(json.Number)
		if s[0] == "o" {
			prompt = append(prompt, outputs[first]...)
			continue
		}
		base, err1 := first.Int64()
		n, err2 := s[2].(json.Number).Int64()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for j := range n {
			prompt = append(prompt, uint32(((base+j)*7919+13)%151643))
		}
	}
	if fmt.Sprint(len(prompt)) != g.PromptLen.String() {
		t.Fatalf("request %s: built %d tokens, want %s", g.I, len(prompt), g.PromptLen)
	}
	return prompt
}

// VLLM.md §2, tried on a real server: the same prompt twice, and what the
// second one found in the cache.
func TestVLLMPoolSamePromptTwice(t *testing.T) {
	for _, c := range []struct{ length, cached int }{
		{16, 0}, {17, 16}, {48, 32}, {63, 48}, {64, 48}, {65, 64}, {79, 64}, {80, 64}, {81, 80},
	} {
		e := newTestEngine(t, 512, 16)
		prompt := make([]uint32, c.length)
		for i := range prompt {
			prompt[i] = uint32(i * 3)
		}
		e.serve(prompt, []uint32{1})
		if got := e.serve(prompt, []uint32{1}); got != c.cached {
			t.Errorf("%d tokens twice: %d cached, want %d", c.length, got, c.cached)
		}
	}
}

// A fully cached prompt computes its last block again into another block: two
// copies, each stored and each removed, and the older one is found.
func TestVLLMPoolCopies(t *testing.T) {
	p, err := prefixcache.NewVLLMPool(3)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	p.OnStore = func(h uint64) { events = append(events, fmt.Sprint("+", h)) }
	p.OnRemove = func(h uint64) { events = append(events, fmt.Sprint("-", h)) }
	a, _ := p.Take(nil, 1)
	b, _ := p.Take(nil, 1)
	p.Commit(a[0], 7)
	p.Commit(b[0], 7)
	p.Commit(b[0], 8) // it has a hash already
	if got := p.Lookup(nil, []uint64{7, 8}); !slices.Equal(got, a) {
		t.Errorf("look-up finds %v, want the older copy %v", got, a)
	}
	p.Release(a)
	p.Release(b)
	p.Take(nil, 2) // the third block, then a
	if got := p.Lookup(nil, []uint64{7}); !slices.Equal(got, b) {
		t.Errorf("after the older copy's eviction: %v, want %v", got, b)
	}
	p.Take(nil, 1)
	if got := p.Lookup(nil, []uint64{7}); len(got) != 0 {
		t.Errorf("after both evictions: found %v", got)
	}
	if want := []string{"+7", "+7", "-7", "-7"}; !slices.Equal(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
}

// At the end blocks go back tail first, those with a hash behind all others,
// those without before them.
func TestVLLMPoolReleaseOrder(t *testing.T) {
	p, err := prefixcache.NewVLLMPool(5)
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := p.Take(nil, 4) // 0 1 2 3; the queue is 4
	p.Commit(blocks[0], 10)
	p.Commit(blocks[1], 11)
	p.Release(blocks) // 3 2 without a hash go to the front, 1 0 to the back
	order, ok := p.Take(nil, 5)
	if want := []int32{3, 2, 4, 1, 0}; !ok || !slices.Equal(order, want) {
		t.Errorf("taken in the order %v, want %v", order, want)
	}
	if _, ok := p.Take(nil, 1); ok {
		t.Error("took a block from an empty queue")
	}
}

func TestVLLMPoolBounds(t *testing.T) {
	for _, n := range []int{-1, 0, 1<<30 + 1} {
		if _, err := prefixcache.NewVLLMPool(n); err == nil {
			t.Errorf("a pool of %d blocks: no error", n)
		}
	}
}

// slowPool is the pool in the plainest words: a slice as the queue, and the
// hashes of each block with the moment they got there.
type slowPool struct {
	queue []int32
	refs  map[int32]int
	hash  map[int32]uint64
	since map[int32]int
	clock int
}

func newSlowPool(n int) *slowPool {
	s := &slowPool{refs: map[int32]int{}, hash: map[int32]uint64{}, since: map[int32]int{}}
	for i := range n {
		s.queue = append(s.queue, int32(i))
	}
	return s
}

func (s *slowPool) lookup(hashes []uint64) (found []int32) {
	for _, h := range hashes {
		oldest := int32(-1)
		for b, have := range s.hash {
			if have == h && (oldest < 0 || s.since[b] < s.since[oldest]) {
				oldest = b
			}
		}
		if oldest < 0 {
			break
		}
		found = append(found, oldest)
	}
	return found
}

func (s *slowPool) touch(blocks []int32) {
	for _, b := range blocks {
		if i := slices.Index(s.queue, b); i >= 0 {
			s.queue = slices.Delete(s.queue, i, i+1)
		}
		s.refs[b]++
	}
}

func (s *slowPool) take(n int) (taken []int32) {
	for range n {
		b := s.queue[0]
		s.queue = s.queue[1:]
		delete(s.hash, b)
		s.refs[b] = 1
		taken = append(taken, b)
	}
	return taken
}

func (s *slowPool) commit(b int32, h uint64) {
	if _, ok := s.hash[b]; !ok {
		s.clock++
		s.hash[b], s.since[b] = h, s.clock
	}
}

func (s *slowPool) release(blocks []int32) {
	var bare []int32
	for _, b := range slices.Backward(blocks) {
		if s.refs[b]--; s.refs[b] > 0 {
			continue
		}
		if _, ok := s.hash[b]; ok {
			s.queue = append(s.queue, b)
		} else {
			bare = append(bare, b)
		}
	}
	s.queue = append(bare, s.queue...)
}

// Any run of concurrent requests leaves the pool as the plain one would be.
func TestVLLMPoolAgainstPlain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "blocks")
		p, err := prefixcache.NewVLLMPool(n)
		if err != nil {
			rt.Fatal(err)
		}
		s := newSlowPool(n)
		var running [][]int32
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if len(running) > 0 && rapid.Bool().Draw(rt, "end one") {
				i := rapid.IntRange(0, len(running)-1).Draw(rt, "which")
				p.Release(running[i])
				s.release(running[i])
				running = slices.Delete(running, i, i+1)
				continue
			}
			running = append(running, startBoth(rt, p, s))
			if p.Free() != len(s.queue) {
				rt.Fatalf("%d free, want %d", p.Free(), len(s.queue))
			}
		}
		for _, r := range running {
			p.Release(r)
			s.release(r)
		}
		order, _ := p.Take(nil, n)
		if !slices.Equal(order, s.queue) || p.Free() != 0 {
			rt.Fatalf("at the end the queue is %v, want %v", order, s.queue)
		}
	})
}

// startBoth starts a request of few distinct hashes in both pools, if it fits.
func startBoth(rt *rapid.T, p *prefixcache.VLLMPool, s *slowPool) []int32 {
	hashes := rapid.SliceOfN(rapid.Uint64Range(1, 5), 0, 4).Draw(rt, "hashes")
	tail := rapid.IntRange(0, 2).Draw(rt, "blocks without a hash")
	hits := p.Lookup(nil, hashes)
	if want := s.lookup(hashes); !slices.Equal(hits, want) {
		rt.Fatalf("look-up of %v: %v, want %v", hashes, hits, want)
	}
	need := len(hashes) - len(hits) + tail
	if need+p.Idle(hits) > p.Free() {
		return nil
	}
	p.Touch(hits)
	s.touch(hits)
	blocks, ok := p.Take(slices.Clone(hits), need)
	if want := s.take(need); !ok || !slices.Equal(blocks[len(hits):], want) {
		rt.Fatalf("took %v, %v; want %v", blocks[len(hits):], ok, want)
	}
	for i := len(hits); i < len(hashes); i++ {
		p.Commit(blocks[i], hashes[i])
		s.commit(blocks[i], hashes[i])
	}
	return blocks
}

func BenchmarkVLLMPool(b *testing.B) {
	p, err := prefixcache.NewVLLMPool(1 << 14)
	if err != nil {
		b.Fatal(err)
	}
	var blocks []int32
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		blocks, _ = p.Take(blocks[:0], 64)
		for j, block := range blocks {
			p.Commit(block, uint64(i*64+j)*0x9e3779b97f4a7c15)
		}
		p.Release(blocks)
	}
	b.ReportMetric(float64(b.N)*64/b.Elapsed().Seconds(), "blocks/s")
}

func ExampleVLLMPool() {
	p, err := prefixcache.NewVLLMPool(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	hashes := []uint64{101, 102} // of a prompt's full blocks
	blocks, _ := p.Take(nil, 3)  // two full ones and the open one
	for i, h := range hashes {
		p.Commit(blocks[i], h)
	}
	p.Release(blocks)
	fmt.Println("free:", p.Free(), "found again:", len(p.Lookup(nil, hashes)))
	// Output: free: 4 found again: 2
}
