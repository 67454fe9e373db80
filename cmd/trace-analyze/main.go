// Command trace-analyze turns a trace, or the recordings of a run, into tables
// and JSON.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

// An analysis holds large arrays without pointers, which cost the collector
// nothing to look at, so the heap may stay close to what is in use: gcPercent.
// The ballast, which is never touched and so takes no memory, keeps the
// collector from running all the time while the heap is small.
const (
	gcPercent = 30
	ballast   = 64 << 20
)

func main() {
	var idle []byte
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		idle = make([]byte, ballast)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	runtime.KeepAlive(idle)
	os.Exit(code)
}
