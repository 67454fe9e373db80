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

	"retrace/record"
)

// turnAt is one turn of a session; a negative at or delay means none.
func turnAt(row int64, session string, turn int, at, delay time.Duration) record.Request {
	r := record.NewRequest()
	r.Row, r.Session, r.Turn, r.InputTokens, r.OutputTokens = row, session, turn, 4, 2
	if at >= 0 {
		r.Arrival = at
	}
	if delay >= 0 {
		r.Delay = delay
	}
	return r
}

func scheduled(results []record.Result) (list []time.Duration) {
	for _, r := range results {
		list = append(list, r.Scheduled)
	}
	return list
}

// Each answer takes 100 ms. Expected times by hand from the rules in CLI.md.
func TestSessionModes(t *testing.T) {
	delays := []record.Request{ // a: 0, +1000 ms, +0; b: 50 ms, +500 ms
		turnAt(0, "a", 1, 0, -1), turnAt(1, "a", 2, -1, 1000*ms), turnAt(2, "a", 3, -1, 0),
		turnAt(3, "b", 1, 50*ms, -1), turnAt(4, "b", 2, -1, 500*ms),
	}
	times := []record.Request{ // a's second turn comes before the first ends
		turnAt(0, "a", 1, 0, -1), turnAt(1, "a", 2, 30*ms, -1), turnAt(2, "a", 3, 900*ms, -1), turnAt(3, "", 0, 950*ms, -1),
	}
	tree := []record.Request{turnAt(0, "a", 1, 0, -1), turnAt(1, "a", 2, 10*ms, -1), turnAt(2, "a", 2, 20*ms, -1)}
	tree[1].Parent, tree[2].Parent = "0", "0"
	for _, c := range []struct {
		name  string
		reqs  []record.Request
		mode  SessionMode
		speed float64
		want  []time.Duration
	}{
		{"closed, delays", delays, Closed, 1, []time.Duration{0, 1100 * ms, 1200 * ms, 50 * ms, 650 * ms}},
		{"closed, delays, twice as fast", delays, Closed, 2, []time.Duration{0, 600 * ms, 700 * ms, 25 * ms, 375 * ms}},
		{"open, delays only", delays, Open, 1, []time.Duration{0, 1100 * ms, 1200 * ms, 50 * ms, 650 * ms}},
		{"open, own times", times, Open, 1, []time.Duration{0, 30 * ms, 900 * ms, 950 * ms}},
		{"closed, own times", times, Closed, 1, []time.Duration{0, 100 * ms, 900 * ms, 950 * ms}},
		{"closed, two turns after one", tree, Closed, 1, []time.Duration{0, 100 * ms, 100 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, results := inBubble(t, answers(scripted(step{100 * ms, word + done})), c.reqs, func(cfg *Config) {
					cfg.Sessions, cfg.Speed, cfg.Header.DelayMeaning = c.mode, c.speed, "after the answer"
				})
				if got := scheduled(results); fmt.Sprint(got) != fmt.Sprint(c.want) || out.Completed != int64(len(c.reqs)) {
					t.Errorf("scheduled %v, want %v; %+v", got, c.want, out)
				}
				for _, r := range results {
					if r.Sent != r.Scheduled {
						t.Errorf("request %s: scheduled %v, sent %v", r.ID, r.Scheduled, r.Sent)
					}
				}
			})
		})
	}
}

func TestTurnsAfterAFailureAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := 0
		h := func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked++
			fail := asked == 2
			mu.Unlock()
			if fail {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(500)
				return
			}
			scripted(step{0, word + done})(w, r)
		}
		reqs := []record.Request{turnAt(0, "a", 1, 0, -1)}
		for i := range int64(4) {
			reqs = append(reqs, turnAt(i+1, "a", int(i)+2, -1, 10*ms))
		}
		out, _ := inBubble(t, answers(h), reqs, func(c *Config) { c.Sessions = Closed })
		if out.Completed != 1 || out.Failed != 1 || out.NotSent != 3 || out.Reasons[reasonPredecessor] != 3 {
			t.Errorf("%+v", out)
		}
	})
}

// A turn whose parent is not in the plan goes at its own time.
func TestTurnWithoutItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orphan := turnAt(7, "a", 4, 200*ms, -1)
		orphan.Parent = "6"
		late := turnAt(8, "b", 2, -1, 5*ms)
		_, results := inBubble(t, answers(scripted(step{0, word + done})), []record.Request{orphan, late}, func(c *Config) { c.Sessions = Closed })
		if results[0].Scheduled != 200*ms || results[1].Scheduled != 200*ms {
			t.Errorf("scheduled %v", scheduled(results))
		}
	})
}

func TestUnplannableRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bare := record.NewRequest()
		bare.Arrival = 0
		zero := record.NewRequest()
		zero.Row, zero.Arrival, zero.InputTokens, zero.OutputTokens = 1, 0, 0, 0
		zero.Observed.Failed = true
		var bodies []string
		h := func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(b))
			scripted(step{0, word + done})(w, r)
		}
		for policy, want := range map[ZeroPolicy]string{ZeroOne: `"max_tokens":1`, ZeroAsRecorded: `"prompt":[]`, ZeroSkip: ""} {
			bodies = nil
			out, _ := inBubble(t, answers(h), []record.Request{bare, zero}, func(c *Config) { c.ZeroOutput = policy })
			if len(bodies) > 1 || !strings.Contains(strings.Join(bodies, ""), want) || out.Reasons["input tokens are unknown"] != 1 {
				t.Errorf("%s: bodies %q, %+v", policy, bodies, out)
			}
			if skipped := out.Reasons[reasonNoOutput]; (skipped == 1) != (policy == ZeroSkip) {
				t.Errorf("%s: %d skipped", policy, skipped)
			}
		}
	})
}
