package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"retrace/formats"
)

// The exit status of CLI.md.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLosses      = 3
	exitInterrupted = 130
)

// streams are the three that a command has.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole command; it gives the exit status.
func run(ctx context.Context, args []string, std streams) int {
	var o options
	fs := bind(&o)
	err := fs.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(std.out, usage, fs.FlagUsages(), examples)
		return exitDone
	}
	if err != nil {
		return wrongUsage(std, err)
	}
	if o.list {
		return listFormats(std)
	}
	if err := o.validate(fs.Args()); err != nil {
		return wrongUsage(std, err)
	}
	read, err := o.read.Options()
	if err != nil {
		return wrongUsage(std, err)
	}
	if read.Select, err = o.choose.Selection(); err != nil {
		return wrongUsage(std, err)
	}
	read.Stdin = std.in
	read.Interrupted = func() bool { return ctx.Err() != nil }
	return convert(fs.Args(), read, &o, std)
}

func convert(inputs []string, read formats.Options, o *options, std streams) int {
	c, err := formats.Convert(inputs, read, formats.Target{Path: o.output, Format: o.to, Strict: o.strict, Stdout: std.out})
	if c != nil {
		printLost(std.err, c)
	}
	switch {
	case errors.Is(err, formats.ErrInterrupted):
		fmt.Fprintln(std.err, "trace-convert: interrupted: no output was written")
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(std.err, "trace-convert: error: %v\n", err)
		if hint := hintFor(err); hint != "" {
			fmt.Fprintf(std.err, "trace-convert: hint: %s\n", hint)
		}
		return exitFailed
	}
	printConversion(std.err, c, o)
	if c.Report.Lossy() {
		printLosses(std.err, &c.Report)
		return exitLosses
	}
	return exitDone
}

func wrongUsage(std streams, err error) int {
	fmt.Fprintf(std.err, "trace-convert: error: %v\n", err)
	fmt.Fprintln(std.err, "trace-convert: hint: trace-convert --help lists the flags")
	return exitUsage
}

// hintFor is what to try after an error, "" where nothing obvious helps.
func hintFor(err error) string {
	var bad *formats.SyntaxError
	switch {
	case errors.Is(err, formats.ErrLost):
		return "without --strict the rest is written and the losses are listed"
	case errors.As(err, &bad):
		return "--bad-lines skip leaves such rows out, counts them and exits 3"
	}
	return ""
}
