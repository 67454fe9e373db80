package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

const (
	// planBudget bounds the bytes of plans from feeder to start; in sessions
	// turns wait for their parents, and sessionBudget holds more of them.
	planBudget    = 6 << 20
	sessionBudget = 32 << 20
	// keptBudget bounds the bytes of plans that requests in flight keep, to be
	// made once more where a server asks for it. Beyond it they cannot be.
	keptBudget = 16 << 20
	// resultQueue is how many results may wait for the sink.
	resultQueue = 4096
	// lead is the time between the choice of the origin and the origin, in
	// which the first bodies are rendered.
	lead = 100 * time.Millisecond
	// progressEvery is the time between two calls of Config.Progress.
	progressEvery = 200 * time.Millisecond
	// idleSenders bounds the senders that are kept without work.
	idleSenders = 64
)

// engine is one run.
type engine struct {
	cfg      Config
	clock    *clock
	client   *client
	bodies   *bodies
	planner  *prompt.Planner
	others   *prompt.Planner     // of the other shards' requests
	predict  []*prompt.Predictor // one a server, nil where nothing is predicted
	target   Target
	metrics  *scraper // nil where nobody takes series
	scrub    scrubber
	queue    *queue
	slots    *slots
	sessions *sessions // nil where no turn waits for another
	// ready are the indices of the servers that were ready, probing is the API of
	// the probes beside the load, "" for none.
	ready    []int
	probing  openai.API
	plans    *budget
	drafts   *budget
	tally    tally
	alarm    *alarm
	work     chan *job    // to idle senders
	idle     atomic.Int64 // senders
	kept     atomic.Int64 // bytes of plans of requests in flight
	inFlight atomic.Int64 // served and waiting
	// keepOutput says that results keep the answers' text, which Config.KeepOutput
	// also asks for where later turns need it.
	keepOutput bool
	// interrupted says that the caller ended the run; watch's until it returns.
	interrupted bool

	life context.Context // ends when everything must
	kill context.CancelCauseFunc
	stop context.Context // ends when no more is sent; its cause is the reason
	halt context.CancelCauseFunc

	jobs    sync.WaitGroup
	results chan *record.Result
	readAll atomic.Bool // the trace is at its end
	failure error       // of the trace or the sink; behind failing
	failing sync.Mutex
}

var (
	errKilled  = errors.New("cancelled at the end of the run")
	errTimeout = errors.New("timeout")
)

// ErrStartPassed says that Config.StartAt has gone by before all was ready.
var ErrStartPassed = errors.New("the time has passed")

// Run replays the requests, which come in the order of their arrivals. It
// returns when each of them has ended. When ctx is done it stops sending,
// gives what is in flight Config.Grace to end, and cancels the rest.
//
// The error is that of the trace, the sink, or the set-up; requests that fail
// are no error. The outcome is valid either way.
func Run(ctx context.Context, cfg Config, reqs iter.Seq2[record.Request, error]) (Outcome, error) {
	cfg.fill()
	if err := cfg.Validate(); err != nil {
		return Outcome{}, fmt.Errorf("configure replay: %w", err)
	}
	e, err := newEngine(cfg)
	if err != nil {
		return Outcome{}, err
	}
	defer e.close()
	probe, err := e.prepare(ctx)
	if err != nil {
		return Outcome{Target: e.target}, err
	}
	if cfg.Prepared != nil {
		if err := cfg.Prepared(e.target); err != nil {
			return Outcome{Target: e.target}, err
		}
	}
	next, stop := iter.Pull2(e.lineUp(reqs))
	defer stop()
	first := pullSome(next, max(cfg.Load.WarmUp, 1)) // an unsorted trace is sorted before the clock runs
	beside, err := e.warmUp(ctx, first)
	if err != nil {
		return Outcome{Target: e.target}, err
	}
	if probe != nil {
		beside = append(beside, probe)
	}
	e.metrics.before(ctx, len(beside) > 0)
	if late := time.Until(cfg.StartAt); !cfg.StartAt.IsZero() && late < 0 {
		return Outcome{Target: e.target}, fmt.Errorf("start at %s: %w, it is %s now", cfg.StartAt.Format(time.RFC3339), ErrStartPassed,
			time.Now().In(cfg.StartAt.Location()).Format(time.RFC3339))
	}
	e.clock.setOrigin(cfg.StartAt)
	for _, res := range beside {
		shift(res, time.Duration(e.clock.shift.Load()))
	}
	e.metrics.settleOrigin(time.Duration(e.clock.shift.Load()))
	e.target.Start = e.clock.wall()
	if cfg.Started != nil {
		if err := cfg.Started(e.target); err != nil {
			return Outcome{Target: e.target}, err
		}
	}
	if cfg.Load.ProbeRate > 0 {
		e.probing = e.sideAPI(firstOwn(first))
	}
	e.run(ctx, beside, resume(first, next))
	out, err := e.outcome()
	if e.failure != nil {
		err = e.failure
	}
	return out, err
}

// close lets go of what a run holds.
func (e *engine) close() {
	e.alarm.close()
	e.metrics.close()
	e.client.close()
	e.bodies.close()
}

func newEngine(cfg Config) (*engine, error) {
	maker, err := cfg.newMaker(cfg.Prompts.Vocabulary)
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: cfg, clock: newClock(), scrub: newScrubber(&cfg),
		alarm: newAlarm(cfg.coarse), work: make(chan *job),
		slots: &slots{limit: cfg.MaxConcurrency},
		plans: newBudget(planBudget), drafts: newBudget(cfg.LookAhead),
		results: make(chan *record.Result, resultQueue),
		planner: prompt.NewPlanner(cfg.Header), others: prompt.NewPlanner(cfg.Header), keepOutput: cfg.KeepOutput,
	}
	e.cfg.KeepOutput = cfg.KeepOutput || cfg.Load.Assistant == LiveAnswers
	e.queue = newQueue(e.alarm.wake)
	e.tally.reasons, e.tally.errors = map[string]int64{}, map[string]string{}
	if cfg.Sessions == Closed || cfg.Header.DelayMeaning != "" {
		e.sessions = newSessions()
		e.plans.limit = sessionBudget
	}
	if e.bodies, err = newBodies(&e.cfg, maker, cfg.Model); err != nil {
		return nil, err
	}
	if e.client, err = newClient(&e.cfg, e.clock); err != nil {
		return nil, err
	}
	e.metrics = newScraper(e)
	return e, nil
}

// run drives everything from the first request to the last result.
// beside are results of requests that were made before the origin.
func (e *engine) run(ctx context.Context, beside []*record.Result, reqs iter.Seq2[placed, error]) {
	e.life, e.kill = context.WithCancelCause(context.WithoutCancel(ctx))
	e.stop, e.halt = context.WithCancelCause(e.life)
	context.AfterFunc(e.stop, e.alarm.wake)
	defer e.kill(nil)
	defer e.halt(nil)

	var crew sync.WaitGroup
	var sink sync.WaitGroup
	sink.Go(e.drain)
	for _, res := range beside {
		e.results <- res
	}
	crew.Go(e.render)
	crew.Go(e.report)
	over := make(chan struct{})
	crew.Go(func() { e.pace(over) })
	crew.Go(func() { e.watch(ctx, over) })
	crew.Go(func() { e.metrics.watch(ctx, over) })

	probes := make(chan struct{})
	if e.probing != "" {
		crew.Go(func() { defer close(probes); e.sample(e.probing, over) })
	} else {
		close(probes)
	}

	e.feed(reqs)
	e.jobs.Wait()
	close(over)
	e.alarm.wake()
	e.settleProbes(ctx, probes)
	e.kill(nil)
	crew.Wait()
	close(e.results)
	sink.Wait()
}

// drain hands the results to the sink, the first error of which ends the run.
func (e *engine) drain() {
	for res := range e.results {
		if err := e.cfg.Sink(res); err != nil {
			e.fail(err, reasonSink)
		}
	}
}

// pace starts each job at its time, until over is closed and the alarm woken.
func (e *engine) pace(over <-chan struct{}) {
	for e.stop.Err() == nil {
		due, any := e.queue.next()
		if !any {
			due = e.clock.now() + time.Hour
		}
		if wait := due - e.clock.now(); wait > 0 {
			e.alarm.wait(wait)
			continue
		}
		if j := e.queue.pop(); j != nil {
			e.admit(j)
		}
	}
	for {
		if j := e.queue.pop(); j != nil {
			e.abandon(j, e.stopReason())
			continue
		}
		select {
		case <-over:
			return
		default:
			e.alarm.wait(time.Hour)
		}
	}
}

// admit gives a job whose time has come a slot, a place in the line, or its end.
func (e *engine) admit(j *job) {
	if e.inFlight.Add(1) > int64(e.cfg.MaxInFlight) {
		e.inFlight.Add(-1)
		e.abandon(j, reasonInFlight)
		return
	}
	switch {
	case e.cfg.Load.Overflow == Shed:
		if !e.slots.try() {
			e.inFlight.Add(-1)
			e.abandon(j, reasonShed)
			return
		}
	case !e.slots.enter(j):
		return
	}
	e.start(j, j.due)
}

func (e *engine) start(j *job, granted time.Duration) {
	j.res.Granted = granted
	e.plans.give(j.weight)
	j.weight = 0
	select {
	case e.work <- j:
	default:
		go e.sender(j)
	}
}

// sender sends j, and then what comes: a goroutine whose stack has grown once
// is worth keeping, up to a few.
func (e *engine) sender(j *job) {
	for {
		e.send(j)
		if e.idle.Add(1) > idleSenders {
			e.idle.Add(-1)
			return
		}
		select {
		case j = <-e.work:
			e.idle.Add(-1)
		case <-e.life.Done():
			return
		}
	}
}

// send is the life of a request from its grant to its result.
func (e *engine) send(j *job) {
	select {
	case <-j.ready:
	case <-e.stop.Done():
	}
	switch {
	case e.stop.Err() != nil:
		e.drop(j)
		j.res.State, j.res.Reason = record.NotSent, e.stopReason()
	case j.err != nil:
		j.res.State, j.res.Reason = record.NotSent, e.scrub.clean(j.err.Error())
	default:
		size := int64(j.prompt.Size() + len(j.source))
		j.once = e.kept.Add(size) > keptBudget && e.cfg.Load.Retries == 0 // which need the plan
		e.exchange(e.life, j)
		e.kept.Add(-size)
	}
	if next := e.slots.leave(); next != nil {
		e.start(next, max(e.clock.now(), next.due))
	}
	e.inFlight.Add(-1)
	e.finish(j)
}

// abandon ends a job that was not sent.
func (e *engine) abandon(j *job, why string) {
	e.drop(j)
	j.res.State, j.res.Reason = record.NotSent, why
	e.finish(j)
}

func (e *engine) drop(j *job) {
	if e.queue.drop(j) {
		e.free(j)
	}
}

// finish closes a job: whoever waits for it goes on, and its result leaves.
func (e *engine) finish(j *job) {
	if j.turn != nil {
		e.release(j)
	}
	e.tally.note(&j.res)
	if !e.keepOutput {
		j.res.Output = nil // it was for the later turns
	}
	res := j.res
	e.results <- &res
	e.plans.give(j.weight)
	e.jobs.Done()
}
