package replay

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// sum checks that a run's account adds up.
func sum(t *testing.T, out Outcome, results []record.Result) {
	t.Helper()
	var planned int64
	for i := range results {
		if results[i].Mark == record.Planned {
			planned++
		}
	}
	if out.Planned != planned || out.Planned != out.Completed+out.Failed+out.Cancelled+out.NotSent {
		t.Errorf("%d results of planned requests, %+v", planned, out)
	}
}

// TestStallUnderACap (R02): 100/s under a cap of 50 against a server that stalls
// until 2 s. By hand: the requests 0 to 49 hold all slots until 2 s. With queue
// those of 0.5 to 2 s leave together at 2 s, in turn; with shed they are not sent.
func TestStallUnderACap(t *testing.T) {
	for _, policy := range []Overflow{Queue, Shed} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now().Add(lead)
				h := func(w http.ResponseWriter, r *http.Request) {
					if wait := 2*time.Second - time.Since(begin); wait > 0 {
						time.Sleep(wait)
					}
					scripted(step{0, word + done})(w, r)
				}
				out, results := inBubble(t, answers(h), every(10*ms, 300), func(c *Config) {
					c.MaxConcurrency, c.Load.Overflow = 50, policy
				})
				sum(t, out, results)
				atOnce := 0
				for i, r := range results {
					if r.Sent == 2*time.Second {
						atOnce++
					}
					if r.State == record.NotSent && (policy != Shed || r.Reason != reasonShed || i < 50 || i > 200) {
						t.Errorf("request %d: %s", i, r.Reason)
					}
					if r.Sent != record.NoTime && r.Sent != r.Granted {
						t.Errorf("request %d: granted %v, sent %v", i, r.Granted, r.Sent)
					}
				}
				// 150 waited, and that of 2 s itself
				if policy == Queue && (atOnce < 150 || out.Completed != 300) || policy == Shed && (atOnce > 1 || out.NotSent < 150 || out.NotSent > 151) {
					t.Errorf("%d sent at once, %+v", atOnce, out)
				}
			})
		})
	}
}

// TestMaxDelay: delays of 10 s and 0.2 s under a cap of 1 s, twice as fast; an
// answer takes 100 ms.
func TestMaxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reqs := []record.Request{turnAt(0, "a", 1, 0, -1), turnAt(1, "a", 2, -1, 10*time.Second), turnAt(2, "a", 3, -1, 200*ms)}
		_, results := inBubble(t, answers(scripted(step{100 * ms, word + done})), reqs, func(c *Config) {
			c.Sessions, c.Load.MaxDelay, c.Speed = Closed, time.Second, 2
		})
		if got := fmt.Sprint(scheduled(results)); got != "[0s 600ms 800ms]" {
			t.Errorf("scheduled %v", got)
		}
	})
}

// TestFailedTurn (R23): turn 2 of 5 gets 500, 40 ms after it is sent.
func TestFailedTurn(t *testing.T) {
	for policy, want := range map[FailedTurn]string{
		StopSession:     "completed failed not_sent not_sent not_sent",
		ContinueSession: "completed failed completed completed completed",
	} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				h := func(w http.ResponseWriter, r *http.Request) {
					if n++; n == 2 {
						time.Sleep(40 * ms)
						w.WriteHeader(500)
						return
					}
					scripted(step{10 * ms, word + done})(w, r)
				}
				reqs := []record.Request{turnAt(0, "a", 1, 0, -1)}
				for i := range int64(4) {
					reqs = append(reqs, turnAt(i+1, "a", int(i)+2, -1, 100*ms))
				}
				out, results := inBubble(t, answers(h), reqs, func(c *Config) { c.Sessions, c.Load.FailedTurn = Closed, policy })
				sum(t, out, results)
				var states []string
				for _, r := range results {
					states = append(states, r.State.String())
				}
				if got := strings.Join(states, " "); got != want {
					t.Errorf("states %s, want %s", got, want)
				}
				if policy == StopSession {
					if out.Reasons[reasonPredecessor] != 3 || out.Failed != 1 {
						t.Errorf("%+v", out)
					}
				} else if got := fmt.Sprint(scheduled(results)); got != "[0s 110ms 250ms 360ms 470ms]" {
					t.Errorf("scheduled %s", got)
				}
			})
		})
	}
}

// TestContinueAfterNotSent: a turn that is shed is as good as over when it was
// due; one that cannot be planned is as if it were not there.
func TestContinueAfterNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unknown := turnAt(3, "a", 3, -1, 100*ms)
		unknown.InputTokens = record.Unknown
		reqs := []record.Request{
			turnAt(0, "", 0, 0, -1), // holds the only slot until 1 s
			turnAt(1, "a", 1, 100*ms, -1), turnAt(2, "a", 2, -1, 1000*ms), unknown, turnAt(4, "a", 4, -1, 300*ms),
		}
		slow := true
		h := func(w http.ResponseWriter, r *http.Request) {
			wait := 10 * ms
			if slow {
				slow, wait = false, time.Second
			}
			scripted(step{wait, word + done})(w, r)
		}
		out, results := inBubble(t, answers(h), reqs, func(c *Config) {
			c.Sessions, c.MaxConcurrency, c.Load.Overflow, c.Load.FailedTurn = Closed, 1, Shed, ContinueSession
		})
		sum(t, out, results)
		if r := results; r[1].Reason != reasonShed || r[2].Scheduled != 1100*ms || r[2].State != record.Completed ||
			r[3].Reason != prompt.ErrNoLength.Error() || r[4].Scheduled != 1410*ms || r[4].State != record.Completed {
			t.Errorf("%v, %+v", scheduled(results), out)
		}
	})
}

// chatTurn is a turn with a chat body of these messages, role and content by turns.
func chatTurn(row int64, messages ...string) record.Request {
	r := turnAt(row, "a", int(row)+1, time.Duration(row)*ms, -1)
	var parts []string
	for i := 0; i < len(messages); i += 2 {
		parts = append(parts, fmt.Sprintf(`{"role":%q,"content":%s}`, messages[i], messages[i+1]))
	}
	r.API, r.Body = "chat", []byte(`{"temperature":0,"messages": [`+strings.Join(parts, " , ")+`],"seed":1}`)
	return r
}

// TestLiveAnswers (R22): with live answers each turn holds what the server said
// before, at the place of what the trace has; recorded ones stay.
func TestLiveAnswers(t *testing.T) {
	reqs := []record.Request{
		chatTurn(0, "system", `"s"`, "user", `"one"`),
		chatTurn(1, "system", `"s"`, "user", `"one"`, "assistant", `"old 1"`, "user", `"two"`),
		chatTurn(2, "system", `"s"`, "user", `"one"`, "assistant", `"old 1"`, "user", `"two"`, "assistant", `"old 2"`, "user", `"three"`),
		chatTurn(3, "user", `"a shorter history"`),
	}
	for _, mode := range []Assistant{RecordedAnswers, LiveAnswers} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				h := func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					mu.Lock()
					got = append(got, string(b))
					n := len(got)
					mu.Unlock()
					text := fmt.Sprintf(`"content":"new \"%d\""`, n)
					scripted(step{10 * ms, event(text, "stop") + done})(w, r)
				}
				out, results := inBubble(t, answers(h), reqs, func(c *Config) {
					c.API, c.Prompt, c.Sessions, c.Load.Assistant, c.Model = openai.Chat, Literal, Closed, mode, ""
				})
				sum(t, out, results)
				for i, r := range results {
					want := `"messages": ` + between(string(reqs[i].Body), `"messages": `, `,"seed"`)
					if mode == LiveAnswers {
						want = strings.NewReplacer(`"old 1"`, `"new \"1\""`, `"old 2"`, `"new \"2\""`).Replace(want)
					}
					if !strings.Contains(got[i], want) || !strings.Contains(got[i], `"seed":1`) || r.Output != nil {
						t.Errorf("turn %d: sent %s\nwant %s; output %q", i+1, got[i], want, r.Output)
					}
				}
				if notes := strings.Join(out.Notes, ";"); strings.Contains(notes, "1 turn does not go on") != (mode == LiveAnswers) {
					t.Errorf("notes %s", notes)
				}
			})
		})
	}
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// TestLiveAnswersThatDoNotFit: a message that is not the assistant's plain text
// keeps what the trace has.
func TestLiveAnswersThatDoNotFit(t *testing.T) {
	first := chatTurn(0, "user", `"one"`)
	for body, fits := range map[string]bool{
		`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"old"}]}`:                                                         true,
		`{"messages":[{"role":"user","content":"one"},{"content":"old","role":"assistant","tool_calls":null}]}`:                                       true,
		`{"messages":[{"role":"user","content":"one"},{"role":"user","content":"old"}]}`:                                                              false,
		`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"x"}]}]}`:                                false,
		`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"text","text":"old"}]}]}`:                                false,
		`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"old","tool_calls":[{"id":"x"}]},{"role":"user","content":"y"}]}`: false,
		`{"messages":[{"role":"user","content":"another"},{"role":"assistant","content":"old"}]}`:                                                     false,
		`{"messages":[{"role":"user","content":"one"}]}`:                                                                                              false,
		`{"messages":"no list"}`: false,
		`{"prompt":"none"}`:      false,
		`broken`:                 false,
	} {
		a, b := &job{source: first.Body, res: record.NewResult()}, &job{source: []byte(body)}
		if !a.converse(nil) {
			t.Fatal("first turn")
		}
		a.res.State, a.res.Output = record.Completed, []byte("é\n")
		got := b.converse(a.after())
		if got != fits || fits != strings.Contains(string(b.source), `"é\n"`) || !fits && string(b.source) != body {
			t.Errorf("%s: %v, became %s", body, got, b.source)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"assistant","content":"x"}]}`))
	f.Add([]byte(`{"messages":[1, {"content" : {} }]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := messages(body)
		if err != nil {
			return
		}
		at := 0
		for _, m := range list {
			if m.start < at || m.end < m.start || m.spoken && (m.from < m.start || m.to > m.end || body[m.from] != '"' || body[m.to-1] != '"') {
				t.Fatalf("%+v of %q", m, body)
			}
			at = m.end
		}
	})
}

func TestLoadIsValidated(t *testing.T) {
	base := Config{URLs: []string{"http://localhost"}}
	for want, change := range map[string]func(*Config){
		"overflow": func(c *Config) { c.Load.Overflow = "drop" }, "shed: it needs": func(c *Config) { c.Load.Overflow = Shed },
		"failed turn": func(c *Config) { c.Load.FailedTurn = "x" }, "assistant": func(c *Config) { c.Load.Assistant = "x" },
		"live answers need": func(c *Config) { c.Load.Assistant, c.Sessions = LiveAnswers, Open },
		"negative":          func(c *Config) { c.Load.WarmUp = -1 }, "probe rate": func(c *Config) { c.Load.ProbeRate = -1 },
		"warm-up": func(c *Config) { c.Load.WarmUp = MaxWarmUp + 1 }, "want at most 10000": func(c *Config) { c.Load.ProbeRate = 1e300 },
		"rate 0": func(c *Config) { c.Placing.Law.Kind = "poisson" },
		"years":  func(c *Config) { c.Placing.Law.Kind, c.Placing.Law.Rate, c.Placing.Count = "poisson", 1e-9, 100 },
	} {
		c := base
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
