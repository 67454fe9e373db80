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
	o.source.Stdin = in.stdin
	o.source.Interrupted = func() bool { return ctx.Err() != nil }
	t, err := formats.Open(in.paths, o.source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	a, err := analysis.NewTrace(analysis.TraceOptions{
		Header: t.Header, Capacities: o.capacity, Policies: o.policy, Warmup: o.warmup,
	})
	if err != nil {
		return nil, err
	}
	n := 0
	for r, err := range t.Requests() {
		if err != nil {
			return nil, err
		}
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := a.Add(&r); err != nil {
			return nil, err
		}
	}
	rep, err := a.Report()
	if err != nil {
		return nil, err
	}
	if err := show(rep, o.json, s); err != nil {
		return nil, err
	}
	return told(t.Report(), s), nil
}

// told prints what the reader noticed, and gives what was lost.
func told(r formats.Report, s cli.Command) []string {
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
