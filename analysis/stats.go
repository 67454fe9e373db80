package analysis

import (
	"encoding/json"
	"math"
)

// Value is a figure that may not exist, such as the mean of nothing. It is
// null in JSON where it does not.
type Value struct {
	// V is the figure, meaningless unless OK.
	V float64
	// OK says that the figure exists.
	OK bool
}

// Some is the figure v; NaN and the infinities are no figures.
func Some(v float64) Value {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Value{}
	}
	return Value{V: v, OK: true}
}

// Ratio is a/b, which does not exist for b = 0.
func Ratio(a, b float64) Value {
	if b == 0 {
		return Value{}
	}
	return Some(a / b)
}

// Get is the figure and whether it exists.
func (v Value) Get() (float64, bool) { return v.V, v.OK }

// MarshalJSON writes the figure with all its digits, or null.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.OK {
		return []byte("null"), nil
	}
	return json.Marshal(v.V)
}

// UnmarshalJSON reads a number or null.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Value{}
		return nil
	}
	v.OK = true
	return json.Unmarshal(b, &v.V)
}

// Stats describes a distribution. With no values Count is 0 and the rest does
// not exist. The unit is that of the field which holds it.
type Stats struct {
	Count int64 `json:"count"`
	Mean  Value `json:"mean"`
	// Std is the standard deviation of the population.
	Std Value `json:"std"`
	Min Value `json:"min"`
	P50 Value `json:"p50"`
	P90 Value `json:"p90"`
	P95 Value `json:"p95"`
	P99 Value `json:"p99"`
	Max Value `json:"max"`
}

// few100 is the number of values below which a p99 is little more than the
// maximum: with fewer than 100 it lies between the two largest.
const few100 = 100

// Few reports that the distribution has too few values for its p99 to say
// more than its maximum does.
func (s Stats) Few() bool { return s.Count > 0 && s.Count < few100 }

// percentiles are the shares that Stats holds, in its order.
var percentiles = [...]float64{0.50, 0.90, 0.95, 0.99}
