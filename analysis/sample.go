package analysis

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Sample collects real values for exact statistics; use Counter for times. It
// keeps every value, 8 bytes each. The zero Sample is empty and ready.
type Sample struct {
	values  []float64
	dropped int64
}

// Add takes one value. NaN and the infinities are counted apart and left out.
func (s *Sample) Add(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		s.dropped++
		return
	}
	s.values = append(s.values, v)
}

// Merge takes all of other's values.
func (s *Sample) Merge(other *Sample) {
	s.values = append(s.values, other.values...)
	s.dropped += other.dropped
}

// Count is the number of values, without the dropped ones.
func (s *Sample) Count() int64 { return int64(len(s.values)) }

// Dropped is the number of values that were NaN or infinite.
func (s *Sample) Dropped() int64 { return s.dropped }

// Stats describes the values. It works on a sorted copy, so that the order of
// arrival has no influence on the last digit of the mean.
func (s *Sample) Stats() Stats {
	n := len(s.values)
	if n == 0 {
		return Stats{}
	}
	sorted := slices.Clone(s.values)
	slices.Sort(sorted)
	mean, std := stat.PopMeanStdDev(sorted, nil)
	st := Stats{
		Count: int64(n), Mean: Some(mean), Std: Some(std),
		Min: Some(sorted[0]), Max: Some(sorted[n-1]),
	}
	for i, p := range []*Value{&st.P50, &st.P90, &st.P95, &st.P99} {
		q, ok := Quantile(sorted, percentiles[i])
		*p = Value{V: q, OK: ok}
	}
	return st
}
