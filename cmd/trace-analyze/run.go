package main

import (
	"context"
	"errors"
	"io"

	"retrace/cmd/internal/cli"
	"retrace/formats"
)

// run is the command as a function of its arguments and ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := cli.Command{Name: "trace-analyze", In: stdin, Out: stdout, Err: stderr}
	losses, err := dispatch(ctx, args, s)
	for _, l := range losses {
		s.Tell("lost", "%s", l)
	}
	var wrong cli.UsageError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, formats.ErrInterrupted):
		s.Tell("error", "interrupted")
		return cli.Interrupted
	case errors.As(err, &wrong):
		return s.Wrong(err)
	case err != nil:
		s.Complain(err, "")
		return cli.Failed
	case len(losses) > 0:
		return cli.Losses
	}
	return cli.Done
}

// dispatch does what the arguments ask for and tells what was lost on the way.
func dispatch(ctx context.Context, args []string, s cli.Command) (losses []string, err error) {
	if len(args) > 0 && args[0] == "compare" {
		return compare(ctx, args[1:], s)
	}
	if len(args) > 0 && args[0] == "hash-blocks" {
		return nil, hashBlocks(ctx, args[1:], s)
	}
	if len(args) > 0 && args[0] == "bench-hash" {
		return benchHash(ctx, args[1:], s)
	}
	if len(args) > 0 && args[0] == "bench-cache" {
		return benchCache(ctx, args[1:], s)
	}
	o := newOptions()
	done, err := s.Parse(o.flags, args, func(w io.Writer) error { return usage(w, o) })
	if done || err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, cli.UsageError{Err: err}
	}
	in, err := sniff(ctx, o.flags.Args(), s.In)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if in.recordings {
		return analyzeRun(ctx, o, in, s)
	}
	return analyzeTrace(ctx, o, in, s)
}
