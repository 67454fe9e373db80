package replay

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"retrace/record"
)

// slow answers after one second.
var slow = scripted(step{0, word}, step{time.Second, word + done})

// R16: at the signal sending stops, what is in flight ends within the grace,
// and every request of the plan has its result.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		name                          string
		grace                         time.Duration
		completed, cancelled, notSent int64
	}{
		{"long grace", 10 * time.Second, 6, 0, 94},
		{"short grace", 500 * ms, 1, 5, 94}, // sent at 0 … 500 ms; ended by 1,050 ms: the first alone
		{"no grace", -1, 0, 6, 94},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(lead+550*ms, cancel)
				out, results := inBubbleCtx(ctx, t, answers(slow), every(100*ms, 100), func(cfg *Config) { cfg.Grace = c.grace })
				if out.Completed != c.completed || out.Cancelled != c.cancelled || out.NotSent != c.notSent || !out.Interrupted {
					t.Errorf("%+v", out)
				}
				if len(results) != 100 || out.Reasons[reasonInterrupted] != 94 {
					t.Errorf("%d results, reasons %v", len(results), out.Reasons)
				}
				for _, r := range results {
					if r.State == record.Cancelled && (r.FirstOutput == record.NoTime || r.Class != "") {
						t.Errorf("cancelled request lost what it had: %+v", r)
					}
				}
			})
		})
	}
}

func TestMaxDuration(t *testing.T) { // R09
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		out, _ := inBubble(t, answers(scripted(step{time.Hour, ""})), every(100*ms, 100), func(c *Config) {
			c.MaxDuration, c.Grace = 950*ms, 2*time.Second
		})
		if out.Cancelled != 10 || out.Reasons[reasonMaxDuration] != 90 || out.Interrupted || !out.TimedOut || out.Lost() {
			t.Errorf("%+v, lost %v", out, out.Lost())
		}
		if took, want := time.Since(start), lead+950*ms+2*time.Second; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

// With requests in line, and turns that wait for their parents.
func TestInterruptWithWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(lead+1500*ms, cancel)
		reqs := every(10*ms, 20)
		for i := range reqs {
			reqs[i].Session, reqs[i].Turn = "s", i+1
			if i%2 == 1 {
				reqs[i].Session = "t"
			}
		}
		out, results := inBubbleCtx(ctx, t, answers(slow), reqs, func(c *Config) { c.Sessions, c.MaxConcurrency = Closed, 1 })
		if out.Completed != 2 || out.NotSent != 18 || len(results) != 20 {
			t.Errorf("%+v, %d results", out, len(results))
		}
	})
}

func TestSinkError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		b := newBubble(answers(scripted(step{0, word + done})))
		n := 0
		out, err := Run(context.Background(), Config{
			URLs: []string{"http://127.0.0.1"}, coarse: true, dial: b.dial,
			Sink: func(*record.Result) error {
				if n++; n == 3 {
					return full
				}
				return nil
			},
		}, seq(every(100*ms, 50)))
		_ = b.server.Close()
		if !errors.Is(err, full) || out.Completed != 3 || out.Reasons[reasonSink] != 47 || n != 50 {
			t.Errorf("%v; %+v; sink called %d times", err, out, n)
		}
	})
}

func TestTraceError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("line 4: broken")
		b := newBubble(answers(scripted(step{0, word + done})))
		var reqs iter.Seq2[record.Request, error] = func(yield func(record.Request, error) bool) {
			for _, r := range every(0, 3) {
				if !yield(r, nil) {
					return
				}
			}
			yield(record.Request{}, bad)
		}
		out, err := Run(context.Background(), Config{URLs: []string{"http://127.0.0.1"}, coarse: true, dial: b.dial}, reqs)
		_ = b.server.Close()
		if !errors.Is(err, bad) || out.Planned != 3 || out.Completed+out.NotSent != 3 {
			t.Errorf("%v; %+v", err, out)
		}
	})
}

// R03: progress that takes long, and a sink that takes long, delay no send.
func TestSlowConsumersDelayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		_, results := inBubble(t, answers(scripted(step{0, word + done})), every(10*ms, 300), func(c *Config) {
			collect := c.Sink
			c.Sink = func(r *record.Result) error { time.Sleep(50 * ms); return collect(r) }
			c.Progress = func(p Progress) {
				looks++
				if p.Done > p.Planned || p.Sent > p.Planned {
					t.Errorf("progress %+v", p)
				}
				time.Sleep(time.Second)
			}
		})
		for _, r := range results {
			if r.Sent != r.Scheduled {
				t.Fatalf("request %s: scheduled %v, sent %v", r.ID, r.Scheduled, r.Sent)
			}
		}
		if looks < 2 {
			t.Errorf("progress called %d times", looks)
		}
	})
}

func TestInterruptBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b := newBubble(answers(slow))
		started := false
		_, err := Run(ctx, Config{
			URLs: []string{"http://127.0.0.1"}, coarse: true, dial: b.dial,
			Started: func(Target) error { started = true; return nil },
		}, seq(every(ms, 3)))
		_ = b.server.Close()
		if !errors.Is(err, context.Canceled) || started {
			t.Errorf("%v, started %v", err, started)
		}
	})
}

// An interrupt in the grace after MaxDuration is told as one.
func TestInterruptAfterMaxDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		out, _ := inBubbleCtx(ctx, t, answers(scripted(step{time.Hour, ""})), every(100*ms, 100), func(c *Config) {
			c.MaxDuration, c.Grace = 950*ms, 5*time.Second
		})
		if !out.Interrupted || out.Cancelled != 10 {
			t.Errorf("%+v", out)
		}
	})
}
