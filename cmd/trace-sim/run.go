package main

import (
	"context"
	"errors"
	"io"
	"syscall"

	"retrace/cmd/internal/cli"
	"retrace/replay/simserver"
)

// Exit codes, as all commands of the toolkit have them.
const (
	exitOK          = cli.Done
	exitFailed      = cli.Failed
	exitInterrupted = cli.Interrupted
)

// name is the command's.
const name = "trace-sim"

// run is the command: it serves until a signal comes or ctx ends.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var o options
	flags := o.bind()
	tool := cli.Command{Name: name, Out: stdout, Err: stderr}
	if code, done := tool.ParseOnly(flags, args, func(w io.Writer) error { return usage(w, flags) }, o.validate); done {
		return code
	}
	return serve(ctx, &o, tool)
}

// serve starts the server and waits for its end.
func serve(ctx context.Context, o *options, tool cli.Command) int {
	signals := cli.NotifyStop()
	defer signals.Release()

	s, err := simserver.New(o.config)
	if err != nil {
		tool.Complain(err, "")
		return exitFailed
	}
	defer s.Close()
	if err := s.Start(o.listen); err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "another server has that port; choose one with --listen, port 0 picks a free one"
		}
		tool.Complain(err, hint)
		return exitFailed
	}
	tool.Tell("", "ready on %s (model %s)", s.URL(), s.Config().Model)

	drain, cancel, code := signals.Await(ctx, tool, o.grace)
	defer cancel()
	if err := s.Shutdown(drain); err != nil {
		tool.Tell("", "requests that still ran were cut off")
	}
	return code
}
