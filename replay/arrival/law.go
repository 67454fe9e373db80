package arrival

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// Kind names a law.
type Kind string

// The laws.
const (
	// Recorded keeps the trace's own times.
	Recorded Kind = "recorded"
	// Constant has a request every 1/Rate.
	Constant Kind = "constant"
	// Poisson has independent, exponentially distributed delays.
	Poisson Kind = "poisson"
	// Gamma has independent, gamma distributed delays of shape Burstiness.
	Gamma Kind = "gamma"
	// Burst has all requests at once, at 0.
	Burst Kind = "burst"
)

// RampUp names how the rate grows with the request's index.
type RampUp string

// The ramps.
const (
	Level       RampUp = ""            // the rate is Rate throughout
	Linear      RampUp = "linear"      // it grows by equal steps
	Exponential RampUp = "exponential" // it grows by equal factors
)

// Law says when requests arrive. The zero Law is Recorded.
type Law struct {
	Kind Kind
	// Rate is in requests a second; 0 with a ramp, whose it is then.
	Rate float64
	// Burstiness is the shape b of Gamma; 0 stands for 1, which is Poisson. The
	// delays' coefficient of variation is 1/√b: a b below 1 is bursty.
	Burstiness float64
	// RampUp goes from Start to End, in requests a second.
	RampUp     RampUp
	Start, End float64
}

// Replaces says whether the law has times of its own.
func (l Law) Replaces() bool { return l.Kind != "" && l.Kind != Recorded }

// drawn says whether the law has a rate.
func (l Law) drawn() bool { return l.Kind == Constant || l.Kind == Poisson || l.Kind == Gamma }

// Validate says what in the law cannot be, or would mean nothing.
func (l Law) Validate() error {
	switch l.Kind {
	case "", Recorded, Constant, Poisson, Gamma, Burst:
	default:
		return fmt.Errorf("arrival %q: want recorded, constant, poisson, gamma or burst", l.Kind)
	}
	if l.Burstiness != 0 && l.Kind != Gamma {
		return fmt.Errorf("burstiness %v: it is gamma's alone", l.Burstiness)
	}
	if l.Burstiness != 0 && !positive(l.Burstiness) {
		return fmt.Errorf("burstiness %v: want a number above 0", l.Burstiness)
	}
	if !l.drawn() {
		if l.Rate != 0 || l.RampUp != Level || l.Start != 0 || l.End != 0 {
			return fmt.Errorf("arrival %q has no rate: want constant, poisson or gamma with one", l.Name())
		}
		return nil
	}
	if l.RampUp == Level {
		if l.Start != 0 || l.End != 0 {
			return fmt.Errorf("start and end of a ramp without a ramp-up: want linear or exponential")
		}
		if !positive(l.Rate) {
			return fmt.Errorf("rate %v: want a number of requests a second above 0", l.Rate)
		}
		return nil
	}
	return l.validateRamp()
}

func (l Law) validateRamp() error {
	switch {
	case l.RampUp != Linear && l.RampUp != Exponential:
		return fmt.Errorf("ramp-up %q: want linear or exponential", l.RampUp)
	case l.Rate != 0:
		return fmt.Errorf("rate %v beside a ramp-up: the ramp has the rates", l.Rate)
	case !positive(l.Start) || !positive(l.End):
		return fmt.Errorf("ramp-up from %v to %v: want two numbers of requests a second above 0", l.Start, l.End)
	case l.End < l.Start:
		return fmt.Errorf("ramp-up from %v to %v: want an end that is not below the start", l.Start, l.End)
	}
	return nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

// Name is the law's kind, Recorded where none is set.
func (l Law) Name() Kind {
	if l.Kind == "" {
		return Recorded
	}
	return l.Kind
}

// longest bounds a schedule: what time.Duration can hold is 292 years.
const longest = 100 * 365 * 24 * time.Hour

// Fits says whether n requests come within 100 years.
func (l Law) Fits(n int64) error {
	slowest := l.Rate
	if l.RampUp != Level {
		slowest = l.Start
	}
	if l.drawn() && float64(n) > slowest*longest.Seconds() {
		return fmt.Errorf("%d requests at %v a second would take more than 100 years", n, slowest)
	}
	return nil
}

// String is the law in words.
func (l Law) String() string {
	text := string(l.Name())
	if l.Kind == Gamma {
		text += fmt.Sprintf(" of burstiness %v", l.Shape())
	}
	switch {
	case l.RampUp != Level:
		text += fmt.Sprintf(", %s ramp from %v to %v requests/s", l.RampUp, l.Start, l.End)
	case l.drawn():
		text += fmt.Sprintf(" at %v requests/s", l.Rate)
	}
	return text
}

// Shape is the burstiness that holds, 1 where none is set.
func (l Law) Shape() float64 {
	if l.Kind == Gamma && l.Burstiness != 0 {
		return l.Burstiness
	}
	return 1
}

// Times yields the offsets of n requests, which never go back. The same law, n
// and seed give the same times. It is for a valid law that Replaces.
func (l Law) Times(n int64, seed uint64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		level := l.drawn() && l.RampUp == Level
		total := 0.0
		if level {
			total = l.total(n, seed)
		}
		source := Source(seed, "arrival")
		sum := 0.0
		for i := range n {
			sum += l.delay(i, n, source)
			at := sum
			switch {
			case !level:
			case i == n-1: // where the rounding of sums does not reach
				at = float64(n) / l.Rate
			case sum > 0: // a shape can be so small that delays come out as 0
				at = min(sum/total, 1) * (float64(n) / l.Rate)
			}
			if !yield(duration(at)) {
				return
			}
		}
	}
}

// Span is the offset of the last of n requests, 0 for none.
func (l Law) Span(n int64, seed uint64) (last time.Duration) {
	if n > 0 && l.drawn() && l.RampUp == Level {
		return duration(float64(n) / l.Rate)
	}
	for at := range l.Times(n, seed) {
		last = at
	}
	return last
}

// total is the sum of n delays as they are drawn.
func (l Law) total(n int64, seed uint64) (sum float64) {
	source := Source(seed, "arrival")
	for i := range n {
		sum += l.delay(i, n, source)
	}
	return sum
}

// delay draws the time in seconds between request i of n and the one before.
func (l Law) delay(i, n int64, source *rand.Rand) float64 {
	if l.Kind == Burst {
		return 0
	}
	mean := 1 / l.rate(i, n)
	switch l.Kind {
	case Poisson:
		return source.ExpFloat64() * mean
	case Gamma:
		b := l.Shape()
		return gamma(b, source) * mean / b
	}
	return mean
}

// rate is what holds for request i of n.
func (l Law) rate(i, n int64) float64 {
	progress := float64(i) / float64(max(n-1, 1))
	switch l.RampUp {
	case Linear:
		return l.Start + (l.End-l.Start)*progress
	case Exponential:
		return l.Start * math.Pow(l.End/l.Start, progress)
	}
	return l.Rate
}

// Gaps yields the delays between the requests of an endless Poisson process of
// the given rate in requests a second, unscaled.
func Gaps(rate float64, source *rand.Rand) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for yield(duration(source.ExpFloat64() / rate)) {
		}
	}
}

// Source is a source of random numbers for one purpose of a run.
func Source(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // it never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// duration is s seconds, at most the longest schedule.
func duration(s float64) time.Duration {
	if s >= longest.Seconds() {
		return longest
	}
	return time.Duration(math.Round(s * float64(time.Second)))
}
