package main

import (
	"fmt"
	"io"

	"retrace/cmd/internal/cli"
)

const usageHead = `Usage:
  trace-analyze [flags] FILE...
  trace-analyze compare [--json] A.rec B.rec
  trace-analyze hash-blocks --algorithm NAME --block-size N [flags] [FILE]
  trace-analyze bench-hash [flags]
  trace-analyze bench-cache [flags] TRACE

Analyses a trace, or the recordings of one run, and prints tables, or with
--json one JSON object.

FILE is a trace (canonical or of any foreign format, one or several files or
directories) or a recording. Several recordings are merged as the shards of one
run, from their raw values; such shards share trace, flags, seed and --start-at.
"-" is standard input. Files may be compressed with gzip or zstd.

compare sets two runs side by side. It says first whether they did the same
work, and ranks nothing where their failure rates differ.

bench-cache measures how fast the cache models are; it has its own --help.

Flags:
`

const usageTail = `
Exit status: 0 done; 1 failed; 2 wrong usage; 3 done, but with losses that the
last lines on stderr name; 130 interrupted. Failed requests in a recording are
a finding, not a failure of the analysis.

Examples:
  trace-analyze conversation_trace.jsonl
  trace-analyze trace.trace --cache-blocks 5637,22550 --policies lru,optimal --warmup 0.5
  trace-analyze run.rec --slo ttft=500ms,tpot=50ms
  trace-analyze shard0.rec shard1.rec --json
`

func usage(w io.Writer, o *options) error {
	_, err := fmt.Fprint(w, usageHead, cli.FlagUsages(o.flags), usageTail)
	return err
}
