// Command bench measures the figures of the README: how fast a trace is
// converted and read back, how late a replay sends, and how much memory a
// million requests take. README.md beside it has the commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] { // the measurements' own children
		case "serve":
			os.Exit(runServe(os.Args[2:], os.Stdout, os.Stderr))
		case "send":
			os.Exit(runSend(os.Args[2:], os.Stdout, os.Stderr))
		}
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	data, python   string
	vegeta, wrk    string
	aiperf, vllm   string
	tokenizer      string
	rounds         int
	rates          string
	span           time.Duration
	requests       int
	memoryRate     float64
	timeout        time.Duration
	stdout, stderr io.Writer
	bin, scratch   string
	asked          []string
}

// measurement is one of the things that can be asked for.
type measurement struct {
	name, title string
	commands    []string
	run         func(context.Context, *options) error
}

// measurements come in the order in which "all" runs them: those of memory
// first, while this process is small, for a child's peak counts from there.
var measurements = []measurement{
	{"memory", "Memory: peak resident set", []string{"trace-convert", "trace-replay", "trace-sim"}, measureMemory},
	{"replay", "Replay: lateness of sends", []string{"trace-replay", "trace-sim"}, measureReplay},
	{"convert", "Convert, size and reading back", []string{"trace-convert"}, measureConvert},
	{"peers", "Short requests: the most a client makes", []string{"trace-replay"}, measurePeers},
	{"events", "Streamed events: what one core reads", []string{"trace-replay"}, measureEvents},
	{"schedule", "The conversation trace on a tight schedule", []string{"trace-replay"}, measureSchedule},
	{"hash", "Block hashes", nil, measureHash},
	{"cache", "Cache curves", []string{"trace-analyze"}, measureCache},
}

// run measures what args name and prints one Markdown table each.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: error: %v\n", err)
		return 2
	}
	o.stdout, o.stderr = stdout, stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintf(stderr, "bench: error: %v\n", err)
		return 1
	}
	return 0
}

// parse reads the flags.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintf(stderr, "usage: go run . [flags] memory|replay|convert|peers|events|schedule|hash|cache|all ...\n\n")
		f.PrintDefaults()
	}
	data := os.Getenv("RETRACE_MOONCAKE")
	if data == "" {
		data = "../../shared/data/mooncake/conversation_trace.jsonl"
	}
	f.StringVar(&o.data, "data", data, "`file` of the Mooncake conversation trace (or $RETRACE_MOONCAKE); a made one where it is absent")
	f.StringVar(&o.python, "python", "python3", "Python with orjson, to compare with")
	f.StringVar(&o.vegeta, "vegeta", "", "`path` of vegeta, for peers")
	f.StringVar(&o.wrk, "wrk", "", "`path` of wrk, for peers")
	f.StringVar(&o.aiperf, "aiperf", "", "`path` of AIPerf, for peers and schedule")
	f.StringVar(&o.vllm, "vllm", "", "`path` of vLLM's command, for peers and schedule")
	f.StringVar(&o.tokenizer, "tokenizer", "", "`file` of a tokenizer.json, for those two")
	f.IntVar(&o.rounds, "rounds", 5, "rounds of convert and replay; medians are shown")
	f.StringVar(&o.rates, "rates", "1000,2000", "requests a second of replay, one after the other")
	f.DurationVar(&o.span, "span", 10*time.Second, "how long each round of replay sends; schedule takes ten times as long a client, and events so long a paced stream")
	f.IntVar(&o.requests, "requests", 1_000_000, "requests of the trace of memory")
	f.Float64Var(&o.memoryRate, "memory-rate", 3000, "requests a second at which memory replays them")
	f.DurationVar(&o.timeout, "timeout", time.Hour, "when to give up")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.asked = f.Args()
	switch {
	case len(o.asked) == 0:
		return nil, errors.New("say what to measure: memory, replay, convert, peers, events, schedule, hash, cache or all")
	case o.rounds < 1 || o.requests < 1 || o.span <= 0 || o.memoryRate <= 0:
		return nil, errors.New("--rounds, --requests, --span and --memory-rate: want more than 0")
	}
	if (o.aiperf != "" || o.vllm != "") && o.tokenizer == "" {
		return nil, errors.New("--aiperf and --vllm: want a --tokenizer too")
	}
	for _, name := range o.asked {
		known := func(m measurement) bool { return m.name == name }
		if name != "all" && !slices.ContainsFunc(measurements, known) {
			return nil, fmt.Errorf("measure %q: want memory, replay, convert, peers, events, schedule, hash, cache or all", name)
		}
	}
	return o, nil
}

// measure builds the commands into a folder of its own and runs what was asked for.
func measure(ctx context.Context, o *options) (err error) {
	dir, err := os.MkdirTemp("", "retrace-bench-")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.scratch, o.bin = dir, filepath.Join(dir, "bin")
	fmt.Fprintf(o.stdout, "%s\n", machine())
	for _, m := range measurements {
		if !slices.Contains(o.asked, m.name) && !slices.Contains(o.asked, "all") {
			continue
		}
		if err := build(ctx, o, m.commands); err != nil {
			return err
		}
		fmt.Fprintf(o.stdout, "\n### %s\n\n", m.title)
		if err := m.run(ctx, o); err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
	}
	return nil
}
