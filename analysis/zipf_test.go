package analysis

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"retrace/hashing/prefixcache"
)

// Expected values: the same sums term by term with numpy, the exponent by 200
// bisections, for the conversation trace also by scipy's minimize_scalar of the
// negative log likelihood (0.5695436924).
func TestFitZipf(t *testing.T) {
	var law []prefixcache.Frequency
	for k := 1.0; k <= 2000; k++ {
		law = append(law, prefixcache.Frequency{Uses: max(1, int64(1e5/math.Pow(k, 1.1))), Blocks: 1})
	}
	for _, c := range []struct {
		name string
		list []prefixcache.Frequency
		want Zipf
	}{
		{"by hand", []prefixcache.Frequency{{Uses: 5, Blocks: 1}, {Uses: 4, Blocks: 1}, {Uses: 2, Blocks: 3}, {Uses: 1, Blocks: 2}},
			Zipf{0.7734590537826951, 0.033918775467132845, 7}},
		{"harmonic", []prefixcache.Frequency{{Uses: 1000, Blocks: 1}, {Uses: 500, Blocks: 1}, {Uses: 333, Blocks: 1}, {Uses: 250, Blocks: 1}, {Uses: 200, Blocks: 1}},
			Zipf{1.0002043301230215, 6.423239773023504e-05, 5}},
		{"even", []prefixcache.Frequency{{Uses: 3, Blocks: 100}}, Zipf{0, 0, 100}},
		{"one has nearly all", []prefixcache.Frequency{{Uses: 1_000_000, Blocks: 1}, {Uses: 1, Blocks: 1}}, Zipf{19.931568569324178, 0, 2}},
		{"a law of 1.1", law, Zipf{1.1011682652477854, 0.0005444791066794297, 2000}},
	} {
		got := fitZipf(c.list)
		if got == nil || got.N != c.want.N || math.Abs(got.Exponent-c.want.Exponent) > 1e-9 || math.Abs(got.KS-c.want.KS) > 1e-9 {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, list := range [][]prefixcache.Frequency{nil, {{Uses: 7, Blocks: 1}}} {
		if got := fitZipf(list); got != nil {
			t.Errorf("%v: got %+v, want none", list, got)
		}
	}
}

func TestPowerSums(t *testing.T) {
	// Term by term with numpy, n = 100,000.
	for _, c := range []struct{ s, sum, logs float64 }{
		{0, 100000, 1051299.2218991218},
		{0.5, 630.9967586623787, 6020.443185804625},
		{1, 12.090146129863431, 66.20096810003602},
		{1.0000001, 12.090139509769154, 66.2009172339959},
		{1.3, 3.8265401145841387, 9.476353340883328},
		{3, 1.2020569031095947, 0.19812624228499634},
		{20, 1.000000953962034, 6.613530207367108e-07},
	} {
		sum, logs := powerSums(100_000, c.s)
		if math.Abs(sum/c.sum-1) > 1e-11 || math.Abs(logs/c.logs-1) > 1e-9 {
			t.Errorf("s = %g: got %.16g and %.16g, want %.16g and %.16g", c.s, sum, logs, c.sum, c.logs)
		}
	}
}

// TestKSAgainstEveryRank looks at each rank instead of those where the largest
// distance can be.
func TestKSAgainstEveryRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []prefixcache.Frequency
		var uses, n float64
		top := int64(1)
		for range rapid.IntRange(1, 6).Draw(t, "groups") {
			top += rapid.Int64Range(1, 50).Draw(t, "more")
			f := prefixcache.Frequency{Uses: top, Blocks: rapid.Int64Range(1, 60).Draw(t, "blocks")}
			list = append([]prefixcache.Frequency{f}, list...)
			uses += float64(f.Uses * f.Blocks)
			n += float64(f.Blocks)
		}
		got := fitZipf(list)
		if got == nil {
			return
		}
		total, _ := powerSums(n, got.Exponent)
		var law, seen, rank, want float64
		for _, f := range list {
			for range f.Blocks {
				rank++
				law += math.Pow(rank, -got.Exponent)
				seen += float64(f.Uses)
				want = max(want, math.Abs(law/total-seen/uses))
			}
		}
		if math.Abs(got.KS-want) > 1e-9 {
			t.Errorf("%v: got %g, want %g", list, got.KS, want)
		}
	})
}
