package main

import (
	"context"
	"errors"
	"fmt"

	"retrace/analysis"
	"retrace/cmd/internal/cli"
	"retrace/record"
)

// checkEvery is the number of records between two looks at the context.
const checkEvery = 1024

// analyzeRun merges the recordings of one run and prints their analysis.
func analyzeRun(ctx context.Context, o *options, in *input, s cli.Command) (losses []string, err error) {
	if err := o.fits("recording", append(o.readingFlags(), forTraces...)); err != nil {
		return nil, cli.UsageError{Err: err}
	}
	run := analysis.NewRun(analysis.RunOptions{SLO: o.target})
	for i, path := range in.paths {
		lost, err := addRecording(ctx, run, in.names[i], path)
		if err != nil {
			return losses, err
		}
		losses = append(losses, lost...)
	}
	rep, err := reportRun(ctx, run)
	if err != nil {
		return losses, err
	}
	return losses, show(rep, o.json, s)
}

func reportRun(ctx context.Context, run *analysis.Run) (*analysis.RunReport, error) {
	return orInterrupted(ctx, func() (*analysis.RunReport, error) { return run.Report(), nil })
}

// addRecording adds one recording to a run and tells what of it is missing.
func addRecording(ctx context.Context, run *analysis.Run, name, path string) (losses []string, err error) {
	r, err := record.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := run.AddHeader(r.Header()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	n := 0
	for res, err := range r.Results() {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		run.Add(&res)
	}
	shard := 0
	if of := r.Header().Run; of != nil {
		shard = of.Shard
	}
	for s, err := range r.Series() {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		run.AddSeries(shard, &s)
	}
	footer, closed := r.Footer()
	run.AddFooter(footer, closed)
	if loss := r.Loss(); loss != nil {
		named := *loss
		named.Path = name // not that of a temporary file
		losses = append(losses, named.Error())
	} else if !closed {
		losses = append(losses, name+": the recording was not closed; its last second may be missing")
	}
	return losses, nil
}
