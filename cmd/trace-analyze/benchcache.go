package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"retrace/analysis"
	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/hashing/prefixcache"
)

const benchCacheHead = `Usage:
  trace-analyze bench-cache [flags] TRACE

Measures how fast the cache models go through a trace, in blocks and requests a
second, on one core. Reading the trace is not part of it.

Flags:
`

const benchCacheTail = `
Examples:
  trace-analyze bench-cache conversation_trace.jsonl
  trace-analyze bench-cache conversation.trace --policies vllm --cache-blocks 5637,22550 --trials 20 --json
`

// Trials of bench-cache.
const (
	defaultTrials = 5
	mostTrials    = 1_000_000
)

// benchCacheOptions are the flags of bench-cache.
type benchCacheOptions struct {
	json                  bool
	policies, cacheBlocks string
	trials                int
	flags                 *pflag.FlagSet
	reading               *formats.Flags
}

func newBenchCacheOptions() *benchCacheOptions {
	o := &benchCacheOptions{flags: pflag.NewFlagSet("trace-analyze bench-cache", pflag.ContinueOnError)}
	fs := o.flags
	fs.SortFlags = false
	fs.BoolVar(&o.json, "json", false, "print one JSON object (docs/analysis.md has its keys)")
	fs.StringVar(&o.policies, "policies", "lru,fifo,optimal,vllm", "`NAME,...`: cache policies, of lru, fifo, optimal and vllm")
	fs.StringVar(&o.cacheBlocks, "cache-blocks", "", "`N,...`: cache sizes in blocks; default: 1/64, 1/8 and all of the different blocks")
	fs.IntVar(&o.trials, "trials", defaultTrials, "`N`: passes of each model, after one that is not counted")
	o.reading = formats.BindFlags(fs)
	return o
}

// validate reads the flags' values and names the one that is wrong.
func (o *benchCacheOptions) validate() (opts analysis.TraceOptions, source formats.Options, err error) {
	switch {
	case o.flags.NArg() == 0:
		return opts, source, errors.New("no TRACE given")
	case o.trials < 1 || o.trials > mostTrials:
		return opts, source, fmt.Errorf("--trials %d: expected 1 to %d", o.trials, mostTrials)
	}
	if opts.Policies, err = prefixcache.ParsePolicies(o.policies); err != nil {
		return opts, source, fmt.Errorf("--policies: %w", err)
	}
	if o.flags.Changed("cache-blocks") {
		if opts.Capacities, err = prefixcache.ParseCapacities(o.cacheBlocks); err != nil {
			return opts, source, fmt.Errorf("--cache-blocks: %w", err)
		}
	}
	source, err = o.reading.Options()
	return opts, source, err
}

// benchCache measures the cache models on a trace.
func benchCache(ctx context.Context, args []string, s cli.Command) (losses []string, err error) {
	o := newBenchCacheOptions()
	help := func(w io.Writer) error {
		_, err := fmt.Fprint(w, benchCacheHead, cli.FlagUsages(o.flags), benchCacheTail)
		return err
	}
	done, err := s.Parse(o.flags, args, help)
	if done || err != nil {
		return nil, err
	}
	opts, source, err := o.validate()
	if err != nil {
		return nil, cli.UsageError{Err: err}
	}
	in, err := sniff(ctx, o.flags.Args(), s.In)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if in.recordings {
		return nil, cli.UsageError{Err: fmt.Errorf("bench-cache needs a trace: %s is a recording", o.flags.Arg(0))}
	}
	a, noticed, err := collect(ctx, in, source, opts)
	if err != nil {
		return nil, err
	}
	b, err := a.BenchCache(ctx, o.trials)
	if err != nil {
		return nil, err
	}
	if err := show(b, o.json, s); err != nil {
		return nil, err
	}
	return tell(noticed, s), nil
}
