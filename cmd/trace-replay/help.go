package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"retrace/cmd/internal/cli"
)

const usageHead = `Replay a trace against an OpenAI-compatible server, on the trace's own schedule.

Usage:

    trace-replay [flags] TRACE --url URL [-o RUN.rec]

TRACE is a .trace file, or any foreign format that trace-convert reads (plain,
gzip or zstd; - is standard input). A recording (.rec) holds no trace. Requests leave at
their recorded offsets whatever the server does; how late they were is part of
the summary. The plan and the progress go to stderr, the summary to stdout.

Examples:

    trace-replay conversation.jsonl --url sim --limit 100 --speed 10
        the first 100 requests, ten times as fast, to the built-in server
    trace-replay day.trace --url http://gpu-node:8000 --start 1h --end 2h -o hour.rec
        one hour of a trace, recorded; analyse it with trace-analyze hour.rec
    trace-replay day.trace --url http://a:8000 --url http://b:8000 --max-concurrency 64
        two replicas in turns, at most 64 requests at once, the others wait
    trace-replay chats.trace --url https://api.example.com --api chat --json
        chat completions; the API key is that of OPENAI_API_KEY
    trace-replay bodies.jsonl --url http://gpu-node:8000 --arrival poisson --rate 5
        whole request bodies, one a line, each to the API that it is of
    trace-replay day.trace --url http://gpu-node:8000 --shard 0/2 -o sh0.rec
    trace-replay day.trace --url http://gpu-node:8000 --shard 1/2 -o sh1.rec
        one run from two machines, merged by trace-analyze sh0.rec sh1.rec:
        shards of one run share trace, flags, seed and --start-at
    trace-replay day.trace --url http://gpu-node:8000 --arrival poisson --rate 20 --warmup-requests 16 --repeat 3 -o day.rec
        20 requests/s at random times, from a warm start, three times over, into
        day.1.rec, day.2.rec and day.3.rec
    trace-replay day.trace --dry-run
        the plan alone

Flags:

`

const usageTail = `
Exit status: 0 done; 1 failed; 2 wrong usage; 3 done, but requests failed or were
not sent, or lines were skipped; 4 the schedule was not kept; 130 interrupted.
Where several apply: 130, 1, 4, 3. The first Ctrl-C stops sending and lets what is
in flight end for --grace; the second ends at once: no summary is printed then,
but trace-analyze makes it from the recording, which has all but the last second.
`

func usage(w io.Writer, flags *pflag.FlagSet) error {
	_, err := fmt.Fprint(w, usageHead, cli.FlagUsages(flags), usageTail)
	return err
}
