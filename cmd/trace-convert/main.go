// Command trace-convert turns request traces of any known format into
// canonical ones, and back.
package main

import "retrace/cmd/internal/cli"

// A conversion keeps little alive, so the collector may run rarely: at five
// times the live heap, but from memoryLimit on as often as that takes.
const (
	gcPercent   = 400
	memoryLimit = 160 << 20
)

func main() {
	cli.Memory(gcPercent, memoryLimit)
	cli.Main(run)
}
