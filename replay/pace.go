package replay

import (
	"sync/atomic"
	"time"
)

// clock gives offsets from the schedule's origin on the monotonic clock. The
// wall clock is read once.
type clock struct {
	base  time.Time
	shift atomic.Int64 // the origin, from base
}

func newClock() *clock { return &clock{base: time.Now()} }

// now is the offset from the origin; until one is set, from the clock's start.
func (c *clock) now() time.Duration { return time.Since(c.base) - time.Duration(c.shift.Load()) }

// raw is a moment from the clock's start, never 0; offset is what it is from
// the origin.
func (c *clock) raw() int64                     { return int64(max(time.Since(c.base), 1)) }
func (c *clock) offset(raw int64) time.Duration { return time.Duration(raw - c.shift.Load()) }

// setOrigin puts the origin at a wall-clock time, or, where that is zero, a
// moment ahead.
func (c *clock) setOrigin(at time.Time) {
	origin := time.Since(c.base) + lead
	if !at.IsZero() {
		origin = at.Sub(c.base.Round(0))
	}
	c.shift.Store(int64(origin))
}

// wall is the wall-clock time of the origin.
func (c *clock) wall() time.Time {
	return c.base.Add(time.Duration(c.shift.Load())).Round(0)
}

// alarm wakes the pacer at deadlines.
//
// A Go timer in an otherwise idle process is up to a millisecond late, for
// epoll_wait counts in milliseconds; in a busy process the timers are looked
// at often, but the network poller seldom is. So on Linux the pacer reads a
// timerfd, which ends the poller's wait to within some 50 µs, with a read
// deadline at the same moment, which is a Go timer: whichever is first. Nothing
// spins.
type alarm struct {
	timer   *time.Timer
	fine    *fineTimer // nil where there is none
	changed chan struct{}
}

func newAlarm(coarse bool) *alarm {
	a := &alarm{timer: time.NewTimer(time.Hour), changed: make(chan struct{}, 1)}
	if !coarse {
		a.fine = newFineTimer()
	}
	return a
}

func (a *alarm) close() {
	a.timer.Stop()
	if a.fine != nil {
		a.fine.close()
	}
}

// wake ends the current wait, or the next one where there is none now.
func (a *alarm) wake() {
	token(a.changed)
	if a.fine != nil {
		a.fine.interrupt()
	}
}

// wait returns after d, or at wake.
func (a *alarm) wait(d time.Duration) {
	if a.fine != nil && a.fine.set(d) {
		select {
		case <-a.changed:
		default:
			a.fine.wait()
		}
		return
	}
	a.timer.Reset(d)
	select {
	case <-a.timer.C:
	case <-a.changed:
	}
}
