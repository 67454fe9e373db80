package replay

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// feed reads the trace to its end, even where sending has stopped: every
// request of the plan gets a result.
func (e *engine) feed(reqs iter.Seq2[placed, error]) {
	defer e.readAll.Store(true)
	for r, err := range reqs {
		if err != nil {
			e.fail(fmt.Errorf("read trace: %w", err), reasonTrace)
			return
		}
		if r.other {
			e.foresee(&r)
			continue
		}
		e.tally.planned.Add(1)
		e.jobs.Add(1)
		j := e.plan(&r.Request, r.index)
		if j == nil {
			continue
		}
		if !e.plans.take(e.stop, j.weight) {
			j.weight = 0
			e.abandon(j, e.stopReason())
			continue
		}
		e.place(j, &r.Request, r.last)
	}
}

// plan makes a request's job. A request that will not be sent gets its result
// here, and plan is nil.
func (e *engine) plan(r *record.Request, seq int64) *job {
	j := &job{seq: seq, api: e.cfg.API, output: r.OutputTokens, ready: make(chan struct{}), res: record.NewResult()}
	j.res = identity(r, e)
	j.res.Replica = e.replica(j) // also of one that is not sent
	if e.stop.Err() != nil {
		e.abandon(j, e.stopReason())
		return nil
	}
	if why := e.planBody(j, r); why != "" {
		// With sessions that go on, the later turns follow the turn before this one.
		if e.sessions != nil && e.cfg.Load.FailedTurn == StopSession {
			e.sessions.bind(j, r, false)
		}
		if r.Arrival != record.NoTime {
			j.res.Scheduled = e.scale(r.Arrival)
		}
		e.abandon(j, why)
		return nil
	}
	if e.foresees() && j.source == nil {
		j.res.PredictedHit = e.predictHit(j)
	}
	j.weight = int64(len(j.source)+j.prompt.Size()) + 1280
	return j
}

func identity(r *record.Request, e *engine) record.Result {
	res := record.NewResult()
	res.ID, res.Session, res.Turn, res.Kind, res.Model = r.Key(), r.Session, r.Turn, r.Kind, r.Model
	if res.Model == "" {
		res.Model = e.target.Model
	}
	res.WantedInput, res.WantedOutput = r.InputTokens, r.OutputTokens
	res.Shard = e.cfg.Shard
	return res
}

// planBody decides what is sent, and gives the reason where nothing is.
func (e *engine) planBody(j *job, r *record.Request) (why string) {
	literal := e.cfg.Prompt == Literal && r.Body != nil
	e.address(j, r, literal)
	zero := r.OutputTokens == 0 || r.Observed.Failed
	if zero && e.cfg.ZeroOutput == ZeroSkip {
		_, _ = e.plannerOf(j).Plan(r) // its session's later turns may hold it
		return reasonNoOutput
	}
	if literal && j.output == record.Unknown && generates(j.api) {
		j.output = bodyLimit(j.api, r.Body)
	}
	if e.cfg.MaxOutputTokens > 0 && generates(j.api) && (j.output == record.Unknown || j.output > e.cfg.MaxOutputTokens) {
		j.output = e.cfg.MaxOutputTokens
	}
	raised := false
	if j.output == 0 && e.cfg.ZeroOutput == ZeroOne && (!literal || e.cfg.setsLengths()) {
		j.output, raised = 1, true
	}
	if literal {
		if _, err := endpointPath(j.api); err != nil {
			return err.Error()
		}
		j.source = r.Body
	} else if why := e.planPrompt(j, r, &raised); why != "" {
		return why
	}
	if why := e.fit(j); why != "" {
		return why
	}
	if raised {
		j.count(&e.tally.raised)
	}
	j.res.WantedOutput = j.output
	return ""
}

// address says where a request goes, and as what.
func (e *engine) address(j *job, r *record.Request, literal bool) {
	if literal {
		j.api = Destination(e.cfg.API, openai.API(r.API))
	}
	if !generates(j.api) {
		j.output = record.Unknown
	}
	j.model, j.priority = e.bodies.chooseModel(r, e.cfg.Seed), r.Priority
	if j.model != "" {
		j.res.Model = j.model
	}
}

func (e *engine) planPrompt(j *job, r *record.Request, raised *bool) (why string) {
	p, err := e.plannerOf(j).Plan(r)
	if j.api == openai.Transcriptions {
		return errNoAudio.Error()
	}
	if errors.Is(err, prompt.ErrNoLength) {
		return prompt.ErrNoLength.Error()
	}
	if err != nil {
		return err.Error()
	}
	if n := e.cfg.MaxInputTokens; n > 0 {
		p = p.Truncate(int(min(n, math.MaxInt32)))
	}
	if p.Tokens() == 0 && e.cfg.ZeroOutput != ZeroAsRecorded {
		p = prompt.NewPrompt(prompt.Segment{Key: prompt.RequestKey(r), N: 1, Kind: prompt.Tail})
		*raised = true
	}
	j.res.WantedInput = int64(p.Tokens())
	if over := int(e.target.Overhead); over > 0 {
		if over >= p.Tokens() {
			j.count(&e.tally.longer)
			over = p.Tokens() - 1
		}
		p = p.Cut(over)
	}
	j.prompt = p
	return ""
}

// scale turns a trace's time into the schedule's.
func (e *engine) scale(d time.Duration) time.Duration {
	if e.cfg.Speed == 1 {
		return d
	}
	scaled := float64(d) / e.cfg.Speed
	return time.Duration(max(-float64(longest), min(scaled, float64(longest))))
}

// longest bounds a scaled time: what time.Duration can hold is 292 years.
const longest = 100 * 365 * 24 * time.Hour

// place puts a job where its time comes from: into the queue, or behind its
// parent. last is the latest arrival known, the stand-in for a turn that has
// neither its own nor a parent.
func (e *engine) place(j *job, r *record.Request, last time.Duration) {
	j.due = e.scale(last)
	own := r.Arrival != record.NoTime
	if own {
		j.due = e.scale(r.Arrival)
		j.res.Scheduled = j.due
	}
	if e.sessions == nil {
		e.enqueue(j)
		return
	}
	j.delay = r.Delay
	if most := e.cfg.Load.MaxDelay; most > 0 && j.delay != record.NoTime {
		j.delay = min(j.delay, most)
	}
	switch l, end := e.sessions.bind(j, r, e.cfg.Sessions == Closed || !own); l {
	case free:
		e.converse(j, nil)
		e.enqueue(j)
	case ready:
		e.follow(j, end)
	case broken:
		e.abandon(j, reasonPredecessor)
	}
}

func (e *engine) enqueue(j *job) {
	j.res.Scheduled = j.due
	e.queue.push(j)
}

// follow schedules a turn whose parent ended.
func (e *engine) follow(j *job, end ended) {
	if j.delay != record.NoTime {
		j.due = end.at + e.scale(j.delay)
	} else {
		j.due = max(j.due, end.at)
	}
	e.converse(j, end.talk)
	e.enqueue(j)
}

// converse puts the server's own answers into a turn, where that is asked for.
func (e *engine) converse(j *job, before *talk) {
	if e.cfg.Load.Assistant != LiveAnswers || j.source == nil || j.api != openai.Chat {
		return
	}
	if !j.converse(before) {
		e.tally.unled.Add(1)
	}
}

// release lets the turns go on that waited for j.
func (e *engine) release(j *job) {
	end := ended{record.NoTime, j.after()}
	if j.res.State == record.Completed || e.cfg.Load.FailedTurn == ContinueSession {
		if end.at = j.res.End; end.at == record.NoTime {
			end.at = e.clock.now() // it was not sent
		}
	}
	for _, kid := range e.sessions.end(j.turn, end) {
		switch {
		case e.stop.Err() != nil:
			e.abandon(kid, e.stopReason())
		case end.at == record.NoTime:
			e.abandon(kid, reasonPredecessor)
		default:
			e.follow(kid, end)
		}
	}
}
