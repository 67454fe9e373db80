package replay

import (
	"context"
	"errors"
	"time"
)

// stopError is why sending was stopped, as the cause of a context.
type stopError string

// Error is error's.
func (r stopError) Error() string { return string(r) }

// watch ends the run early: at once when ctx is done or MaxDuration is up, and
// for good when the grace is up too.
func (e *engine) watch(ctx context.Context, over <-chan struct{}) {
	var limit <-chan time.Time
	if e.cfg.MaxDuration > 0 {
		timer := time.NewTimer(e.cfg.MaxDuration - e.clock.now())
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-ctx.Done():
		e.halt(stopError(reasonInterrupted))
	case <-limit:
		e.halt(stopError(reasonMaxDuration))
	case <-e.stop.Done():
	case <-over:
		return
	}
	for _, j := range e.slots.flush() {
		e.abandon(j, e.stopReason())
	}
	grace := time.NewTimer(e.cfg.Grace)
	defer grace.Stop()
	select {
	case <-grace.C:
		e.kill(errKilled)
		<-over
	case <-over:
	}
	e.interrupted = ctx.Err() != nil
}

// stopReason is why sending was stopped, "" where it was not.
func (e *engine) stopReason() string {
	var r stopError
	if errors.As(context.Cause(e.stop), &r) {
		return string(r)
	}
	return ""
}

// fail ends the run over an error that is not a request's.
func (e *engine) fail(err error, why string) {
	e.failing.Lock()
	if e.failure == nil {
		e.failure = err
	}
	e.failing.Unlock()
	e.halt(stopError(why))
}
