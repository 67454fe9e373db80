package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"retrace/analysis"
	"retrace/cmd/internal/cli"
	"retrace/internal/plural"
)

// compare sets two recordings side by side.
func compare(ctx context.Context, args []string, s cli.Command) (losses []string, err error) {
	fs := pflag.NewFlagSet("trace-analyze compare", pflag.ContinueOnError)
	asJSON := fs.Bool("json", false, "")
	done, err := s.Parse(fs, args, func(io.Writer) error {
		_, err := dispatch(ctx, []string{"--help"}, s)
		return err
	})
	if done || err != nil {
		return nil, err
	}
	if fs.NArg() != 2 {
		return nil, cli.UsageError{Err: fmt.Errorf("compare takes two recordings, found %s", plural.Of(fs.NArg(), "argument"))}
	}
	in, err := sniff(ctx, fs.Args(), s.In)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if !in.recordings {
		return nil, cli.UsageError{Err: fmt.Errorf("compare takes two recordings, %s is none", fs.Arg(0))}
	}
	var reports [2]*analysis.RunReport
	for i, path := range in.paths {
		run := analysis.NewRun(analysis.RunOptions{})
		lost, err := addRecording(ctx, run, in.names[i], path)
		if err != nil {
			return losses, err
		}
		losses = append(losses, lost...)
		if reports[i], err = reportRun(ctx, run); err != nil {
			return losses, err
		}
	}
	return losses, show(analysis.Compare(reports[0], reports[1]), *asJSON, s)
}
