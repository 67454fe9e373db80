// Command trace-convert turns request traces of any known format into
// canonical ones, and back.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// A conversion keeps little alive, so the collector may run rarely: at five
// times the live heap, but from memoryLimit on as often as that takes.
const (
	gcPercent   = 400
	memoryLimit = 160 << 20
)

func main() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(memoryLimit)
	}
	signal.Ignore(syscall.SIGPIPE) // a closed pipe must not leave temporary files
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
