package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"retrace/replay/simserver"
)

// Exit codes, as all commands of the toolkit have them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the command: it serves until a signal comes or ctx ends.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var o options
	flags := o.bind()
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		if err := usage(stdout, flags); err != nil {
			return exitFailed
		}
		return exitOK
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("found argument %q, expected flags only", flags.Arg(0))
	}
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		complain(stderr, err, "trace-sim --help lists the flags")
		return exitUsage
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
	fmt.Fprintf(w, "trace-sim: error: %v\n", err)
	if hint != "" {
		fmt.Fprintf(w, "trace-sim: hint: %s\n", hint)
	}
}
