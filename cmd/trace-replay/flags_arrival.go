package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"retrace/replay/arrival"
)

// arrivalFlags are those of the arrival law.
type arrivalFlags struct {
	set                          *pflag.FlagSet
	kind, rampUp                 string
	rate, burstiness, from, upTo float64
}

func (f *arrivalFlags) bind(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.kind, "arrival", string(arrival.Recorded), "`NAME`: when requests arrive: recorded (the trace's times), constant, poisson, gamma, or burst (all at once)")
	set.Float64Var(&f.rate, "rate", 0, "`R`: requests a second of constant, poisson and gamma arrivals; N requests take N/R seconds")
	set.Float64Var(&f.burstiness, "burstiness", 1, "`B`: the shape of gamma arrivals: below 1 bursty, 1 as poisson, above it even")
	set.StringVar(&f.rampUp, "ramp-up", "", "`linear|exponential`: let the rate grow from the first request to the last, in place of --rate")
	set.Float64Var(&f.from, "ramp-start", 0, "`R`: requests a second where the ramp begins")
	set.Float64Var(&f.upTo, "ramp-end", 0, "`R`: requests a second where the ramp ends")
}

// law checks the flags and names the one that is wrong: one that would do
// nothing is.
func (f *arrivalFlags) law() (arrival.Law, error) {
	l := arrival.Law{Kind: arrival.Kind(f.kind), Rate: f.rate, RampUp: arrival.RampUp(f.rampUp), Start: f.from, End: f.upTo}
	if f.set.Changed("burstiness") {
		l.Burstiness = f.burstiness
	}
	rated := l.Kind == arrival.Constant || l.Kind == arrival.Poisson || l.Kind == arrival.Gamma
	ramped := f.set.Changed("ramp-up")
	if !oneOf(f.kind, "recorded", "constant", "poisson", "gamma", "burst") {
		return l, fmt.Errorf("--arrival %s: want recorded, constant, poisson, gamma or burst", f.kind)
	}
	for _, name := range []string{"rate", "ramp-up", "ramp-start", "ramp-end"} {
		if f.set.Changed(name) && !rated {
			return l, fmt.Errorf("--%s: --arrival %s has no rate of its own; --arrival constant, poisson or gamma has one", name, f.kind)
		}
	}
	switch {
	case f.set.Changed("burstiness") && l.Kind != arrival.Gamma:
		return l, errors.New("--burstiness: it shapes --arrival gamma alone")
	case f.set.Changed("burstiness") && f.burstiness == 0:
		return l, errors.New("--burstiness 0: want a number above 0")
	case !ramped && (f.set.Changed("ramp-start") || f.set.Changed("ramp-end")):
		return l, errors.New("--ramp-start and --ramp-end need --ramp-up linear or exponential")
	case ramped && f.rampUp == "":
		return l, errors.New("--ramp-up: want linear or exponential")
	case ramped && f.set.Changed("rate"):
		return l, errors.New("--rate and --ramp-up exclude each other: the ramp goes from --ramp-start to --ramp-end")
	case ramped && (!f.set.Changed("ramp-start") || !f.set.Changed("ramp-end")):
		return l, errors.New("--ramp-up needs --ramp-start and --ramp-end")
	case rated && !ramped && !f.set.Changed("rate"):
		return l, fmt.Errorf("--arrival %s needs --rate, or --ramp-up", f.kind)
	}
	if err := l.Validate(); err != nil {
		return l, fmt.Errorf("--arrival %s: %w", f.kind, err)
	}
	return l, nil
}
