package replay

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"retrace/internal/plural"
	"retrace/record"
)

// Outcome is how a run went, in counts. Planned is always the sum of the four
// states.
type Outcome struct {
	Target Target
	// Planned counts the requests of the trace, the others how they ended.
	Planned   int64
	Completed int64
	Failed    int64
	Cancelled int64
	NotSent   int64
	// Reasons counts those not sent, by reason.
	Reasons map[string]int64
	// Errors has the first failed request's sentence of each class.
	Errors map[string]string
	// Interrupted says that ctx ended the run, TimedOut that MaxDuration did.
	Interrupted bool
	TimedOut    bool
	// Retried counts the planned requests that were made again after a failure,
	// FirstFailed those whose first attempt failed, made again or not.
	Retried     int64
	FirstFailed int64
	// Opened and Reused count the connections that requests got.
	Opened int64
	Reused int64
	// Notes are sentences worth telling after the run.
	Notes []string
}

// Lost says whether requests failed or were left out, other than by
// MaxDuration: exit status 3.
func (o *Outcome) Lost() bool {
	lost := o.Failed + o.Cancelled + o.NotSent
	if o.TimedOut {
		lost -= o.Cancelled + o.Reasons[reasonMaxDuration]
	}
	return lost > 0
}

// Progress is a look at a run under way.
type Progress struct {
	// Elapsed is the time since the origin, negative before it.
	Elapsed time.Duration
	// Planned counts the requests read so far; Known says that these are all.
	Planned int64
	Known   bool
	// Sent counts those handed to a connection, InFlight those being served,
	// Waiting those in line for a slot.
	Sent     int64
	InFlight int64
	Waiting  int64
	// Done counts all that are over, Failed and NotSent those among them.
	Done    int64
	Failed  int64
	NotSent int64
	// Lag is the largest lateness of a send since the last look.
	Lag time.Duration
}

// The reasons why a request is not sent.
const (
	reasonInFlight    = "in flight limit reached"
	reasonInterrupted = "interrupted"
	reasonMaxDuration = "after the maximal duration"
	reasonPredecessor = "predecessor failed"
	reasonShed        = "concurrency limit reached"
	reasonNoOutput    = "no output at the source"
	reasonSink        = "results could not be stored"
	reasonTrace       = "the trace could not be read on"
)

// tally is the running count of a run.
type tally struct {
	planned, sent, completed, failed, cancelled, notSent atomic.Int64

	opened, reused, compressed, overcached, overmedia, longer, raised, retried, short atomic.Int64

	overContext, trimmedOutput, trimmedPrompt atomic.Int64 // by the context's policy
	// again counts requests that were retried, firstFailed those whose first
	// attempt failed, unled turns that live answers did not fit.
	again, firstFailed, unled atomic.Int64

	lag atomic.Int64 // the largest since the last look

	mu      sync.Mutex
	reasons map[string]int64
	errors  map[string]string
}

func (t *tally) note(res *record.Result) {
	if len(res.Tries) > 0 {
		t.again.Add(1)
	}
	if len(res.Tries) > 0 || res.State == record.Failed {
		t.firstFailed.Add(1)
	}
	switch res.State {
	case record.Completed:
		t.completed.Add(1)
	case record.Failed:
		t.failed.Add(1)
		t.mu.Lock()
		if _, found := t.errors[res.Class]; !found {
			t.errors[res.Class] = res.Error
		}
		t.mu.Unlock()
	case record.Cancelled:
		t.cancelled.Add(1)
	case record.NotSent:
		t.notSent.Add(1)
		t.mu.Lock()
		t.reasons[res.Reason]++
		t.mu.Unlock()
	}
}

func (t *tally) late(lag time.Duration) {
	for {
		old := t.lag.Load()
		if int64(lag) <= old || t.lag.CompareAndSwap(old, int64(lag)) {
			return
		}
	}
}

func (t *tally) done() int64 {
	return t.completed.Load() + t.failed.Load() + t.cancelled.Load() + t.notSent.Load()
}

// outcome makes the final account, and checks it.
func (e *engine) outcome() (Outcome, error) {
	t := &e.tally
	o := Outcome{
		Target: e.target, Planned: t.planned.Load(),
		Completed: t.completed.Load(), Failed: t.failed.Load(), Cancelled: t.cancelled.Load(), NotSent: t.notSent.Load(),
		Reasons: t.reasons, Errors: t.errors, Opened: t.opened.Load(), Reused: t.reused.Load(),
		Retried: t.again.Load(), FirstFailed: t.firstFailed.Load(),
	}
	reason := e.stopReason()
	o.Interrupted, o.TimedOut = reason == reasonInterrupted || e.interrupted, reason == reasonMaxDuration
	add := func(n int64, noun, rest string) {
		if n > 0 {
			o.Notes = append(o.Notes, plural.Of(n, noun)+" "+rest)
		}
	}
	for i, name := range optionalFields {
		if e.bodies.refused.Load()&(1<<i) != 0 {
			o.Notes = append(o.Notes, "the server refused the field "+name+": left out")
		}
	}
	add(t.compressed.Load(), "answer", "came compressed, though asked not to be: moments are the compressor's")
	add(t.overcached.Load(), "answer", "told more cached tokens than the prompt has: left out")
	add(t.overmedia.Load(), "answer", "told more tokens of media than the prompt has: left out")
	add(t.longer.Load(), "prompt", "stayed longer than wanted, shorter than the server's template")
	add(t.raised.Load(), "request", "without input or output at the source, sent with one token")
	add(t.retried.Load(), "request", "met a connection that the server had just closed: made once more")
	add(t.overContext.Load(), "request", "over the model's context, sent as they are")
	add(t.trimmedOutput.Load(), "request", "over the model's context, sent with less output (--over-context)")
	add(t.trimmedPrompt.Load(), "request", "over the model's context, sent with the beginning of the prompt (--over-context)")
	add(t.short.Load(), "answer", "came out shorter than the length that was forced (--ignore-eos)")
	add(t.unled.Load(), "turn", "does not go on from the turn before it: sent as recorded, without the live answers")
	if e.planner != nil {
		add(e.planner.Orphans(), "turn", "without the earlier turn of the session, which the trace or the chosen part of it lacks: of those the prompt is the new part alone")
	}
	o.Notes = append(o.Notes, e.metrics.notes()...)
	if t.done() != o.Planned {
		return o, fmt.Errorf("account for requests: %d planned, but %d completed, %d failed, %d cancelled, %d not sent",
			o.Planned, o.Completed, o.Failed, o.Cancelled, o.NotSent)
	}
	return o, nil
}
