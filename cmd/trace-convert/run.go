package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"retrace/cmd/internal/cli"
	"retrace/formats"
)

// run is the whole command; it gives the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := cli.Command{Name: "trace-convert", In: stdin, Out: stdout, Err: stderr}
	var o options
	fs := bind(&o)
	done, err := c.Parse(fs, args, func(w io.Writer) error {
		_, err := fmt.Fprint(w, usage, cli.FlagUsages(fs), examples)
		return err
	})
	if !done && err == nil && o.list {
		done, err = true, listFormats(stdout)
	}
	switch {
	case done && err != nil:
		c.Complain(err, "")
		return cli.Failed
	case done:
		return cli.Done
	}
	if err == nil {
		err = o.validate(fs.Args())
	}
	var read formats.Options
	if err == nil {
		read, err = o.read.Options()
	}
	if err == nil {
		read.Select, err = o.choose.Selection()
	}
	if err == nil {
		err = o.keep.Apply(&read)
	}
	if err != nil {
		return c.Wrong(err)
	}
	read.Stdin = stdin
	read.Interrupted = func() bool { return ctx.Err() != nil }
	return convert(fs.Args(), read, &o, c)
}

func convert(inputs []string, read formats.Options, o *options, cmd cli.Command) int {
	c, err := formats.Convert(inputs, read, formats.Target{Path: o.output, Format: o.to, Strict: o.strict, Stdout: cmd.Out})
	switch {
	case errors.Is(err, formats.ErrInterrupted):
		cmd.Tell("", "interrupted: no output was written")
		return cli.Interrupted
	case err != nil:
		cmd.Complain(err, hintFor(err))
		return cli.Failed
	}
	printConversion(cmd, c, o)
	if c.Report.Lossy() {
		printLosses(cmd, &c.Report)
		return cli.Losses
	}
	return cli.Done
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
