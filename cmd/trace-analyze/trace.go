package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"retrace/analysis"
	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/internal/plural"
)

// report is what an analysis ends in.
type report interface {
	WriteTable(w io.Writer) error
	WriteJSON(w io.Writer) error
}

func show(r report, asJSON bool, s cli.Command) error {
	if asJSON {
		return r.WriteJSON(s.Out)
	}
	return r.WriteTable(s.Out)
}

// analyzeTrace reads a trace of any format and prints its analysis.
func analyzeTrace(ctx context.Context, o *options, in *input, s cli.Command) (losses []string, err error) {
	if err := o.fits("trace", forRecordings); err != nil {
		return nil, cli.UsageError{Err: err}
	}
	opts := analysis.TraceOptions{Capacities: o.capacity, Policies: o.policy, Warmup: o.warmup}
	o.cache.apply(&opts)
	a, told, err := collect(ctx, in, o.source, opts)
	if err != nil {
		return nil, err
	}
	rep, err := orInterrupted(ctx, a.Report)
	if err != nil {
		return nil, err
	}
	if err := show(rep, o.json, s); err != nil {
		return nil, err
	}
	return tell(told, s), nil
}

// collect reads a trace of any format, and gives what its reader noticed.
func collect(ctx context.Context, in *input, source formats.Options, opts analysis.TraceOptions) (a *analysis.Trace, noticed formats.Report, err error) {
	source.Stdin = in.stdin
	source.Interrupted = func() bool { return ctx.Err() != nil }
	t, err := formats.Open(in.paths, source)
	if err != nil {
		return nil, noticed, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	opts.Header = t.Header
	if a, err = analysis.NewTrace(opts); err != nil {
		if opts.CacheBlockSize != 0 {
			err = cli.UsageError{Err: fmt.Errorf("--cache-block-size: %w", err)}
		}
		return nil, noticed, err
	}
	n := 0
	for r, err := range t.Requests() {
		if err != nil {
			return nil, noticed, err
		}
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return nil, noticed, ctx.Err()
		}
		if err := a.Add(&r); err != nil {
			return nil, noticed, err
		}
	}
	return a, t.Report(), nil
}

// tell prints what the reader noticed, and gives what was lost.
func tell(r formats.Report, s cli.Command) []string {
	for _, n := range r.Notes {
		s.Tell("note", "%s", n)
	}
	for _, w := range r.Warnings {
		s.Tell("warning", "%s", w)
	}
	var losses []string
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		losses = append(losses, fmt.Sprintf("%s: %s (first: %s)", plural.Of(r.Skipped[reason], "row"), reason, r.FirstSkipped[reason]))
	}
	return append(losses, r.Losses...)
}
