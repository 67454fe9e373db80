package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"retrace/formats"
)

// The exit codes, as all commands of the toolkit have them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLoss        = 3
	exitInterrupted = 130
)

// streams are the command's ends.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// missing are commands that this version does not have; a file of that name
// can be given as ./NAME.
var missing = []string{"bench-hash", "bench-cache", "hash-blocks"}

// run is the command as a function of its arguments and ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := streams{in: stdin, out: stdout, err: stderr}
	losses, err := dispatch(ctx, args, s)
	for _, l := range losses {
		fmt.Fprintf(stderr, "trace-analyze: lost: %s\n", l)
	}
	var wrong usageError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, formats.ErrInterrupted):
		fmt.Fprintln(stderr, "trace-analyze: error: interrupted")
		return exitInterrupted
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "trace-analyze: error: %v\n", err)
		fmt.Fprintln(stderr, "trace-analyze: hint: trace-analyze --help lists the flags")
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "trace-analyze: error: %v\n", err)
		return exitFailed
	case len(losses) > 0:
		return exitLoss
	}
	return exitOK
}

// dispatch does what the arguments ask for and tells what was lost on the way.
func dispatch(ctx context.Context, args []string, s streams) (losses []string, err error) {
	if len(args) > 0 && args[0] == "compare" {
		return compare(ctx, args[1:], s)
	}
	if len(args) > 0 && slices.Contains(missing, args[0]) {
		return nil, usageError{fmt.Errorf("unknown command %q", args[0])}
	}
	o := newOptions()
	err = o.flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return nil, usage(s.out, o)
	}
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		return nil, usageError{err}
	}
	in, err := sniff(ctx, o.flags.Args(), s.in)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if in.recordings {
		return analyzeRun(ctx, o, in, s)
	}
	return analyzeTrace(ctx, o, in, s)
}
