package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"retrace/analysis"
)

// compare sets two recordings side by side.
func compare(ctx context.Context, args []string, s streams) (losses []string, err error) {
	fs := pflag.NewFlagSet("trace-analyze compare", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	asJSON := fs.Bool("json", false, "")
	err = fs.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return nil, usage(s.out, newOptions())
	}
	if err == nil && fs.NArg() != 2 {
		err = fmt.Errorf("compare takes two recordings, found %d arguments", fs.NArg())
	}
	if err != nil {
		return nil, usageError{err}
	}
	in, err := sniff(ctx, fs.Args(), s.in)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if !in.recordings {
		return nil, usageError{fmt.Errorf("compare takes two recordings, %s is none", fs.Arg(0))}
	}
	var reports [2]*analysis.RunReport
	for i, path := range in.paths {
		run := analysis.NewRun(analysis.RunOptions{})
		lost, err := addRecording(ctx, run, in.names[i], path)
		if err != nil {
			return losses, err
		}
		losses = append(losses, lost...)
		reports[i] = run.Report()
	}
	return losses, show(analysis.Compare(reports[0], reports[1]), *asJSON, s)
}
