// Command trace-analyze turns a trace, or the recordings of a run, into tables
// and JSON.
package main

import "retrace/cmd/internal/cli"

// An analysis holds large arrays without pointers, which cost the collector
// nothing to look at. So the heap may be small at first, when the collector may
// run rarely (gcPercent), and from memoryLimit on stays close to what is in use.
const (
	gcPercent   = 400
	memoryLimit = 160 << 20
)

func main() {
	cli.Memory(gcPercent, memoryLimit)
	cli.Main(run)
}
