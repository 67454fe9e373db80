package analysis

import (
	"slices"
	"time"
)

// Arrivals describes when requests arrive.
type Arrivals struct {
	// RateRPS is requests by duration, CV the standard deviation of the times
	// between arrivals by their mean: 1 for a Poisson process.
	RateRPS      Value `json:"rate_rps"`
	CV           Value `json:"cv"`
	Interarrival Stats `json:"interarrival_s"`
}

// RateBin is the request rate of one part of a trace.
type RateBin struct {
	StartS   float64 `json:"start_s"`
	EndS     float64 `json:"end_s"`
	Requests int64   `json:"requests"`
	RateRPS  float64 `json:"rate_rps"`
}

const (
	nsPerS = 1e9
	// profileBins is the number of equal parts of a rate profile.
	profileBins = 12
	// idleGroups, idleFactor: the head is idle where the first of this many
	// equally numerous groups of requests come this much more slowly than the
	// median group.
	idleGroups = 50
	idleFactor = 10
)

// span is from the first arrival to the last.
func span(arrivals []time.Duration) (time.Duration, bool) {
	if len(arrivals) == 0 {
		return 0, false
	}
	return slices.Max(arrivals) - slices.Min(arrivals), true
}

func arrivalsOf(arrivals []time.Duration) Arrivals {
	var gaps Counter
	for i := 1; i < len(arrivals); i++ {
		gaps.Add(int64(arrivals[i] - arrivals[i-1]))
	}
	a := Arrivals{Interarrival: gaps.Stats(nsPerS)}
	if d, ok := span(arrivals); ok {
		a.RateRPS = Ratio(float64(len(arrivals)), d.Seconds())
	}
	if a.Interarrival.Count > 0 {
		a.CV = Ratio(a.Interarrival.Std.V, a.Interarrival.Mean.V)
	}
	return a
}

// distinct is the number of different times in a sorted list.
func distinct(arrivals []time.Duration) int {
	n := 0
	for i, at := range arrivals {
		if i == 0 || at != arrivals[i-1] {
			n++
		}
	}
	return n
}

// profile is the rate over equal parts of a trace's duration, none where it
// has no duration.
func profile(arrivals []time.Duration) []RateBin {
	d, ok := span(arrivals)
	if !ok || d <= 0 {
		return []RateBin{}
	}
	first := slices.Min(arrivals)
	bins := make([]RateBin, profileBins)
	width := d.Seconds() / profileBins
	for i := range bins {
		bins[i].StartS = first.Seconds() + float64(i)*width
		bins[i].EndS = first.Seconds() + float64(i+1)*width
	}
	for _, at := range arrivals {
		i := int((at - first).Seconds() / d.Seconds() * profileBins)
		bins[min(i, profileBins-1)].Requests++
	}
	for i := range bins {
		bins[i].RateRPS = float64(bins[i].Requests) / width
	}
	return bins
}

// idleHead finds the requests at the head that come far more slowly than the
// rest: how many, how long they take, and the median rate per second.
func idleHead(arrivals []time.Duration) (n int, d time.Duration, median float64) {
	size := len(arrivals) / idleGroups
	if size < 2 {
		return 0, 0, 0
	}
	var rates []float64
	for i := 0; i+size < len(arrivals); i += size {
		took := max(arrivals[i+size]-arrivals[i], time.Microsecond)
		rates = append(rates, float64(size)/took.Seconds())
	}
	sorted := slices.Sorted(slices.Values(rates))
	median, _ = Quantile(sorted, 0.5)
	for _, r := range rates {
		if r >= median/idleFactor {
			break
		}
		n += size
	}
	return n, arrivals[n] - arrivals[0], median
}
