package simserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retrace/openai"
)

// timed is a server in which 1,000 prompt tokens take a second and a step
// 10 ms beside, whatever the number of sequences.
func timed() Config {
	return Config{PrefillTokensPerSecond: 1000, DecodeStep: 10 * time.Millisecond}
}

// inBubble runs a test in virtual time with a server that has no network.
func inBubble(t *testing.T, cfg Config, test func(t *testing.T, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s)
	})
}

// prepared makes the call of a completion without sending it.
func prepared(t testing.TB, s *Server, body string) *generation {
	t.Helper()
	g := &generation{path: openai.Completions, api: openai.Completions, body: []byte(body)}
	if err := s.prepare(g, &http.Request{}, 1); err != nil {
		t.Fatal(err.message)
	}
	return g
}

// ask is a completion of n prompt tokens from base on.
func ask(base, n, maxTokens int, more string) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(base + i)
	}
	return fmt.Sprintf(`{"prompt":[%s],"max_tokens":%d%s}`, strings.Join(ids, ","), maxTokens, more)
}

// arrivals submits a call now and returns when each of its tokens came, as
// offsets from now, once all of them have.
func arrivals(s *Server, g *generation) []time.Duration {
	start := time.Now()
	s.engine.submit(g.call)
	var at []time.Duration
	for !g.finished() {
		<-g.call.bell
		for total := g.shown(); len(at) < total; {
			at = append(at, time.Since(start))
		}
	}
	return at
}

func (g *generation) shown() (n int) {
	for _, q := range g.call.seqs {
		n += int(q.shown.Load())
	}
	return n
}

func equalTimes(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("tokens came at %v, want %v", got, want)
	}
}

const ms = time.Millisecond

// 100 tokens of prefill are 100 ms, and each step 10 ms.
func TestOneRequest(t *testing.T) {
	inBubble(t, timed(), func(t *testing.T, s *Server) {
		equalTimes(t, arrivals(s, prepared(t, s, ask(0, 100, 4, ""))), 110*ms, 120*ms, 130*ms, 140*ms)
	})
}

// Steps follow each other without drift: 1,000 steps of 7 ms are 7 s, though
// each deadline is a timer of its own.
func TestNoDrift(t *testing.T) {
	inBubble(t, Config{DecodeStep: 7 * ms}, func(t *testing.T, s *Server) {
		at := arrivals(s, prepared(t, s, ask(0, 10, 1000, "")))
		if last := at[len(at)-1]; last != 7*time.Second {
			t.Errorf("the last token came at %v, want 7s", last)
		}
	})
}

// A step with k decoding sequences takes 10·(1−0.5) + 10·0.5·k ms.
func TestBatchSlowsDown(t *testing.T) {
	cfg := timed()
	cfg.PrefillTokensPerSecond, cfg.BatchSlowdown = 0, 0.5
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		g := prepared(t, s, ask(0, 10, 3, `,"n":2`))
		// Prefill only: 5 ms. Then two decoding: 15 ms each.
		equalTimes(t, arrivals(s, g), 5*ms, 5*ms, 20*ms, 20*ms, 35*ms, 35*ms)
	})
}

// A prompt of 250 tokens on a budget of 100 a step is prefilled in three
// steps: 100+10, 100+10 and 50+10 ms.
func TestChunkedPrefill(t *testing.T) {
	cfg := timed()
	cfg.MaxBatchTokens = 100
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		equalTimes(t, arrivals(s, prepared(t, s, ask(0, 250, 2, ""))), 280*ms, 290*ms)
	})
}

// A decoding sequence goes on during another's chunked prefill, and takes one
// token of the budget: the prompt gets 99 a step.
func TestDecodingGoesOnDuringPrefill(t *testing.T) {
	cfg := timed()
	cfg.MaxBatchTokens = 100
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		first, second := prepared(t, s, ask(0, 1, 5, "")), prepared(t, s, ask(5000, 198, 1, ""))
		s.engine.submit(second.call)
		s.engine.submit(first.call)
		synctest.Wait() // second: 100 tokens in the first step, no room for first
		start := time.Now()
		for !second.finished() {
			<-second.call.bell
		}
		// Steps: 100 → 110 ms; 98 + first's 1 → 109 ms.
		if got := time.Since(start); got != 219*ms {
			t.Errorf("the long prompt's token came after %v, want 219ms", got)
		}
		for !first.finished() {
			<-first.call.bell
		}
		if got := time.Since(start); got != 259*ms {
			t.Errorf("the short request ended after %v, want 259ms", got)
		}
	})
}

// The second time, the shared prefix costs nothing: of 100 tokens ⌊99/16⌋ = 6
// blocks are in the cache, 4 tokens are computed.
func TestCacheShowsInFirstToken(t *testing.T) {
	inBubble(t, timed(), func(t *testing.T, s *Server) {
		equalTimes(t, arrivals(s, prepared(t, s, ask(0, 100, 1, ""))), 110*ms)
		g := prepared(t, s, ask(0, 100, 1, ""))
		equalTimes(t, arrivals(s, g), 14*ms)
		if got := g.usage(); got.Cached != 96 || got.Prompt != 100 {
			t.Errorf("usage %+v, want 96 of 100 cached", got)
		}
	})
}

// Three identical prompts at once: blocks are usable from the moment that they
// are scheduled (VLLM.md §2), so one computes and two find all but the last block.
func TestIdenticalPromptsAtOnce(t *testing.T) {
	inBubble(t, timed(), func(t *testing.T, s *Server) {
		var gs []*generation
		for range 3 {
			gs = append(gs, prepared(t, s, ask(0, 64, 2, "")))
		}
		for _, g := range gs {
			s.engine.submit(g.call)
		}
		time.Sleep(time.Second)
		for i, want := range []int64{0, 48, 48} {
			if got := gs[i].usage().Cached; got != want {
				t.Errorf("prompt %d: %d cached, want %d", i, got, want)
			}
		}
	})
}

func TestSaltIsolates(t *testing.T) {
	inBubble(t, timed(), func(t *testing.T, s *Server) {
		for _, c := range []struct {
			salt string
			want int64
		}{{"", 0}, {"", 32}, {"a", 0}, {"b", 0}, {"a", 32}} {
			g := prepared(t, s, ask(0, 40, 1, `,"cache_salt":"`+c.salt+`"`))
			arrivals(s, g)
			if got := g.usage().Cached; got != c.want {
				t.Errorf("salt %q: %d cached, want %d", c.salt, got, c.want)
			}
		}
	})
}

// With room for one sequence the second waits for the first one's end.
func TestFirstComeFirstServed(t *testing.T) {
	cfg := timed()
	cfg.MaxBatch = 1
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		first := prepared(t, s, ask(0, 10, 3, "")) // 20, 30, 40 ms
		s.engine.submit(first.call)
		equalTimes(t, arrivals(s, prepared(t, s, ask(900, 10, 1, ""))), 60*ms)
	})
}

// A cache of 4 blocks of 16 holds two sequences of 17…32 tokens. Both start
// with 17, so both want a third block when they have 33: the later one goes
// back to the line, and ends after the earlier one, with all its tokens.
func TestPreemption(t *testing.T) {
	cfg := timed()
	cfg.CacheBlocks = 4
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		a, b := prepared(t, s, ask(0, 17, 20, "")), prepared(t, s, ask(900, 17, 20, ""))
		start := time.Now()
		s.engine.submit(a.call)
		s.engine.submit(b.call)
		ends := map[string]time.Duration{}
		for len(ends) < 2 {
			select {
			case <-a.call.bell:
				if a.finished() {
					ends["a"] = time.Since(start)
				}
			case <-b.call.bell:
				if b.finished() {
					ends["b"] = time.Since(start)
				}
			}
		}
		// One step of 34 + 10 ms, then 19 steps of 10 ms.
		if ends["a"] != 234*ms {
			t.Errorf("a ended after %v, want 234ms", ends["a"])
		}
		if ends["b"] <= ends["a"] {
			t.Errorf("b ended after %v, before a", ends["b"])
		}
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		if st := &s.engine.stats; st.preemptions != 1 || st.queries != 34 || st.generated != 40 {
			t.Errorf("%d preemptions, %d queried, %d generated; want 1, 34 (not counted again), 40", st.preemptions, st.queries, st.generated)
		}
		if free := s.engine.pool.Free(); free != 4 {
			t.Errorf("%d blocks are free at the end, want 4", free)
		}
	})
}

// A client that goes away frees its blocks before the next step, running or waiting.
func TestDrop(t *testing.T) {
	cfg := timed()
	cfg.MaxBatch = 1
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		running, waiting := prepared(t, s, ask(0, 10, 1000, "")), prepared(t, s, ask(90, 10, 1000, ""))
		s.engine.submit(running.call)
		s.engine.submit(waiting.call)
		time.Sleep(100 * ms)
		s.engine.drop(waiting.call)
		s.engine.drop(running.call)
		time.Sleep(20 * ms)
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		if e := s.engine; e.pool.Free() != e.pool.Len() || len(e.running) != 0 || e.waiting.len() != 0 || e.stats.aborted != 2 {
			t.Errorf("free %d of %d, running %d, waiting %d, aborted %d", e.pool.Free(), e.pool.Len(), len(e.running), e.waiting.len(), e.stats.aborted)
		}
	})
}

// After a stall the engine makes up for at most 50 ms of its own delay.
func TestIdleTimeIsNoDebt(t *testing.T) {
	inBubble(t, timed(), func(t *testing.T, s *Server) {
		arrivals(s, prepared(t, s, ask(0, 10, 1, "")))
		time.Sleep(time.Hour)
		equalTimes(t, arrivals(s, prepared(t, s, ask(500, 10, 2, ""))), 20*ms, 30*ms)
	})
}
