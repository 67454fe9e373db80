package analysis

import (
	"time"

	"retrace/record"
)

// timing holds the latencies of one completed request, in whole microseconds.
type timing struct {
	ttft, e2e           int64
	ttftSched, e2eSched int64
	// tpot is span by steps, in microseconds a token.
	tpot        float64
	span, steps int64

	hasFirst, hasFirstSched bool
	hasLast, hasLastSched   bool
	hasTPOT                 bool
}

// timingOf computes a request's latencies by the definitions of docs/analysis.md.
func timingOf(r *record.Result) timing {
	var t timing
	t.ttft, t.hasFirst = between(r.Sent, r.FirstOutput)
	t.ttftSched, t.hasFirstSched = between(r.Scheduled, r.FirstOutput)
	t.e2e, t.hasLast = between(r.Sent, r.LastOutput)
	t.e2eSched, t.hasLastSched = between(r.Scheduled, r.LastOutput)
	span, ok := between(r.FirstOutput, r.LastOutput)
	if n, _ := r.OutputTokens(); ok && n >= 2 {
		t.span, t.steps = span, n-1
		t.tpot, t.hasTPOT = float64(span)/float64(n-1), true
	}
	return t
}

// between is the time from a to b in microseconds, where both are known. Each
// offset is cut to whole microseconds first, as it is in a recording, so that
// a live summary and the analysis of its recording agree to the last digit.
func between(a, b time.Duration) (int64, bool) {
	if a == record.NoTime || b == record.NoTime {
		return 0, false
	}
	return b.Microseconds() - a.Microseconds(), true
}
