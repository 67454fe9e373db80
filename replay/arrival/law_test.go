package arrival

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func times(l Law, n int64, seed uint64) []time.Duration { return slices.Collect(l.Times(n, seed)) }

const ms = time.Millisecond

// TestFixedTimes: by hand. A ramp from 1 to 4 over 4 requests has the rates 1, 2,
// 3, 4 (linear), so the times 1, 1+1/2, 1+1/2+1/3, 1+1/2+1/3+1/4; from 1 to 8 the
// rates 1, 2, 4, 8 (exponential).
func TestFixedTimes(t *testing.T) {
	for _, c := range []struct {
		law  Law
		n    int64
		want []time.Duration
	}{
		{Law{Kind: Constant, Rate: 4}, 4, []time.Duration{250 * ms, 500 * ms, 750 * ms, 1000 * ms}},
		{Law{Kind: Constant, Rate: 4}, 0, nil},
		{Law{Kind: Poisson, Rate: 4}, 1, []time.Duration{250 * ms}},
		{Law{Kind: Burst}, 3, []time.Duration{0, 0, 0}},
		{Law{Kind: Constant, RampUp: Linear, Start: 1, End: 4}, 4, []time.Duration{1000 * ms, 1500 * ms, 1833333333, 2083333333}},
		{Law{Kind: Constant, RampUp: Exponential, Start: 1, End: 8}, 4, []time.Duration{1000 * ms, 1500 * ms, 1750 * ms, 1875 * ms}},
		{Law{Kind: Constant, RampUp: Linear, Start: 5, End: 9}, 1, []time.Duration{200 * ms}},
	} {
		t.Run(fmt.Sprint(c.law, c.n), func(t *testing.T) {
			got := times(c.law, c.n, 7)
			if !slices.Equal(got, c.want) {
				t.Errorf("times %v, want %v", got, c.want)
			}
			if len(got) > 0 && c.law.Span(c.n, 7) != got[len(got)-1] {
				t.Errorf("span %v, last %v", c.law.Span(c.n, 7), got[len(got)-1])
			}
		})
	}
}

// TestNormalised: n requests take n/rate to the nanosecond, none goes back, and
// a seed has its own times.
func TestNormalised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Law{Kind: rapid.SampledFrom([]Kind{Constant, Poisson, Gamma}).Draw(t, "kind"), Rate: rapid.Float64Range(1e-3, 1e5).Draw(t, "rate")}
		if l.Kind == Gamma {
			l.Burstiness = rapid.Float64Range(1e-4, 1e4).Draw(t, "burstiness")
		}
		n, seed := rapid.Int64Range(1, 300).Draw(t, "n"), rapid.Uint64().Draw(t, "seed")
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		got := times(l, n, seed)
		want := time.Duration(math.Round(float64(n) / l.Rate * 1e9))
		if last := got[n-1]; last != want || int64(len(got)) != n || !slices.IsSorted(got) || got[0] < 0 {
			t.Fatalf("last of %d is %v, want %v; sorted %v", len(got), last, want, slices.IsSorted(got))
		}
		if !slices.Equal(got, times(l, n, seed)) {
			t.Fatal("another look gives other times")
		}
		if n > 3 && l.Kind == Poisson && slices.Equal(got, times(l, n, seed+1)) {
			t.Fatal("another seed gives the same times")
		}
	})
}

// delays are the differences of times.
func delays(l Law, n int64) []float64 {
	var list []float64
	last := time.Duration(0)
	for at := range l.Times(n, 11) {
		list = append(list, (at - last).Seconds())
		last = at
	}
	return list
}

// TestDistributions holds the delays against the distribution functions of
// gonum (Kolmogorov–Smirnov: 1.95/√n is passed once in a thousand times, and the
// seed is fixed), and against the documented coefficient of variation 1/√b.
func TestDistributions(t *testing.T) {
	const n, rate = 20000, 50.0
	for _, c := range []struct {
		law Law
		b   float64
	}{
		{Law{Kind: Poisson, Rate: rate}, 1},
		{Law{Kind: Gamma, Rate: rate}, 1},
		{Law{Kind: Gamma, Rate: rate, Burstiness: 0.1}, 0.1},
		{Law{Kind: Gamma, Rate: rate, Burstiness: 0.5}, 0.5},
		{Law{Kind: Gamma, Rate: rate, Burstiness: 5}, 5},
		{Law{Kind: Gamma, Rate: rate, Burstiness: 400}, 400},
	} {
		t.Run(c.law.String(), func(t *testing.T) {
			list := delays(c.law, n)
			slices.Sort(list)
			dist := distuv.Gamma{Alpha: c.b, Beta: rate * c.b}
			worst, sum, squares := 0.0, 0.0, 0.0
			for i, x := range list {
				if x > 1e-6 { // below it the nanosecond shows
					p := dist.CDF(x)
					worst = max(worst, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
				}
				sum, squares = sum+x, squares+x*x
			}
			if limit := 1.95 / math.Sqrt(n); worst > limit {
				t.Errorf("distance %.4f, at most %.4f", worst, limit)
			}
			mean := sum / n
			cv := math.Sqrt(squares/n-mean*mean) / mean
			if want := 1 / math.Sqrt(c.b); math.Abs(cv/want-1) > 0.05 || math.Abs(mean*rate-1) > 1e-6 {
				t.Errorf("coefficient of variation %.3f, want %.3f; mean %v", cv, want, mean)
			}
		})
	}
}

// TestRampMeans: along a ramp each stretch has its rate on average: the mean
// delay of the middle tenth of a linear ramp from 10 to 30 is 1/20 s.
func TestRampMeans(t *testing.T) {
	for _, kind := range []Kind{Poisson, Gamma} {
		list := delays(Law{Kind: kind, RampUp: Linear, Start: 10, End: 30}, 40000)
		sum := 0.0
		for _, d := range list[18000:22000] {
			sum += d
		}
		if mean := sum / 4000; math.Abs(mean*20-1) > 0.06 {
			t.Errorf("%s: mean delay %v, want 0.05", kind, mean)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, l := range map[string]Law{
		`arrival "x"`:             {Kind: "x"},
		"burstiness 2: it is":     {Kind: Poisson, Rate: 1, Burstiness: 2},
		"burstiness -1: want":     {Kind: Gamma, Rate: 1, Burstiness: -1},
		"burstiness NaN":          {Kind: Gamma, Rate: 1, Burstiness: math.NaN()},
		"burstiness +Inf":         {Kind: Gamma, Rate: 1, Burstiness: math.Inf(1)},
		`"recorded" has no rate`:  {Rate: 3},
		`"burst" has no rate`:     {Kind: Burst, RampUp: Linear},
		"rate 0: want":            {Kind: Constant},
		"rate -1: want":           {Kind: Gamma, Rate: -1},
		"rate NaN: want":          {Kind: Poisson, Rate: math.NaN()},
		"rate +Inf: want":         {Kind: Poisson, Rate: math.Inf(1)},
		"without a ramp-up":       {Kind: Poisson, Rate: 1, Start: 1},
		`ramp-up "steep"`:         {Kind: Poisson, RampUp: "steep"},
		"rate 1 beside a ramp-up": {Kind: Poisson, Rate: 1, RampUp: Linear, Start: 1, End: 2},
		"ramp-up from 0 to 2":     {Kind: Poisson, RampUp: Linear, End: 2},
		"end that is not below":   {Kind: Poisson, RampUp: Exponential, Start: 2, End: 1},
	} {
		err := l.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
	var zero Law
	if zero.Validate() != nil || zero.Replaces() || zero.String() != "recorded" {
		t.Errorf("zero law: %v", zero)
	}
}

// TestNoOverflow: slow laws stay within what a Duration holds.
func TestNoOverflow(t *testing.T) {
	slow := Law{Kind: Poisson, Rate: 1e-300}
	if slow.Fits(3) == nil || (Law{Kind: Constant, Rate: 1}).Fits(1000) != nil || (Law{Kind: Burst}).Fits(math.MaxInt64) != nil {
		t.Error("Fits")
	}
	if last := slow.Span(3, 0); last != longest {
		t.Errorf("last %v", last)
	}
	if got := times(Law{Kind: Gamma, Rate: 1, Burstiness: 1e-300}, 3, 0); got[2] != 3*time.Second || !slices.IsSorted(got) {
		t.Errorf("shape of nearly nothing: %v", got)
	}
}

// TestGaps: 1000 gaps at 100/s take some 10 s; purposes have sources of their own.
func TestGaps(t *testing.T) {
	total, n := time.Duration(0), 0
	for d := range Gaps(100, Source(1, "probe")) {
		total += d
		if n++; n == 1000 {
			break
		}
	}
	if math.Abs(total.Seconds()-10) > 1 {
		t.Errorf("1000 gaps take %v", total)
	}
	if Source(1, "a").Uint64() == Source(1, "b").Uint64() || Source(1, "a").Uint64() != Source(1, "a").Uint64() {
		t.Error("sources")
	}
}

func BenchmarkTimes(b *testing.B) {
	for range b.N {
		for range (Law{Kind: Gamma, Rate: 100, Burstiness: 0.5}).Times(100000, 1) {
		}
	}
}

// Delays whose sum is so small that the rate divided by it overflows still end
// at n/rate, and none is before 0.
func TestSmallestDelays(t *testing.T) {
	got := times(Law{Kind: Gamma, Rate: 1, Burstiness: 1e-4}, 6, 0)
	if !slices.IsSorted(got) || got[0] < 0 || got[5] != 6*time.Second {
		t.Errorf("times %v", got)
	}
}
