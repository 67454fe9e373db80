package replay

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"retrace/record"
	"retrace/replay/arrival"
)

const (
	// firstPause is the mean wait before the first retry where the server names
	// none; each further one is twice as long, up to longestPause.
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// retryable says whether a failure may pass: the server asks for patience, says
// that the fault is its own, or cannot be reached.
func retryable(class string) bool {
	return class == record.ClassHTTP429 || class == record.ClassHTTP5xx || class == record.ClassConnect
}

// retry waits until j may be made again, and is false where it may not: no
// retries are left, or the wait would pass RetryMaxTime, the request's timeout or
// the end of sending. began is when the first attempt did.
func (e *engine) retry(ctx context.Context, j *job, began time.Duration) bool {
	res, load := &j.res, &e.cfg.Load
	if res.Mark != record.Planned || len(res.Tries) >= load.Retries || res.State != record.Failed || !retryable(res.Class) {
		return false
	}
	pause := e.pause(j)
	now := e.clock.now()
	if now+pause-began > load.RetryMaxTime {
		return false
	}
	if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	case <-e.stop.Done():
		return false
	}
	res.Tries = append(res.Tries, record.Try{Sent: j.sent, Wait: pause, Status: res.Status, Class: res.Class})
	res.State, res.Class, res.Error, res.Status = 0, "", "", 0
	res.FirstByte, res.End, res.BytesReceived = record.NoTime, record.NoTime, 0
	j.sent, j.patience = record.NoTime, 0
	return true
}

// pause is how long to wait before the next attempt: as long as the server says,
// else twice as long as before. Half of that is drawn, so that requests that
// failed together do not come back together.
func (e *engine) pause(j *job) time.Duration {
	if j.patience > 0 {
		return j.patience
	}
	n := len(j.res.Tries)
	mean := min(firstPause<<min(n, 16), longestPause)
	source := arrival.Source(uint64(e.cfg.Seed), "retry of "+j.res.ID)
	share := 0.0
	for range n + 1 {
		share = source.Float64()
	}
	return mean/2 + time.Duration(share*float64(mean))
}

// retryAfter is the time that a server asks for: RFC 9110, §10.2.3; 0 for none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseInt(text, 10, 32); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
