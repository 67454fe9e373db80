// Command trace-analyze turns a trace, or the recordings of a run, into tables
// and JSON.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// An analysis holds large arrays without pointers, which cost the collector
// nothing to look at. So the heap may be small at first, when the collector may
// run rarely (gcPercent), and from memoryLimit on stays close to what is in use.
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
