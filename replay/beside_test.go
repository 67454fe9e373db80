package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retrace/openai"
	"retrace/record"
)

// listener is a server that keeps what it was asked, and answers after a while.
type listener struct {
	mu     sync.Mutex
	bodies []string
	at     []time.Time
	most   int // at once
	now    int
}

func (l *listener) handler(wait time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		l.bodies, l.at = append(l.bodies, r.URL.Path+" "+string(b)), append(l.at, time.Now())
		l.now++
		l.most = max(l.most, l.now)
		l.mu.Unlock()
		scripted(step{wait, word + done})(w, r)
		l.mu.Lock()
		l.now--
		l.mu.Unlock()
	}
}

// tokens are the token ids of the bodies.
func (l *listener) tokens(t *testing.T) (list [][]int) {
	t.Helper()
	for _, b := range l.bodies {
		var doc struct{ Prompt []int }
		_, text, _ := strings.Cut(b, " ")
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		list = append(list, doc.Prompt)
	}
	return list
}

func marked(results []record.Result, m record.Mark) (list []record.Result) {
	for _, r := range results {
		if r.Mark == m {
			list = append(list, r)
		}
	}
	return list
}

// blocky is n requests of two blocks of 16 tokens, all with one first block.
func blocky(gap time.Duration, n int) []record.Request {
	list := every(gap, n)
	for i := range list {
		list[i].InputTokens, list[i].Blocks = 32, []uint64{1, uint64(i + 2)}
	}
	return list
}

// TestWarmUp (M11): the warm-up is over before the origin, has the shapes of the
// first requests, shares no block with the trace, and is in no figure.
func TestWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		reqs := blocky(10*ms, 3)
		reqs[0].OutputTokens, reqs[1].OutputTokens, reqs[2].InputTokens = 5, 6, 20
		out, results := inBubble(t, answers(l.handler(50*ms)), reqs, func(c *Config) {
			c.Load.WarmUp, c.MaxConcurrency, c.Header.BlockSize, c.ServerBlockSize = 7, 2, 16, 16
		})
		sum(t, out, results)
		warm := marked(results, record.WarmUp)
		if out.Planned != 3 || out.Completed != 3 || len(warm) != 7 || out.Target.WarmUp != 7 || l.most != 2 {
			t.Fatalf("%+v, %d warm-up results, %d at once", out, len(warm), l.most)
		}
		wanted := []string{"32 5", "32 6", "20 2"} // in turn
		for _, r := range warm {
			var i int
			if _, err := fmt.Sscanf(r.ID, "warmup-%d", &i); err != nil || r.End > 0 || r.Sent >= r.End || r.State != record.Completed ||
				fmt.Sprint(r.WantedInput, r.WantedOutput) != wanted[i%3] {
				t.Errorf("%+v", r)
			}
		}
		tokens := l.tokens(t)
		for i, w := range tokens[:7] {
			for _, p := range tokens[7:] {
				if fmt.Sprint(w[:16]) == fmt.Sprint(p[:16]) {
					t.Errorf("request %d of the warm-up begins like one of the trace", i)
				}
			}
		}
		if same := fmt.Sprint(tokens[7][:16]) == fmt.Sprint(tokens[8][:16]); !same {
			t.Error("the trace's requests share no block any more")
		}
		for _, r := range marked(results, record.Planned) {
			if r.ID == "0" && r.PredictedHit != 0 {
				t.Errorf("predicted hits %d of the first request", r.PredictedHit)
			}
		}
	})
}

// TestWarmUpThatCannotBe: a server that fails, one that is not there, a trace
// without lengths.
func TestWarmUpThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := answers(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(500)
		})
		bare := every(0, 1)
		bare[0].InputTokens = record.Unknown
		for _, c := range []struct {
			h    http.Handler
			reqs []record.Request
			note string
		}{
			{fails, every(0, 1), "2 of 2 requests of the warm-up failed (http_5xx: HTTP 500"},
			{prompt1, bare, "no warm-up: the trace's first requests have no lengths"},
			{prompt1, nil, "no warm-up: the trace's first requests have no lengths"},
			{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }), every(0, 1), "no warm-up: the server is not ready"},
		} {
			out, results := inBubble(t, c.h, c.reqs, func(cfg *Config) { cfg.Load.WarmUp, cfg.ReadyTimeout = 2, -1 })
			sum(t, out, results)
			if notes := strings.Join(out.Target.Notes, "\n"); !strings.Contains(notes, c.note) || out.Planned != int64(len(c.reqs)) {
				t.Errorf("notes %q, want %q; %+v", notes, c.note, out)
			}
		}
	})
}

// TestWarmUpIsInterrupted: Ctrl-C in the warm-up ends the run before it begins.
func TestWarmUpIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		b := newBubble(answers(l.handler(time.Second)))
		defer b.server.Close() // nothing is served any more
		ctx, cancel := context.WithTimeout(t.Context(), 1500*ms)
		defer cancel()
		cfg := Config{URLs: []string{"http://127.0.0.1"}, coarse: true, dial: b.dial, MaxConcurrency: 1, Load: Load{WarmUp: 100}}
		out, err := Run(ctx, cfg, seq(every(0, 3)))
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil || out.Planned != 0 || len(l.bodies) != 2 {
			t.Errorf("%v, %+v, %d requests", err, out, len(l.bodies))
		}
	})
}

// TestLiteralWarmUp: bodies warm their own API up, by prompts of their length.
func TestLiteralWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		reqs := []record.Request{chatTurn(0, "user", `"the trace's own words"`)}
		reqs[0].InputTokens = record.Unknown
		out, _ := inBubble(t, answers(l.handler(0)), reqs, func(c *Config) { c.Prompt, c.Load.WarmUp, c.Load.ProbeRate = Literal, 1, 0 })
		if out.Completed != 1 || len(l.bodies) != 2 || !strings.HasPrefix(l.bodies[0], "/v1/chat/completions ") || strings.Contains(l.bodies[0], "own words") ||
			!strings.Contains(l.bodies[0], `"max_tokens":2`) {
			t.Errorf("%+v, asked %q", out, l.bodies)
		}
	})
}

// TestProbes: probes pass a full server by, ask for one token each, share no
// prompt, come as often as asked, and end with the load.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		out, results := inBubble(t, answers(l.handler(10*time.Second)), every(100*ms, 50), func(c *Config) {
			c.MaxConcurrency, c.Load.ProbeRate, c.Seed, c.Grace = 1, 4, 3, 20*time.Second
		})
		sum(t, out, results)
		probes := marked(results, record.Probe)
		// 50 requests one after the other take 500 s; 4/s are 2000 ± 45
		if n := float64(len(probes)); math.Abs(n-2000) > 200 || out.Planned != 50 || out.Completed != 50 {
			t.Errorf("%d probes, %+v", len(probes), out)
		}
		seen := map[string]bool{}
		late := 0
		for _, r := range probes {
			if r.Sent != r.Scheduled || r.Granted != r.Scheduled || r.WantedOutput != 1 || r.State != record.Completed {
				late++
			}
		}
		for _, ids := range l.tokens(t) {
			if len(ids) == probeWords {
				seen[fmt.Sprint(ids)] = true
			}
		}
		if late > 0 || len(seen) != len(probes) {
			t.Errorf("%d probes late or not as wanted, %d prompts of %d", late, len(seen), len(probes))
		}
	})
}

// TestProbesAreCut: probes that are not answered are cut after the grace.
func TestProbesAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := answers(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			if strings.Contains(string(b), `"max_tokens":1,`) || strings.Contains(string(b), `"max_tokens":1}`) {
				<-r.Context().Done()
				return
			}
			scripted(step{time.Second, word + done})(w, r)
		})
		out, results := inBubble(t, h, every(time.Second, 3), func(c *Config) { c.Load.ProbeRate, c.Grace = 3, 2*time.Second })
		sum(t, out, results)
		probes := marked(results, record.Probe)
		for _, r := range probes {
			if r.State != record.Cancelled || r.End != 5*time.Second { // the load ends at 3 s
				t.Errorf("%v at %v, %s", r.State, r.End, r.Error)
			}
		}
		if len(probes) == 0 || out.Lost() {
			t.Errorf("%d probes, %+v", len(probes), out)
		}
	})
}

// TestSideAPI: the overhead probe aside, what is sent beside bodies goes where
// they go.
func TestSideAPI(t *testing.T) {
	e := &engine{cfg: Config{API: openai.Completions, Prompt: Literal}}
	for api, want := range map[string]openai.API{"chat": openai.Chat, "": openai.Completions, "transcriptions": openai.Completions, "nonsense": openai.Completions} {
		r := record.Request{API: api, Body: []byte("{}")}
		if got := e.sideAPI(&r); got != want {
			t.Errorf("%s: %s", api, got)
		}
	}
	r := record.Request{API: "chat", Body: []byte("{}")}
	if e.cfg.Prompt = Tokens; e.sideAPI(&r) != openai.Completions {
		t.Error("a body that is not used")
	}
}
