// Package arrival makes the times at which requests arrive, in place of those
// of a trace: at a constant rate, as a Poisson or gamma process, along a ramp,
// or all at once.
//
// The laws are those of vLLM's serving benchmark. The delay before each request
// is drawn at the rate that holds for it, the first one's too; the times are the
// running sums. Without a ramp the sums are scaled so that the last of n
// requests comes at exactly n/rate, whatever was drawn. With a ramp they are
// not, and the rate goes by the request's index i of n:
//
//	linear:      start + (end − start) · i/(n − 1)
//	exponential: start · (end/start)^(i/(n − 1))
//
// Times are a function of the law, n and the seed alone, the same on every
// machine. Nothing waits here, and nothing is kept: n may be as large as it likes.
package arrival
