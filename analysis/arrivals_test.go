package analysis

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func seconds(list ...float64) []time.Duration {
	var d []time.Duration
	for _, s := range list {
		d = append(d, time.Duration(s*float64(time.Second)))
	}
	return d
}

func TestArrivals(t *testing.T) {
	for _, c := range []struct {
		name     string
		arrivals []time.Duration
		rate, cv Value
		n        int64
		distinct int
	}{
		{"none", nil, Value{}, Value{}, 0, 0},
		{"one", seconds(5), Value{}, Value{}, 0, 1},
		{"all at once", seconds(1, 1, 1), Value{}, Value{}, 2, 1},
		{"even", seconds(0, 2, 4), Some(0.75), Some(0), 2, 3},
		// Gaps 1 and 3: mean 2, population std 1.
		{"uneven", seconds(10, 11, 14), Some(0.75), Some(0.5), 2, 3},
		// Gaps 0, 0, 3: mean 1, std sqrt(2).
		{"bursts", seconds(0, 0, 0, 3), Some(4.0 / 3), Some(math.Sqrt2), 3, 2},
	} {
		got := arrivalsOf(c.arrivals)
		if d := cmp.Diff([]Value{c.rate, c.cv}, []Value{got.RateRPS, got.CV}, near); d != "" || got.Interarrival.Count != c.n {
			t.Errorf("%s: %d gaps, want %d; rate and cv (-want +got):\n%s", c.name, got.Interarrival.Count, c.n, d)
		}
		if n := distinct(c.arrivals); n != c.distinct {
			t.Errorf("%s: got %d different times, want %d", c.name, n, c.distinct)
		}
	}
}

func TestProfile(t *testing.T) {
	if got := profile(seconds(3, 3)); len(got) != 0 {
		t.Errorf("no duration has a profile: %v", got)
	}
	// From 100 s to 112 s in parts of 1 s; the last arrival is in the last part.
	got := profile(seconds(100, 100.5, 101, 111.9, 112))
	for i, want := range map[int]int64{0: 2, 1: 1, 5: 0, 11: 2} {
		if got[i].Requests != want || got[i].RateRPS != float64(want) || got[i].StartS != 100+float64(i) {
			t.Errorf("part %d: got %+v, want %d requests from %d s on", i, got[i], want, 100+i)
		}
	}
}

func TestIdleHeadNeedsRequests(t *testing.T) {
	if n, _, _ := idleHead(seconds(0, 1000, 1001, 1002)); n != 0 {
		t.Errorf("four requests have an idle head of %d", n)
	}
	// Everything at one moment is no reason to divide by nothing.
	if n, _, _ := idleHead(make([]time.Duration, 500)); n != 0 {
		t.Errorf("a burst has an idle head of %d", n)
	}
	even := make([]time.Duration, 1000)
	for i := range even {
		even[i] = time.Duration(i) * time.Second
	}
	if n, _, _ := idleHead(even); n != 0 {
		t.Errorf("an even trace has an idle head of %d", n)
	}
}
