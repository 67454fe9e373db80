package analysis

import (
	"time"

	"retrace/record"
)

// DefaultMaxLag is the lateness p99 beyond which a schedule was not kept,
// where the recording's header names none.
const DefaultMaxLag = 10 * time.Millisecond

// RunOptions says how a run is judged.
type RunOptions struct {
	// SLO sets the limits of goodput; nil computes none.
	SLO *SLO
	// MaxLag is the lateness p99 beyond which the schedule was not kept; 0
	// takes that of the headers, else DefaultMaxLag.
	MaxLag time.Duration
}

// Run collects the results of one run, possibly from several shards. Feed it
// with AddHeader, Add and AddFooter in any order, then ask for Report. It is
// for one goroutine.
type Run struct {
	opts   RunOptions
	shards shards

	// Counts of the trace's own requests by state; beside are the others, by mark.
	states  [record.NotSent + 1]int64
	beside  [record.Probe + 1]aside
	classes map[string]int64
	reasons map[string]int64

	lag, queue Counter
	lat        latencies
	replicas   []*replica

	tokens    tokenSums
	prefix    prefixSums
	load      load
	retries   retries
	series    map[serverKey]serverSeries
	firstSend time.Duration
	lastOut   time.Duration
	timed     bool
	good      int64
	odd       oddities
}

// latencies are the distributions over completed requests, in microseconds.
type latencies struct {
	ttft, itl, e2e      Counter
	ttftSched, e2eSched Counter
	tpot                Sample
	input, output       Counter // tokens
	firstByte, content  Counter // from the send
	inputOff            Counter // tokens, server-counted minus wanted
	// achieved is output tokens by those wanted.
	achieved Sample
	// interval is the time a token in nanoseconds, where each gap's tokens are
	// known; spans and steps make the token-weighted mean of TPOT.
	interval     Counter
	spans, steps int64
	// What the server tells of its own time.
	serverQueue, prefill, decode Counter
}

// replica is what is kept for each server of a run.
type replica struct {
	states    [record.NotSent + 1]int64
	input     int64
	tokens    int64
	ttft, e2e Counter
	tpot      Sample
	prefix    prefixSums
	cached    Total
}

// aside is what is kept of requests beyond the trace's, of one mark.
type aside struct {
	states    [record.NotSent + 1]int64
	classes   map[string]int64
	ttft, e2e Counter
}

// oddities counts what a reader of the figures should know.
type oddities struct {
	untimed      int64 // completed, but with no moment of output
	zeroTPOT     int64 // all output at one moment, though several tokens
	badState     int64 // of no known state
	hitsExceeded int64 // requests with more cached tokens than predicted
}

// NewRun starts the analysis of a run.
func NewRun(opts RunOptions) *Run {
	return &Run{opts: opts, classes: map[string]int64{}, reasons: map[string]int64{}}
}

// Add takes one result; it keeps no reference to it. Results that carry a mark
// (overhead probe, warm-up, probe) are counted apart and in nothing else.
func (r *Run) Add(res *record.Result) {
	if res.State < record.Completed || res.State > record.NotSent {
		r.odd.badState++
		return
	}
	if res.Mark != record.Planned {
		if int(res.Mark) < len(r.beside) {
			r.beside[res.Mark].add(res)
		}
		return
	}
	r.states[res.State]++
	rep := r.replica(res.Replica)
	rep.states[res.State]++
	r.load.add(res)
	r.retries.add(res)
	r.addLateness(res)
	switch res.State {
	case record.Failed:
		r.classes[orUnnamed(res.Class)]++
	case record.NotSent:
		r.reasons[orUnnamed(res.Reason)]++
	case record.Completed:
		r.addCompleted(res, rep)
	}
}

func (a *aside) add(res *record.Result) {
	a.states[res.State]++
	switch res.State {
	case record.Failed:
		if a.classes == nil {
			a.classes = map[string]int64{}
		}
		a.classes[orUnnamed(res.Class)]++
	case record.Completed:
		t := timingOf(res)
		if t.hasFirst {
			a.ttft.Add(t.ttft)
		}
		if t.hasLast {
			a.e2e.Add(t.e2e)
		}
	}
}

func orUnnamed(name string) string {
	if name == "" {
		return "unnamed"
	}
	return name
}

// addLateness counts how late a send was, whatever came of it: that is a
// figure of the load generator, not of the server.
func (r *Run) addLateness(res *record.Result) {
	due := max(res.Scheduled, res.Granted) // NoTime is the smallest
	if lag, ok := between(due, res.Sent); ok {
		r.lag.Add(lag)
		if wait, ok := between(res.Scheduled, due); ok {
			r.queue.Add(wait)
		}
	}
}

func (r *Run) addCompleted(res *record.Result, rep *replica) {
	t := timingOf(res)
	r.span(res)
	r.lat.add(res, &t)
	r.tokens.add(res)
	r.prefix.add(res)
	rep.add(res, &t)
	if !t.hasLast {
		r.odd.untimed++
	}
	if t.hasTPOT && t.tpot <= 0 {
		r.odd.zeroTPOT++
	}
	if res.CachedTokens != record.Unknown && res.PredictedHit != record.Unknown && res.CachedTokens > res.PredictedHit {
		r.odd.hitsExceeded++
	}
	if r.opts.SLO != nil && r.opts.SLO.met(&t) {
		r.good++
	}
}

// span widens the run's duration: first send to last output of the completed.
func (r *Run) span(res *record.Result) {
	if res.Sent == record.NoTime || res.LastOutput == record.NoTime {
		return
	}
	if !r.timed || res.Sent < r.firstSend {
		r.firstSend = res.Sent
	}
	if !r.timed || res.LastOutput > r.lastOut {
		r.lastOut = res.LastOutput
	}
	r.timed = true
}

func (l *latencies) add(res *record.Result, t *timing) {
	if t.hasFirst {
		l.ttft.Add(t.ttft)
	}
	if t.hasFirstSched {
		l.ttftSched.Add(t.ttftSched)
	}
	if t.hasLast {
		l.e2e.Add(t.e2e)
	}
	if t.hasLastSched {
		l.e2eSched.Add(t.e2eSched)
	}
	if t.hasTPOT {
		l.tpot.Add(t.tpot)
		l.spans += t.span
		l.steps += t.steps
	}
	for i := range res.Gaps {
		l.itl.Add(res.Gaps[i].Wait.Microseconds())
	}
	l.addIntervals(res.Gaps)
	if us, ok := between(res.Sent, res.FirstByte); ok {
		l.firstByte.Add(us)
	}
	if us, ok := between(res.Sent, res.FirstContent); ok {
		l.content.Add(us)
	}
	l.addTokens(res)
	for _, d := range []struct {
		told time.Duration
		to   *Counter
	}{{res.ServerQueue, &l.serverQueue}, {res.ServerPrefill, &l.prefill}, {res.ServerDecode, &l.decode}} {
		if d.told != record.NoTime {
			d.to.Add(d.told.Microseconds())
		}
	}
}

func (l *latencies) addTokens(res *record.Result) {
	if res.PromptTokens != record.Unknown && res.WantedInput != record.Unknown {
		l.inputOff.Add(res.PromptTokens - res.WantedInput)
	}
	if n := promptTokens(res); n != record.Unknown {
		l.input.Add(n)
	}
	n, _ := res.OutputTokens()
	if n == record.Unknown {
		return
	}
	l.output.Add(n)
	if res.WantedOutput > 0 {
		l.achieved.Add(float64(n) / float64(res.WantedOutput))
	}
}

// addIntervals takes the time a token, where the tokens of every gap are known.
// The wait for an output of no token is the next token's.
func (l *latencies) addIntervals(gaps []record.Gap) {
	for i := range gaps {
		if gaps[i].Tokens == record.Unknown {
			return
		}
	}
	var held int64 // microseconds
	for i := range gaps {
		held += gaps[i].Wait.Microseconds()
		if n := gaps[i].Tokens; n > 0 {
			l.interval.AddN((held*nsPerUS+n/2)/n, n)
			held = 0
		}
	}
}

func (rep *replica) add(res *record.Result, t *timing) {
	if t.hasFirst {
		rep.ttft.Add(t.ttft)
	}
	if t.hasLast {
		rep.e2e.Add(t.e2e)
	}
	if t.hasTPOT {
		rep.tpot.Add(t.tpot)
	}
	if n, _ := res.OutputTokens(); n != record.Unknown {
		rep.tokens += n
	}
	if n := promptTokens(res); n != record.Unknown {
		rep.input += n
	}
	rep.cached.Add(res.CachedTokens)
	rep.prefix.add(res)
}

// maxReplicas bounds what a damaged replica number can make us allocate.
const maxReplicas = 4096

func (r *Run) replica(i int) *replica {
	if i < 0 || i >= maxReplicas {
		i = 0
	}
	r.atLeast(i + 1)
	return r.replicas[i]
}

// atLeast makes room for n servers, some of which may have had no request.
func (r *Run) atLeast(n int) {
	for len(r.replicas) < min(n, maxReplicas) {
		r.replicas = append(r.replicas, &replica{})
	}
}
