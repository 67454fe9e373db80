package analysis

import "retrace/record"

// rampShare is the part of the time of sending that the steady window leaves
// out at its start.
const rampShare = 10 // a tenth

// load follows when requests were sent and ended.
type load struct {
	first, last, end int64 // first and last send, last end, in microseconds
	any              bool
	// Completed requests, and their tokens, by the millisecond of their last
	// output: finer moments would take twice the memory.
	requests, input, output runs
}

// Steady is the throughput while requests were being sent: without the start,
// when a server fills up, and without the tail, when it drains.
type Steady struct {
	// FromS and ToS are the window, from the schedule's origin, in whole
	// milliseconds: from the first send and a tenth of the time of sending, to
	// the last send.
	FromS float64 `json:"from_s"`
	ToS   float64 `json:"to_s"`
	// Completed are the requests whose last output lies in the window.
	Completed int64 `json:"completed"`
	// The rates count those requests and their tokens, by the window's length.
	Requests     Value `json:"requests_per_s"`
	OutputTokens Value `json:"output_tokens_per_s"`
	TotalTokens  Value `json:"total_tokens_per_s"`
}

// add takes a request of the trace, whatever became of it: all of them are load.
func (l *load) add(res *record.Result) {
	if res.Sent == record.NoTime {
		return
	}
	sent := res.Sent.Microseconds()
	if !l.any {
		l.first, l.last, l.end, l.any = sent, sent, sent, true
	}
	l.first, l.last = min(l.first, sent), max(l.last, sent)
	for _, t := range [...]int64{sent, res.End.Microseconds(), res.LastOutput.Microseconds()} { // NoTime is the smallest
		l.end = max(l.end, t)
	}
	if res.State != record.Completed || res.LastOutput == record.NoTime {
		return
	}
	at := res.LastOutput.Milliseconds()
	l.requests.add(at, 1)
	if n := promptTokens(res); n > 0 {
		l.input.add(at, n)
	}
	if n, _ := res.OutputTokens(); n > 0 {
		l.output.add(at, n)
	}
}

// window is from the first send to the last end.
func (l *load) window() (window, bool) { return window{l.first, l.end}, l.any }

// steady is nil where all was sent within a millisecond. Rates of tokens exist where
// those of the whole run do.
func (l *load) steady(whole *RunThroughput) *Steady {
	w := window{(l.first + (l.last-l.first)/rampShare) / usPerMS, l.last / usPerMS}
	if !l.any || w.to <= w.from {
		return nil
	}
	seconds := float64(w.to-w.from) / msPerS
	s := &Steady{FromS: float64(w.from) / msPerS, ToS: float64(w.to) / msPerS, Completed: within(&l.requests, w)}
	s.Requests = Ratio(float64(s.Completed), seconds)
	output := float64(within(&l.output, w))
	if whole.OutputTokens.OK {
		s.OutputTokens = Ratio(output, seconds)
	}
	if whole.TotalTokens.OK {
		s.TotalTokens = Ratio(output+float64(within(&l.input, w)), seconds)
	}
	return s
}

// within sums up what lies in the window.
func within(r *runs, w window) (sum int64) {
	for at, n := range r.all() {
		if w.holds(at) {
			sum += n
		}
	}
	return sum
}
