package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	done, err := tool.Parse(flags, args, func(w io.Writer) error { return usage(w, flags) })
	if done && err != nil {
		return exitFailed
	}
	if done {
		return exitOK
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("found argument %q, expected flags only", flags.Arg(0))
	}
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		return tool.Wrong(err)
	}
	return serve(ctx, &o, stderr)
}

// serve starts the server and waits for its end.
func serve(ctx context.Context, o *options, stderr io.Writer) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	s, err := simserver.New(o.config)
	if err != nil {
		complain(stderr, err, "")
		return exitFailed
	}
	defer s.Close()
	if err := s.Start(o.listen); err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "another server has that port; choose one with --listen, port 0 picks a free one"
		}
		complain(stderr, err, hint)
		return exitFailed
	}
	fmt.Fprintf(stderr, "trace-sim: ready on %s (model %s)\n", s.URL(), s.Config().Model)

	code := exitOK
	select {
	case sig := <-signals:
		if sig == os.Interrupt {
			code = exitInterrupted
		}
		fmt.Fprintf(stderr, "trace-sim: %v: stopping\n", sig)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.grace)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-drain.Done():
		}
	}()
	if err := s.Shutdown(drain); err != nil {
		fmt.Fprintln(stderr, "trace-sim: requests that still ran were cut off")
	}
	return code
}

// complain prints an error and, where there is one, a hint.
func complain(w io.Writer, err error, hint string) {
	cli.Command{Name: name, Err: w}.Complain(err, hint)
}
