package analysis

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestProfileLabels: no two parts of a rate profile have one label, however
// short the trace.
func TestProfileLabels(t *testing.T) {
	for _, span := range []time.Duration{12 * time.Hour, 73 * time.Millisecond, 13 * time.Microsecond} {
		rep := TraceReport{RateProfile: profile([]time.Duration{time.Second, time.Second + span/3, time.Second + span})}
		var out bytes.Buffer
		rep.writeProfile(&report{w: &out})
		seen := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			label, _, ok := strings.Cut(strings.TrimSpace(line), " s ")
			if ok && seen[label] {
				t.Errorf("span %s: %s twice in\n%s", span, label, &out)
			}
			seen[label] = true
		}
		if len(seen) < profileBins {
			t.Errorf("span %s: labels %v", span, seen)
		}
	}
}

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{Value{}, "–"},
		{Some(0), "0"},
		{Some(7), "7"},
		{Some(1.9999999999999996), "2"},
		{Some(1.5), "1.500"},
		{Some(12.345), "12.35"},
		{Some(123.456), "123.5"},
		{Some(1234.56), "1235"},
		{Some(144793823), "144793823"},
		{Some(0.0421), "0.042"},
		{Some(0.0000421), "4.21e-05"},
		{Some(-12.345), "-12.35"},
	} {
		if got := figure(c.v); got != c.want {
			t.Errorf("%v: got %s, want %s", c.v.V, got, c.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 3000: "3,000", 1234567: "1,234,567", 1000.5: "1,000.5"} {
		if got := grouped(x); got != want {
			t.Errorf("%g: got %s, want %s", x, got, want)
		}
	}
}
