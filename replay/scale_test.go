package replay

import (
	"math"
	"testing"
	"time"
)

// TestScaleHolds: a time that no Duration can hold stays far off, and two of
// them can still be added up.
func TestScaleHolds(t *testing.T) {
	for _, c := range []struct {
		speed   float64
		d, want time.Duration
	}{
		{2, time.Second, 500 * time.Millisecond},
		{0.5, time.Second, 2 * time.Second},
		{1e-308, time.Second, longest},
		{1e-308, -time.Second, -longest},
		{1e-9, math.MaxInt64, longest},
		{1e308, time.Hour, 0},
	} {
		e := &engine{cfg: Config{Speed: c.speed}}
		if got := e.scale(c.d); got != c.want || got > 0 && got+got < got {
			t.Errorf("%v at speed %g: %v, want %v", c.d, c.speed, got, c.want)
		}
	}
}
