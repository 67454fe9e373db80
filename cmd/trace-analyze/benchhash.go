package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"retrace/analysis"
	"retrace/cmd/internal/cli"
	"retrace/hashing"
)

// benchHashOptions are the flags of bench-hash, as given.
type benchHashOptions struct {
	algorithms []string
	measure    analysis.HashBenchOptions
	json       bool

	flags *pflag.FlagSet
}

func newBenchHashOptions() *benchHashOptions {
	o := &benchHashOptions{flags: pflag.NewFlagSet("trace-analyze bench-hash", pflag.ContinueOnError)}
	var all []string
	for _, a := range hashing.Algorithms() {
		all = append(all, a.String())
	}
	fs := o.flags
	fs.SortFlags = false
	fs.StringSliceVar(&o.algorithms, "algorithms", all, "`NAME,...`: what to measure; one that is not there is skipped and named")
	fs.IntVar(&o.measure.NumBlocks, "num-blocks", 10_000, "`N`: blocks of the chain")
	fs.IntVar(&o.measure.BlockSize, "block-size", 32, "`N`: tokens in a block")
	fs.IntVar(&o.measure.Trials, "trials", 5, "`N`: how often each algorithm hashes them")
	fs.Uint64Var(&o.measure.Seed, "seed", 0, "`N`: draws the order of the algorithms in each trial and the object of ns_per_call; the blocks' tokens are fixed")
	fs.BoolVar(&o.json, "json", false, "print one JSON object")
	return o
}

const benchHashHead = `Usage:
  trace-analyze bench-hash [flags]

Measures block hashes on one core: a chain of blocks, the digest of the same
bytes alone, and single calls on an object of 32 bytes and 32 integers.

Flags:
`

// benchHash measures the algorithms; those that are not there are losses.
func benchHash(ctx context.Context, args []string, s cli.Command) (losses []string, err error) {
	o := newBenchHashOptions()
	done, err := s.Parse(o.flags, args, func(w io.Writer) error {
		_, err := fmt.Fprint(w, benchHashHead, cli.FlagUsages(o.flags))
		return err
	})
	if done || err != nil {
		return nil, err
	}
	algs, unknown := analysis.PickAlgorithms(o.algorithms)
	m := &o.measure
	switch {
	case o.flags.NArg() > 0:
		return nil, cli.UsageError{Err: fmt.Errorf("bench-hash takes no arguments, found %q", o.flags.Arg(0))}
	case len(algs) == 0:
		return nil, cli.UsageError{Err: fmt.Errorf("--algorithms %s: none of them is there", strings.Join(o.algorithms, ","))}
	case m.NumBlocks < 1, m.BlockSize < 1, m.Trials < 1:
		return nil, cli.UsageError{Err: fmt.Errorf("--num-blocks %d, --block-size %d, --trials %d: expected at least 1 each", m.NumBlocks, m.BlockSize, m.Trials)}
	case m.BlockSize > hashing.MaxBlockSize:
		return nil, cli.UsageError{Err: fmt.Errorf("--block-size %d: expected at most %d", m.BlockSize, hashing.MaxBlockSize)}
	case m.NumBlocks > analysis.MaxHashBenchTokens/m.BlockSize:
		return nil, cli.UsageError{Err: fmt.Errorf("--num-blocks %d of --block-size %d: expected at most %d tokens in all", m.NumBlocks, m.BlockSize, analysis.MaxHashBenchTokens)}
	}
	m.Algorithms = algs
	b, err := analysis.RunHashBench(ctx, *m)
	if err != nil {
		return nil, err
	}
	for _, name := range unknown {
		losses = append(losses, "skipped "+name+": there is no such algorithm")
		b.Skipped = append(b.Skipped, name)
	}
	return losses, show(b, o.json, s)
}
