package formats

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// rateProfile counts arrivals in bins of equal width, which doubles when there
// are too many of them, so that its memory is bounded.
type rateProfile struct {
	width time.Duration
	bins  []int64
	total int64
}

// The width of a rateProfile's bins at first, and the most there may be.
const (
	firstBin = time.Second
	mostBins = 2048
)

// add counts an arrival, an offset from the trace's first; what lies before
// that counts as at it.
func (p *rateProfile) add(at time.Duration) {
	if p.width == 0 {
		p.width = firstBin
	}
	at = max(at, 0)
	for at/p.width >= mostBins && p.width <= math.MaxInt64/2 {
		p.fold()
	}
	i := int(at / p.width)
	for len(p.bins) <= i {
		p.bins = append(p.bins, 0)
	}
	p.bins[i]++
	p.total++
}

// fold makes one bin of every two.
func (p *rateProfile) fold() {
	half := p.bins[:0]
	for i := 0; i < len(p.bins); i += 2 {
		n := p.bins[i]
		if i+1 < len(p.bins) {
			n += p.bins[i+1]
		}
		half = append(half, n)
	}
	p.bins = half
	p.width *= 2
}

// median is the rate, in requests a second, that the median request arrives
// in; 0 where there are none.
func (p *rateProfile) median() float64 {
	var below int64
	for _, n := range slices.Sorted(slices.Values(p.bins)) {
		if below += n; 2*below >= p.total && p.total > 0 {
			return float64(n) / p.width.Seconds()
		}
	}
	return 0
}

// farOff is how many times the mean rate of a part of a trace must differ from
// the whole trace's median rate to be worth a warning.
const farOff = 3

// OddRates compares the part that was selected by a window or a limit, once its
// requests were ranged over, with the whole trace: the part's mean rate and the
// whole's median rate, both in requests a second of the trace's own time, and
// whether they differ so much that the part is not like the rest, such as a
// head that is nearly idle.
func (t *Trace) OddRates() (mean, median float64, odd bool) {
	rates, f := t.found.facts.rates, t.figures
	if rates == nil || f.Span() <= 0 || t.sel.Shards > 1 {
		return 0, 0, false
	}
	mean, _ = f.MeanRate()
	median = rates.median()
	if t.sel.scaled() {
		mean /= t.sel.Speed
	}
	return mean, median, median != 0 && (mean >= median*farOff || mean <= median/farOff)
}

// oddPart is the warning of OddRates, "" where the part is like the rest.
func (t *Trace) oddPart() string {
	mean, median, odd := t.OddRates()
	if !odd {
		return ""
	}
	return fmt.Sprintf("the chosen part has %.3g requests/s on average, the trace's median is %.3g: it is not like the rest", mean, median)
}
