package analysis

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestQuantile(t *testing.T) {
	// Expected values from numpy.percentile (default method).
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
		ok     bool
	}{
		{nil, 0.5, 0, false},
		{[]float64{7}, 0, 7, true},
		{[]float64{7}, 0.99, 7, true},
		{[]float64{1, 2}, 0.5, 1.5, true},
		{[]float64{1, 2}, 0.9, 1.9, true},
		{[]float64{1, 2, 3, 4}, 0.25, 1.75, true},
		{[]float64{1, 2, 3, 4}, 1, 4, true},
		{[]float64{1, 2, 3, 4, 100}, 0.9, 61.6, true},
		{[]float64{1, 2}, 1.5, 0, false},
		{[]float64{1, 2}, -0.1, 0, false},
		{[]float64{1, 2}, math.NaN(), 0, false},
	} {
		got, ok := Quantile(c.values, c.q)
		if ok != c.ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Quantile(%v, %g) = %g, %v; want %g, %v", c.values, c.q, got, ok, c.want, c.ok)
		}
	}
}

// TestSmallSamples has the distributions of nothing, one and two values, for
// both collectors: {3}: std 0; {1, 4}: mean 2.5, population std 1.5 (sample
// std would be 2.12), p90 1 + 0.9·3 = 3.7, p95 3.85, p99 3.97.
func TestSmallSamples(t *testing.T) {
	for _, c := range []struct {
		values []int64
		want   string
	}{
		{nil, `{"count":0,"mean":null,"std":null,"min":null,"p50":null,"p90":null,"p95":null,"p99":null,"max":null}`},
		{[]int64{3}, `{"count":1,"mean":3,"std":0,"min":3,"p50":3,"p90":3,"p95":3,"p99":3,"max":3}`},
		{[]int64{4, 1}, `{"count":2,"mean":2.5,"std":1.5,"min":1,"p50":2.5,"p90":3.7,"p95":3.85,"p99":3.97,"max":4}`},
	} {
		var sample Sample
		var counter Counter
		for _, v := range c.values {
			sample.Add(float64(v))
			counter.Add(v)
		}
		for name, stats := range map[string]Stats{"Sample": sample.Stats(), "Counter": counter.Stats(1)} {
			if got := rounded(t, stats); got != c.want {
				t.Errorf("%s of %v:\n got %s\nwant %s", name, c.values, got, c.want)
			}
		}
	}
}

// rounded is the JSON of a distribution to twelve digits.
func rounded(t *testing.T, s Stats) string {
	t.Helper()
	for _, v := range []*Value{&s.Mean, &s.Std, &s.Min, &s.P50, &s.P90, &s.P95, &s.P99, &s.Max} {
		v.V = math.Round(v.V*1e9) / 1e9
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNaNIsCountedApart(t *testing.T) {
	var s Sample
	for _, v := range []float64{math.NaN(), 2, math.Inf(1), 4, math.Inf(-1)} {
		s.Add(v)
	}
	if s.Dropped() != 3 || s.Count() != 2 {
		t.Errorf("got %d dropped and %d kept, want 3 and 2", s.Dropped(), s.Count())
	}
	if got := s.Stats(); got.Mean != Some(3) {
		t.Errorf("mean: got %v, want 3", got.Mean)
	}
	var other Sample
	other.Add(math.NaN())
	s.Merge(&other)
	if s.Dropped() != 4 {
		t.Errorf("merged: got %d dropped, want 4", s.Dropped())
	}
}

func TestSampleKeepsItsOrder(t *testing.T) {
	s := Sample{values: []float64{3, 1, 2}}
	s.Stats()
	if !slices.Equal(s.values, []float64{3, 1, 2}) {
		t.Errorf("the values were sorted in place: %v", s.values)
	}
}

func TestValueJSON(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{Value{}, "null"},
		{Some(math.NaN()), "null"},
		{Some(math.Inf(1)), "null"},
		{Ratio(1, 0), "null"},
		{Ratio(0, 5), "0"},
		{Some(5), "5"},
		{Some(0.1), "0.1"},
		{Some(123456789.5), "123456789.5"},
	} {
		b, err := json.Marshal(c.v)
		if err != nil || string(b) != c.want {
			t.Errorf("%+v: got %s (%v), want %s", c.v, b, err, c.want)
		}
		var back Value
		if err := json.Unmarshal(b, &back); err != nil || back != c.v {
			t.Errorf("%s read back: got %+v (%v), want %+v", b, back, err, c.v)
		}
	}
}

// numpyLike is the description of a list straight from the definitions.
func numpyLike(values []int64, unit float64) Stats {
	if len(values) == 0 {
		return Stats{}
	}
	x := make([]float64, len(values))
	var sum float64
	for i, v := range values {
		x[i] = float64(v) / unit
		sum += x[i]
	}
	slices.Sort(x)
	n := float64(len(x))
	mean := sum / n
	var squares float64
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	q := func(p float64) Value {
		h := p * (n - 1)
		lo, hi := x[int(math.Floor(h))], x[int(math.Ceil(h))]
		return Some(lo + (h-math.Floor(h))*(hi-lo))
	}
	return Stats{
		Count: int64(len(x)), Mean: Some(mean), Std: Some(math.Sqrt(squares / n)),
		Min: Some(x[0]), Max: Some(x[len(x)-1]),
		P50: q(0.5), P90: q(0.9), P95: q(0.95), P99: q(0.99),
	}
}

// near compares figures to a relative 1e-9.
var near = cmp.Comparer(func(a, b Value) bool {
	return a.OK == b.OK && math.Abs(a.V-b.V) <= 1e-9*max(1, math.Abs(a.V), math.Abs(b.V))
})

// drawValues draws values of all ranges of a Counter: dense, sparse, negative.
func drawValues(t *rapid.T, label string) []int64 {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.Int64Range(0, 50),
		rapid.Int64Range(0, denseLimit+10),
		rapid.Int64Range(-1000, 1e9),
	), 0, 300).Draw(t, label)
}

func TestCounterIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawValues(t, "a"), drawValues(t, "b")
		var x, y, all Counter
		for _, v := range a {
			x.Add(v)
			all.Add(v)
		}
		for _, v := range b {
			y.Add(v)
			all.Add(v)
		}
		if d := cmp.Diff(numpyLike(a, 1000), x.Stats(1000), near); d != "" {
			t.Errorf("against the list (-list +counter):\n%s", d)
		}
		x.Merge(&y)
		if d := cmp.Diff(all.Stats(1), x.Stats(1)); d != "" {
			t.Errorf("merged against all (-all +merged):\n%s", d)
		}
		if d := cmp.Diff(numpyLike(slices.Concat(a, b), 1), all.Stats(1), near); d != "" {
			t.Errorf("all against the list (-list +counter):\n%s", d)
		}
	})
}

func TestSampleIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := drawValues(t, "values")
		var s Sample
		for _, v := range values {
			s.Add(float64(v))
		}
		if d := cmp.Diff(numpyLike(values, 1), s.Stats(), near); d != "" {
			t.Errorf("against the list (-list +sample):\n%s", d)
		}
	})
}

// TestCounterInMemory counts a million times spread over a minute, which
// flushes and merges its runs many times, and looks at the room they take.
func TestCounterInMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]int64, 1_000_000)
	var c Counter
	for i := range values {
		values[i] = rng.Int64N(60e6)
		c.Add(values[i])
	}
	if d := cmp.Diff(numpyLike(values, 1000), c.Stats(1000), near); d != "" {
		t.Errorf("against the list (-list +counter):\n%s", d)
	}
	size := len(c.tail.buffer) * 16
	for _, r := range c.tail.coded {
		size += cap(r.data)
	}
	if const3MB := 3 << 20; size > const3MB {
		t.Errorf("a million distinct times take %d bytes, want at most %d", size, const3MB)
	}
}

func TestCounterAddN(t *testing.T) {
	var c Counter
	c.AddN(5, 3)
	c.AddN(7, 0)
	c.AddN(7, -1)
	c.AddN(denseLimit, 2)
	if c.Count() != 5 || c.Sum() != 15+2*denseLimit {
		t.Errorf("got %d values with the sum %d", c.Count(), c.Sum())
	}
	for v := range c.All() { // leaving early is allowed
		if v != 5 {
			t.Errorf("first value: got %d, want 5", v)
		}
		break
	}
}

func BenchmarkCounterAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name  string
		limit int64
	}{{"gaps", 100_000}, {"latencies", 60_000_000}} {
		values := make([]int64, 1<<16)
		for i := range values {
			values[i] = rng.Int64N(c.limit)
		}
		b.Run(c.name, func(b *testing.B) {
			var counter Counter
			for i := 0; b.Loop(); i++ {
				counter.Add(values[i&(1<<16-1)])
			}
		})
	}
}

// FuzzCounterMerge states the law that merging two counters is counting all,
// for any values, in any split.
func FuzzCounterMerge(f *testing.F) {
	f.Add([]byte{1, 2, 3, 250, 251}, uint8(2), int64(1))
	f.Add([]byte{0, 0, 0, 0}, uint8(0), int64(1<<40))
	f.Add([]byte{9}, uint8(9), int64(-7))
	f.Fuzz(func(t *testing.T, data []byte, split uint8, step int64) {
		var a, b, all Counter
		for i, x := range data {
			v := int64(x) * (step % 1e9)
			all.Add(v)
			if i < int(split) {
				a.Add(v)
			} else {
				b.Add(v)
			}
		}
		a.Merge(&b)
		if d := cmp.Diff(all.Stats(1000), a.Stats(1000)); d != "" {
			t.Errorf("(-all +merged):\n%s", d)
		}
		if a.Sum() != all.Sum() || a.Count() != int64(len(data)) {
			t.Errorf("got %d values with the sum %d, want %d with %d", a.Count(), a.Sum(), len(data), all.Sum())
		}
	})
}
