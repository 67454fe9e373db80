package arrival

import (
	"math"
	"math/rand/v2"
)

// gamma draws from the gamma distribution of the given shape and scale 1, by
// G. Marsaglia and W. W. Tsang, "A Simple Method for Generating Gamma
// Variables", ACM Trans. Math. Softw. 26 (2000); shapes below 1 as their §6 has
// it: Γ(a) = Γ(a+1) · U^(1/a).
func gamma(shape float64, source *rand.Rand) float64 {
	if shape < 1 {
		u := 1 - source.Float64() // above 0
		return gamma(shape+1, source) * math.Pow(u, 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := source.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := 1 - source.Float64()
		if math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
