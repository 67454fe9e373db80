package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"retrace/analysis"
	"retrace/formats"
)

// report is what an analysis ends in.
type report interface {
	WriteTable(w io.Writer) error
	WriteJSON(w io.Writer) error
}

func show(r report, asJSON bool, s streams) error {
	if asJSON {
		return r.WriteJSON(s.out)
	}
	return r.WriteTable(s.out)
}

// analyzeTrace reads a trace of any format and prints its analysis.
func analyzeTrace(ctx context.Context, o *options, in *input, s streams) (losses []string, err error) {
	if err := o.fits("trace", forRecordings); err != nil {
		return nil, usageError{err}
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
func told(r formats.Report, s streams) []string {
	for _, n := range r.Notes {
		fmt.Fprintf(s.err, "trace-analyze: note: %s\n", n)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(s.err, "trace-analyze: warning: %s\n", w)
	}
	var losses []string
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		losses = append(losses, fmt.Sprintf("%d rows: %s (first: %s)", r.Skipped[reason], reason, r.FirstSkipped[reason]))
	}
	return append(losses, r.Losses...)
}
