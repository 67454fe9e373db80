package replay

import "time"

// soon is how close to its time a job must be for its body to be rendered
// without room for it: in closed sessions a turn may come up that is due
// before what the look-ahead holds.
const soon = 5 * time.Millisecond

// render turns plans into bodies, ahead of the pacer, within the look-ahead.
func (e *engine) render() {
	for {
		j := e.queue.draft(e.life)
		if j == nil {
			return
		}
		size := e.bodies.size(j)
		switch e.makeRoom(j, size) {
		case roomEnd:
			return
		case roomLater:
			e.queue.redraft(j)
			continue
		}
		j.held = size
		e.draft(j)
		if !e.queue.deliver(j) {
			e.free(j)
		}
		close(j.ready)
	}
}

// room is how the wait for a body's room ended.
type room uint8

const (
	roomTaken room = iota
	roomLater      // other jobs came up, perhaps more urgent ones
	roomEnd        // the run is over
)

// makeRoom takes n bytes of the look-ahead for j. Where it has to wait it looks
// up when other jobs come, and when j itself is due soon.
func (e *engine) makeRoom(j *job, n int64) room {
	if e.sessions == nil {
		if !e.drafts.take(e.life, n) {
			return roomEnd
		}
		return roomTaken
	}
	for {
		left := j.due - soon - e.clock.now()
		if left <= 0 && e.drafts.roomTwice(n) {
			e.drafts.force(n)
			return roomTaken
		}
		if e.drafts.tryTake(n) {
			return roomTaken
		}
		due := time.NewTimer(max(left, soon))
		select {
		case <-e.drafts.freed:
		case <-due.C:
		case <-e.queue.drawn:
			due.Stop()
			return roomLater
		case <-e.life.Done():
			due.Stop()
			return roomEnd
		}
		due.Stop()
	}
}

// draft renders one body. Predictions are made here, for jobs pass in the
// order of their sending; but those that need the other shards' requests.
func (e *engine) draft(j *job) {
	if e.predict != nil && j.source == nil && !e.foresees() {
		j.res.PredictedHit = e.predictHit(j)
	}
	j.body, j.err = e.body(j)
	if j.err != nil {
		e.free(j)
	}
}

// free gives up what was drafted for a job that is not sent.
func (e *engine) free(j *job) {
	if j.body != nil && cap(*j.body) <= maxPooled {
		bufferPool.Put(j.body)
	}
	e.drafts.give(j.held)
	j.body, j.held = nil, 0
}

func (e *engine) body(j *job) (*[]byte, error) {
	buf := bufferPool.Get().(*[]byte)
	b, err := e.bodies.append((*buf)[:0], j)
	if err != nil {
		return nil, err
	}
	*buf = b
	return buf, nil
}

// report calls Config.Progress, and skips a beat where it is slow.
func (e *engine) report() {
	if e.cfg.Progress == nil {
		return
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.cfg.Progress(e.progress())
		case <-e.life.Done():
			e.cfg.Progress(e.progress())
			return
		}
	}
}

func (e *engine) progress() Progress {
	active, waiting := e.slots.counts()
	t := &e.tally
	return Progress{
		Elapsed: e.clock.now(), Planned: t.planned.Load(), Known: e.readAll.Load(),
		Sent: t.sent.Load(), InFlight: int64(active), Waiting: int64(waiting),
		Done: t.done(), Failed: t.failed.Load(), NotSent: t.notSent.Load(),
		Lag: time.Duration(t.lag.Swap(0)),
	}
}
