package analysis

import "math"

// Quantile is the q-quantile (0 to 1) of values sorted in ascending order, by
// linear interpolation between closest ranks, numpy's default. It reports
// false for no values and for a q outside 0 to 1.
func Quantile(sorted []float64, q float64) (float64, bool) {
	n := len(sorted)
	if n == 0 || math.IsNaN(q) || q < 0 || q > 1 {
		return 0, false
	}
	lo, t := rank(int64(n), q)
	if t == 0 {
		return sorted[lo], true
	}
	return lerp(sorted[lo], sorted[lo+1], t), true
}

// rank is where the q-quantile of n values lies: between the values at lo and
// lo+1, the share t of the way. t is 0 at the last value.
func rank(n int64, q float64) (lo int64, t float64) {
	h := q * float64(n-1)
	lo = int64(h)
	if lo >= n-1 {
		return n - 1, 0
	}
	return lo, h - float64(lo)
}

// lerp goes the share t from a to b, from the nearer end as numpy does, so
// that lerp(a, a, t) is a and the result never leaves the interval.
func lerp(a, b, t float64) float64 {
	if t >= 0.5 {
		return b - (b-a)*(1-t)
	}
	return a + (b-a)*t
}
