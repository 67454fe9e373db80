package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Run is a command as a function of its arguments and ends; it gives the exit
// status.
type Run func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Main runs a command as a process. The first interruption ends the context,
// the second the process. A closed pipe is an error of a write and no signal,
// so that nothing half made stays behind.
func Main(run Run) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Memory sets how often the garbage collector runs: at gcPercent, but from
// limit bytes on as often as that takes. GOGC and GOMEMLIMIT go before it.
func Memory(gcPercent int, limit int64) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(limit)
	}
}
