package replay

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retrace/record"
)

// moody answers by the count of requests: well, slowly, with an error, with a
// broken connection, or never.
func moody(moods []int) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch i := n.Add(1) - 1; moods[int(i)%len(moods)] {
		case 0, 1:
			scripted(step{20 * ms, word + done})(w, r)
		case 2:
			scripted(step{3 * time.Second, word + done})(w, r)
		case 3:
			w.WriteHeader(503)
		case 4:
			panic(http.ErrAbortHandler)
		case 5:
			<-r.Context().Done()
		}
	}
}

// TestEveryRequestHasOneResult: whatever the load, the policies and the server,
// each request of the plan has exactly one result, of one of the four states, and
// the account adds up; so have the requests of the warm-up.
func TestEveryRequestHasOneResult(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		reqs := genTrace(rt)
		moods := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 6).Draw(rt, "moods")
		var cfg Config
		genPlacing(rt, &cfg, reqs)
		change := func(c *Config) {
			c.Sessions, c.Seed, c.Placing = cfg.Sessions, cfg.Seed, cfg.Placing
			c.Header.DelayMeaning = "after the answer"
			c.Timeout, c.Grace = 5*time.Second, time.Second
			c.MaxConcurrency = rapid.IntRange(0, 3).Draw(rt, "slots")
			c.MaxInFlight = rapid.SampledFrom([]int{1, 4, 0}).Draw(rt, "in flight")
			c.MaxDuration = time.Duration(rapid.SampledFrom([]int{0, 1, 20}).Draw(rt, "duration")) * time.Second
			c.Speed = rapid.SampledFrom([]float64{1, 50}).Draw(rt, "speed")
			c.Load.FailedTurn = rapid.SampledFrom([]FailedTurn{StopSession, ContinueSession}).Draw(rt, "failed turn")
			c.Load.MaxDelay = time.Duration(rapid.IntRange(0, 2).Draw(rt, "max delay")) * ms
			c.Load.Retries = rapid.IntRange(0, 2).Draw(rt, "retries")
			c.Load.WarmUp = rapid.SampledFrom([]int{0, 3}).Draw(rt, "warm-up")
			c.Load.ProbeRate = rapid.SampledFrom([]float64{0, 2}).Draw(rt, "probes")
			if c.MaxConcurrency > 0 {
				c.Load.Overflow = rapid.SampledFrom([]Overflow{Queue, Shed}).Draw(rt, "overflow")
			}
			cfg.Load = c.Load
		}
		synctest.Test(t, func(t *testing.T) {
			out, results := inBubble(t, answers(moody(moods)), reqs, change)
			seen := map[string]int{}
			states := map[record.State]int64{}
			for i := range results {
				r := &results[i]
				seen[fmt.Sprint(r.Mark, r.ID)]++
				if r.Mark == record.Planned {
					states[r.State]++
				}
				if bad := wrong(r, cfg.Load.Retries); bad != "" {
					t.Fatalf("%s: %+v", bad, r)
				}
			}
			for i := range reqs {
				if n := seen[fmt.Sprint(record.Planned, reqs[i].Key())]; n != 1 {
					t.Fatalf("request %s has %d results", reqs[i].Key(), n)
				}
			}
			if w := len(marked(results, record.WarmUp)); w != cfg.Load.WarmUp {
				t.Fatalf("%d results of a warm-up of %d", w, cfg.Load.WarmUp)
			}
			got := []int64{out.Planned, out.Completed, out.Failed, out.Cancelled, out.NotSent}
			want := []int64{int64(len(reqs)), states[record.Completed], states[record.Failed], states[record.Cancelled], states[record.NotSent]}
			if fmt.Sprint(got) != fmt.Sprint(want) || want[0] != want[1]+want[2]+want[3]+want[4] {
				t.Fatalf("account %v, results %v", got, want)
			}
		})
	})
}

// wrong says what in a result does not go together.
func wrong(r *record.Result, retries int) string {
	switch {
	case r.State < record.Completed || r.State > record.NotSent:
		return "no state"
	case (r.State == record.Failed) != (r.Class != ""):
		return "a class without a failure, or a failure without one"
	case (r.State == record.NotSent) != (r.Reason != ""):
		return "a reason of what was sent, or none of what was not"
	case r.State == record.NotSent && r.Sent != record.NoTime:
		return "sent, and not"
	case len(r.Tries) > retries || len(r.Tries) > 0 && r.Attempts <= len(r.Tries):
		return "too many attempts"
	case r.Mark == record.Planned && r.Sent != record.NoTime && (r.Sent < r.Granted || r.Granted < r.Scheduled):
		return "moments out of order"
	case r.Mark != record.WarmUp && r.Sent != record.NoTime && r.End < r.Sent: // a false clock starts at 0, which stands for none
		return "over before it was sent"
	}
	return ""
}
