package analysis

import (
	"math"

	"retrace/hashing/prefixcache"
)

// Zipf is a Zipf law fitted to how often things are used: the thing of rank r,
// the most used one having rank 1, has the share r^-s / Σ k^-s (k = 1 … N) of
// all uses.
type Zipf struct {
	// Exponent is s by maximum likelihood over the ranks: where the mean of
	// ln r under the law is that of the uses.
	Exponent float64 `json:"exponent"`
	// KS is the Kolmogorov-Smirnov distance, the largest difference between
	// the share of the uses up to a rank and that of the law: 0 for a perfect
	// fit.
	KS float64 `json:"ks"`
	// N is how many things there are, each with one rank.
	N int64 `json:"n"`
}

// mostExponent bounds the search: beyond it the first rank has all uses.
const mostExponent = 64

// fitZipf fits the law to things counted by their uses, the most used ones
// first. It needs two things at least.
//
// The likelihood of ranks is that of A. Clauset, C. R. Shalizi and M. E. J.
// Newman, "Power-law distributions in empirical data", SIAM Review 51(4), 2009,
// equation 3.5, with a largest value N (so that the zeta function is a finite
// sum); their KS distance is equation 3.9. Ranks come from the same counts, so
// the exponent describes the trace and is no estimate with an error bar.
func fitZipf(list []prefixcache.Frequency) *Zipf {
	var n, uses int64
	for _, f := range list {
		n += f.Blocks
		uses += f.Uses * f.Blocks
	}
	if n < 2 {
		return nil
	}
	want, rank := 0.0, 0.0 // the mean of ln r over all uses
	for _, f := range list {
		before, _ := math.Lgamma(rank + 1)
		rank += float64(f.Blocks)
		after, _ := math.Lgamma(rank + 1)
		want += float64(f.Uses) * (after - before)
	}
	want /= float64(uses)
	low, high := 0.0, float64(mostExponent)
	for range 60 {
		s := (low + high) / 2
		if sum, logs := powerSums(float64(n), s); logs/sum > want {
			low = s
		} else {
			high = s
		}
	}
	z := &Zipf{Exponent: (low + high) / 2, N: n}
	if z.Exponent < 1e-12 { // all ranks are used equally often
		z.Exponent = 0
	}
	z.KS = ksZipf(list, z.Exponent, float64(n), float64(uses))
	return z
}

// ksZipf is the largest distance between the two distributions. Within things
// of equal uses the one grows evenly and the other ever more slowly, so the
// distance is largest at their ends or where both grow equally fast.
func ksZipf(list []prefixcache.Frequency, s, n, uses float64) float64 {
	total, _ := powerSums(n, s)
	var most, rank, below float64
	for _, f := range list {
		share, blocks := float64(f.Uses)/uses, float64(f.Blocks)
		look := func(r float64) {
			if r < rank+1 || r > rank+blocks {
				return
			}
			law, _ := powerSums(r, s)
			most = max(most, math.Abs(law/total-(below+share*(r-rank))))
		}
		look(rank + 1)
		look(rank + blocks)
		if s > 0 {
			equal := math.Pow(share*total, -1/s)
			for _, r := range []float64{math.Floor(equal) - 1, math.Floor(equal), math.Ceil(equal)} {
				look(r)
			}
		}
		below += share * blocks
		rank += blocks
	}
	return most
}

// powerSums are Σ k^-s and Σ k^-s ln k for k from 1 to n, the terms beyond the
// first ones by Euler and Maclaurin's formula (NIST Digital Library of
// Mathematical Functions, 2.10.1).
func powerSums(n, s float64) (sum, logs float64) {
	const exact = 32
	for k := 1.0; k <= min(n, exact); k++ {
		p := math.Pow(k, -s)
		sum += p
		logs += p * math.Log(k)
	}
	if n <= exact {
		return sum, logs
	}
	const a = exact + 1
	pa, la := math.Pow(a, -s), math.Log(a)
	pn, ln := math.Pow(n, -s), math.Log(n)
	sum, logs = sum+powerIntegral(a, n, s, 0), logs+powerIntegral(a, n, s, 1)
	// Half of both ends, and the first derivatives.
	sum += (pa + pn) / 2
	logs += (pa*la + pn*ln) / 2
	sum += (s*pa/a - s*pn/n) / 12
	logs += (pn*(1-s*ln)/n - pa*(1-s*la)/a) / 12
	// The third derivatives.
	third := func(x, p, l float64) (power, log float64) {
		c := s * (s + 1) * (s + 2)
		return -c * p / (x * x * x), p * ((3*s*s + 6*s + 2) - c*l) / (x * x * x)
	}
	pa3, la3 := third(a, pa, la)
	pn3, ln3 := third(n, pn, ln)
	sum -= (pn3 - pa3) / 720
	logs -= (ln3 - la3) / 720
	return sum, logs
}

// powerIntegral is the integral of x^-s (ln x)^m from a to n, for m of 0 or 1.
func powerIntegral(a, n, s float64, m int) float64 {
	d, la, ln := 1-s, math.Log(a), math.Log(n)
	if math.Abs(d)*ln >= 1 {
		power := func(x, l float64) float64 {
			p := math.Pow(x, d) / d
			if m == 1 {
				return p*l - p/d
			}
			return p
		}
		return power(n, ln) - power(a, la)
	}
	// Near s = 1 these cancel out; x^-s is Σ (d ln x)^k / k! / x.
	var sum float64
	factor, pa, pn := 1.0, la, ln
	if m == 1 {
		pa, pn = la*la, ln*ln
	}
	for k := range 25 {
		sum += factor * (pn - pa) / float64(k+1+m)
		pa, pn, factor = pa*la, pn*ln, factor*d/float64(k+1)
	}
	return sum
}
