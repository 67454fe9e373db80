package replay

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retrace/record"
)

// Offsets are kept to the clock's last digit however many there are (R04), and
// speed divides them.
func TestScheduleHasNoDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reqs := every(ms, 3000)
		_, results := inBubble(t, answers(scripted(step{0, word + done})), reqs, func(c *Config) { c.Speed = 4 })
		for i, r := range results {
			if want := time.Duration(i) * ms / 4; r.Scheduled != want || r.Sent != want || r.Granted != want {
				t.Fatalf("request %d: scheduled %v, granted %v, sent %v, want %v", i, r.Scheduled, r.Granted, r.Sent, want)
			}
		}
	})
}

// M07: eight requests at 10/s, 500 ms each, one at a time. From the send they
// take 0.5 s; from the schedule 0.5(i+1) − 0.1i, on average 1.9 s.
func TestWaitForASlotIsKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, results := inBubble(t, answers(scripted(step{500 * ms, word + done})), every(100*ms, 8), func(c *Config) { c.MaxConcurrency = 1 })
		var fromSchedule time.Duration
		for i, r := range results {
			if r.Sent != r.Granted || r.LastOutput-r.Sent != 500*ms {
				t.Errorf("request %d: granted %v, sent %v, last output %v", i, r.Granted, r.Sent, r.LastOutput)
			}
			fromSchedule += r.LastOutput - r.Scheduled
		}
		if mean := fromSchedule.Seconds() / 8; math.Abs(mean-1.9) > 1e-9 || out.Completed != 8 {
			t.Errorf("mean from schedule %v s, %d completed", mean, out.Completed)
		}
		if out.Opened != 0 || out.Reused != 8 { // the first was opened to ask for /health
			t.Errorf("%d connections opened, %d reused", out.Opened, out.Reused)
		}
	})
}

// R02: what waited goes out in its order when slots come free.
func TestLineIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, results := inBubble(t, answers(scripted(step{2000 * ms, word + done})), every(10*ms, 20), func(c *Config) { c.MaxConcurrency = 5 })
		for i, r := range results {
			if want := time.Duration(i/5)*2000*ms + time.Duration(i%5)*10*ms; r.Granted != want {
				t.Errorf("request %d: granted %v, want %v", i, r.Granted, want)
			}
		}
	})
}

// R08: a server that never answers; what is beyond the cap is not sent.
func TestInFlightIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := scripted(step{time.Hour, ""})
		out, results := inBubble(t, answers(hang), every(ms, 50), func(c *Config) {
			c.MaxInFlight, c.MaxConcurrency, c.Timeout = 20, 15, time.Second
		})
		if out.NotSent != 30 || out.Reasons[reasonInFlight] != 30 || out.Failed != 20 || out.Planned != 50 {
			t.Errorf("outcome %+v", out)
		}
		for _, r := range results {
			if r.State == record.Failed && r.Class != record.ClassTimeout {
				t.Errorf("request %s: class %s", r.ID, r.Class)
			}
		}
	})
}

func TestStartAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Minute)
		var arrived time.Time
		h := func(w http.ResponseWriter, r *http.Request) {
			arrived = time.Now()
			scripted(step{0, word + done})(w, r)
		}
		out, _ := inBubble(t, answers(h), every(0, 1), func(c *Config) { c.StartAt = at })
		if !arrived.Equal(at) || !out.Target.Start.Equal(at) {
			t.Errorf("arrived %v, start %v, want %v", arrived, out.Target.Start, at)
		}
	})
}

func TestStartAtHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(answers(scripted(step{0, word + done})))
		_, err := Run(t.Context(), Config{
			URLs: []string{"http://127.0.0.1"}, coarse: true, dial: b.dial, StartAt: time.Now().Add(-time.Second),
		}, seq(every(0, 1)))
		_ = b.server.Close()
		if !errors.Is(err, ErrStartPassed) {
			t.Errorf("got %v", err)
		}
	})
}

// S11: a forced length that the server does not honour is told.
func TestShortAnswersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, _ := inBubble(t, answers(scripted(step{0, word + usage(4, 1) + done})), every(ms, 3), func(c *Config) { c.IgnoreEOS = true })
		if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "3 answers") {
			t.Errorf("notes %q", out.Notes)
		}
	})
}

// What is rendered but not sent gives its room in the look-ahead back.
func TestShedRequestsFreeTheLookAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reqs := append(every(5*ms, 100), every(0, 1)...)
		last := &reqs[100]
		last.Row, last.Arrival = 100, 5*time.Second
		out, results := inBubble(t, answers(scripted(step{time.Second, word + done})), reqs, func(c *Config) {
			c.MaxInFlight, c.LookAhead = 1, 2048
		})
		if out.Completed != 2 || out.NotSent != 99 || results[100].Sent != 5*time.Second {
			t.Errorf("%+v, last sent %v", out, results[100].Sent)
		}
	})
}
