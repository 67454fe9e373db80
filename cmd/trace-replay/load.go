package main

import (
	"retrace/record"
	"retrace/replay"
	"retrace/replay/arrival"
)

// load is what the recording's header says of the load.
func (r *runner) load(t replay.Target) record.Load {
	law := r.cfg.Placing.Law
	l := record.Load{
		Arrival: string(law.Name()), Rate: law.Rate,
		RampUp: string(law.RampUp), RampStart: law.Start, RampEnd: law.End,
		MaxInFlight: r.cfg.MaxInFlight, MaxDelay: r.cfg.Load.MaxDelay,
		WarmUp: t.WarmUp, ProbeRate: r.cfg.Load.ProbeRate, Retries: r.cfg.Load.Retries,
	}
	if r.cfg.MaxConcurrency > 0 {
		l.Overflow = string(r.cfg.Load.Overflow)
	}
	if r.cfg.Load.Assistant == replay.LiveAnswers {
		l.Assistant = string(replay.LiveAnswers)
	}
	if w := &r.survey.whole; w.delayOnly > 0 || r.cfg.Sessions == replay.Closed && w.requests > w.heads {
		l.FailedTurn = string(r.cfg.Load.FailedTurn)
	}
	if l.Retries > 0 {
		l.RetryMaxTime = r.cfg.Load.RetryMaxTime
	}
	if n := r.o.load.repeat; n > 1 {
		l.Repeat, l.Repeats = r.nth, n
	}
	if law.Kind == arrival.Gamma {
		l.Burstiness = law.Shape()
	}
	return l
}
