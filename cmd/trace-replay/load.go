package main

import (
	"retrace/record"
	"retrace/replay"
	"retrace/replay/arrival"
)

// load is what the recording's header says of the load.
func (r *runner) load(_ replay.Target) record.Load {
	law := r.cfg.Placing.Law
	l := record.Load{
		Arrival: string(law.Name()), Rate: law.Rate,
		RampUp: string(law.RampUp), RampStart: law.Start, RampEnd: law.End,
		MaxInFlight: r.cfg.MaxInFlight,
	}
	if law.Kind == arrival.Gamma {
		l.Burstiness = law.Shape()
	}
	return l
}
