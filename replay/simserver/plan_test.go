package simserver

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrace/openai"
)

// stepped is a server whose engine has no goroutine: the test makes the steps.
func stepped(t rapid.TB, cfg Config) *Server {
	t.Helper()
	cfg.fill()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: cfg, tok: newTokenizer(cfg.VocabSize)}
	var err error
	if s.engine, err = newEngine(&s.cfg, s.tok); err != nil {
		t.Fatal(err)
	}
	return s
}

// call makes a call of token prompts.
func (s *Server) testCall(t rapid.TB, prompt []uint32, p openai.Params) *generation {
	t.Helper()
	g := &generation{api: openai.Completions, params: &p, prompts: 1, call: &call{bell: make(chan struct{}, 1)}}
	if err := s.addPrompt(g, prompt); err != nil {
		t.Fatal(err.message)
	}
	return g
}

// Whatever arrives and goes away, no step passes its limits, no block is held
// by nobody, and every request that stays comes to its end.
func TestScheduleLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			BlockSize: rapid.IntRange(1, 5).Draw(rt, "block size"), CacheBlocks: rapid.IntRange(8, 40).Draw(rt, "blocks"),
			MaxBatch: rapid.IntRange(1, 5).Draw(rt, "batch"), MaxBatchTokens: rapid.IntRange(1, 30).Draw(rt, "budget"),
		}
		s := stepped(rt, cfg)
		e := s.engine
		var live []*generation
		for range rapid.IntRange(1, 25).Draw(rt, "requests") {
			n := rapid.IntRange(1, s.cfg.MaxModelLen-1).Draw(rt, "prompt")
			prompt := make([]uint32, n)
			for i := range prompt {
				prompt[i] = uint32(i)
			}
			prompt[rapid.IntRange(0, n-1).Draw(rt, "where it differs")] = rapid.Uint32Range(0, 3).Draw(rt, "how")
			p := openai.Params{MaxTokens: int64(rapid.IntRange(1, s.cfg.MaxModelLen-n).Draw(rt, "output")), N: int64(rapid.IntRange(1, 2).Draw(rt, "n"))}
			g := s.testCall(rt, prompt, p)
			e.submit(g.call)
			live = append(live, g)
			for range rapid.IntRange(0, 6).Draw(rt, "steps") {
				checkedStep(rt, s)
			}
			if rapid.IntRange(0, 9).Draw(rt, "drop one") == 0 {
				i := rapid.IntRange(0, len(live)-1).Draw(rt, "which")
				e.drop(live[i].call)
				live = append(live[:i], live[i+1:]...)
			}
		}
		for steps := 0; checkedStep(rt, s); steps++ {
			if steps > 200_000 {
				rt.Fatal("no end: requests starve")
			}
		}
		for _, g := range live {
			if !g.finished() {
				rt.Fatal("a request that stayed has no end")
			}
			for _, q := range g.call.seqs {
				if c := int(q.cached.Load()); c < 0 || c > (q.promptLen-1)/s.cfg.BlockSize*s.cfg.BlockSize {
					rt.Fatalf("%d of %d tokens cached in blocks of %d", c, q.promptLen, s.cfg.BlockSize)
				}
			}
		}
		if e.pool.Free() != e.pool.Len() {
			rt.Fatalf("%d of %d blocks are free at the end", e.pool.Free(), e.pool.Len())
		}
	})
}

// checkedStep makes one step and checks it; false where there was nothing to do.
func checkedStep(rt *rapid.T, s *Server) bool {
	e := s.engine
	e.receive()
	p := e.plan()
	if p.tokens > s.cfg.MaxBatchTokens || len(e.running) > s.cfg.MaxBatch {
		rt.Fatalf("%d tokens of %d, %d sequences of %d in a step", p.tokens, s.cfg.MaxBatchTokens, len(e.running), s.cfg.MaxBatch)
	}
	if p.prefill+p.decoding != p.tokens {
		rt.Fatalf("plan does not add up: %+v", p)
	}
	held := map[int32]bool{}
	for _, q := range e.running {
		if len(q.blocks) < e.blocksFor(q.computed+q.step) || q.computed+q.step > q.known() {
			rt.Fatalf("%d blocks for %d + %d of %d tokens", len(q.blocks), q.computed, q.step, q.known())
		}
		for _, b := range q.blocks {
			held[b] = true
		}
	}
	if len(held) != e.pool.Len()-e.pool.Free() {
		rt.Fatalf("running requests hold %d blocks, the pool says %d", len(held), e.pool.Len()-e.pool.Free())
	}
	e.complete(time.Time{})
	return p.tokens > 0
}

// The 300 requests of a recording of a real vLLM server, with its 512 blocks,
// find the same number of cached tokens here. (Outputs that are fed back are
// this server's own: the same number of tokens, other ids.)
func TestCachedTokensOfRealServer(t *testing.T) {
	data, err := os.ReadFile("../../../shared/data/vllm/kvpool_golden.jsonl")
	if os.IsNotExist(err) {
		t.Skip("shared test data kvpool_golden.jsonl is not here")
	} else if err != nil {
		t.Fatal(err)
	}
	s := stepped(t, Config{CacheBlocks: 512})
	outputs := map[float64][]uint32{}
	checked := 0
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte(`{"kind":"config"`)) {
			continue
		}
		var g struct {
			I        float64
			Segments [][]any
			OutIDs   []uint32 `json:"out_ids"`
			Cached   int64    `json:"cached_tokens"`
		}
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatal(err)
		}
		var prompt []uint32
		for _, seg := range g.Segments {
			if seg[0] == "o" {
				prompt = append(prompt, outputs[seg[1].(float64)]...)
				continue
			}
			for j := range int(seg[2].(float64)) {
				prompt = append(prompt, uint32(((int(seg[1].(float64))+j)*7919+13)%151643))
			}
		}
		r := s.testCall(t, prompt, openai.Params{MaxTokens: int64(len(g.OutIDs)), N: 1})
		s.engine.submit(r.call)
		for !r.finished() {
			s.engine.receive()
			s.engine.plan()
			s.engine.complete(time.Time{})
		}
		if got := r.usage().Cached; got != g.Cached {
			t.Fatalf("request %v: %d cached, the real server had %d", g.I, got, g.Cached)
		}
		for k := range g.OutIDs {
			outputs[g.I] = append(outputs[g.I], s.tok.ids[s.tok.output(r.call.seqs[0].seed, k)])
		}
		checked++
	}
	if checked != 300 {
		t.Errorf("checked %d requests, want 300", checked)
	}
}

// BenchmarkSteps is the engine alone: 256 sequences that decode.
func BenchmarkSteps(b *testing.B) {
	s := stepped(b, Config{CacheBlocks: 1 << 16})
	prompt := make([]uint32, 64)
	for i := range 256 {
		prompt[0] = uint32(i)
		s.engine.submit(s.testCall(b, prompt, openai.Params{MaxTokens: 4000, N: 1}).call)
	}
	s.engine.receive()
	b.ReportAllocs()
	tokens := 0
	for b.Loop() {
		tokens += s.engine.plan().tokens
		s.engine.complete(time.Time{})
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}
