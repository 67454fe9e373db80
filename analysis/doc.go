// Package analysis turns traces and recordings into figures: the metrics of a
// run (NewRun), the shape of a trace (NewTrace) and the comparison of two runs
// (Compare), as JSON with a versioned schema and as tables for people.
//
// # Definitions
//
// Percentiles are exact over the raw values, by linear interpolation between
// closest ranks (numpy's default, Hyndman and Fan's type 7): with the values
// sorted as x[0..n-1], the q-quantile lies at h = q(n-1) and is
// x[⌊h⌋] + (h-⌊h⌋)(x[⌊h⌋+1]-x[⌊h⌋]). The standard deviation is that of the
// population, sqrt(Σ(x-mean)²/n). A figure that cannot be computed is null in
// JSON and "–" in tables; never 0, never NaN.
//
// # Memory
//
// Times are whole microseconds in a recording, so their distributions are kept
// as exact counts (Counter): dense below a quarter of a second, delta-coded
// above. Percentiles stay exact, distributions can be merged, and a million
// results with hundreds of gaps each fit into tens of megabytes.
package analysis
