package replay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"retrace/record"
)

// TestWeightOfHistory: a turn's plan weighs what it holds, which with
// increments is the whole session so far.
func TestWeightOfHistory(t *testing.T) {
	cfg := Config{URLs: []string{"http://localhost"}, Header: record.Header{BlockSize: 16, Turns: "increment"}}
	cfg.fill()
	e, err := newEngine(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	e.stop, e.halt = context.WithCancelCause(t.Context())
	defer e.halt(nil)
	var first, last *job
	for i := range int64(50) {
		r := record.NewRequest()
		r.Row, r.Arrival, r.Session, r.Increment = i, 0, "s", true
		r.InputTokens, r.OutputTokens, r.Blocks = 32, 2, []uint64{uint64(2 * i), uint64(2*i + 1)}
		last = e.plan(&r, i)
		if first == nil {
			first = last
		}
		if own := int64(last.prompt.Size()); last.weight < own {
			t.Fatalf("turn %d weighs %d, its prompt alone has %d bytes", i, last.weight, own)
		}
	}
	if last.prompt.Tokens() != 50*32+49*2 || last.weight-first.weight < 100*16 {
		t.Errorf("turn 50 of %d tokens weighs %d, the first %d", last.prompt.Tokens(), last.weight, first.weight)
	}
}

// TestPrepared: it comes before the origin is chosen, with what is known of the
// server, and its error ends the run before anything is sent.
func TestPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("no more")
		b := newBubble(answers(scripted(step{0, word + done})))
		defer b.server.Close() // nothing is served any more
		c := &collector{}
		out, err := Run(t.Context(), Config{
			URLs: []string{"http://127.0.0.1"}, Sink: c.sink, coarse: true, dial: b.dial,
			Prepared: func(target Target) error {
				if target.Model != "mock" || !target.Start.IsZero() {
					t.Errorf("target %+v", target)
				}
				return stop
			},
			Started: func(Target) error { t.Error("started"); return nil },
		}, seq(every(ms, 3)))
		if !errors.Is(err, stop) || out.Planned != 0 || len(c.list) != 0 {
			t.Errorf("%+v, %v, %d results", out, err, len(c.list))
		}
	})
}
