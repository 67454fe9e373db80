package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/pflag"

	"retrace/formats"
	"retrace/replay"
	"retrace/replay/simserver"
)

// Exit codes, as all commands of the toolkit have them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLoss        = 3
	exitLimit       = 4
	exitInterrupted = 130
)

// gcPercent trades a little CPU time for memory: most of what a replay holds is
// its look-ahead and what the predictor remembers, both long-lived.
const gcPercent = 50

var errInterrupted = errors.New("interrupted")

// run is the command.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var o options
	flags := o.bind()
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		if err := usage(stdout, flags); err != nil {
			return exitFailed
		}
		return exitOK
	}
	if err == nil {
		err = o.validate(flags.Args())
	}
	var source formats.Options
	if err == nil {
		source, err = o.source.Options()
	}
	if err == nil {
		source.Select, err = o.selection.Selection()
	}
	if err != nil {
		complain(stderr, err, "trace-replay --help lists the flags")
		return exitUsage
	}
	source.Stdin = stdin

	c := &command{o: &o, stdout: stdout, stderr: stderr}
	signal.Ignore(syscall.SIGPIPE) // a closed pipe must not cost the recording
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	var code int
	over := make(chan struct{})
	ctx, again, release := interruptible(ctx, stderr)
	defer release()
	go func() {
		defer close(over)
		code = c.main(ctx, source)
	}()
	select {
	case <-over:
		return code
	case <-again:
		fmt.Fprintln(stderr, "trace-replay: interrupted again: ending at once")
		return exitInterrupted
	}
}

// interruptible ends the context at the first signal; again is closed at the
// second.
func interruptible(ctx context.Context, stderr io.Writer) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	again, done := make(chan struct{}), make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case s := <-signals:
				if n == 1 {
					close(again)
					return
				}
				fmt.Fprintf(stderr, "\ntrace-replay: %v: no more is sent, what is in flight may end; once more ends at once\n", s)
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, again, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// command is one invocation.
type command struct {
	o              *options
	stdout, stderr io.Writer
}

func (c *command) warn(format string, args ...any) {
	fmt.Fprintf(c.stderr, "trace-replay: warning: "+format+"\n", args...)
}

func (c *command) note(format string, args ...any) {
	fmt.Fprintf(c.stderr, "trace-replay: "+format+"\n", args...)
}

func (c *command) fail(err error) int {
	complain(c.stderr, err, hint(err))
	return exitFailed
}

// main runs from the trace to the summary.
func (c *command) main(ctx context.Context, source formats.Options) int {
	cfg, err := c.o.config()
	if err != nil {
		return c.fail(err)
	}
	if err := c.checkOutput(); err != nil {
		return c.fail(err)
	}
	cfg.Speed, source.Select.Speed = source.Select.Speed, 1
	cfg.Shard = source.Select.Shard
	source.Interrupted = func() bool { return ctx.Err() != nil }
	trace, err := formats.Open([]string{c.o.trace}, source)
	if err != nil {
		return c.stopped(ctx, err)
	}
	defer func() { _ = trace.Close() }() // temporary files alone
	plan, err := c.plan(ctx, trace, source, &cfg)
	if err != nil {
		return c.stopped(ctx, err)
	}
	report := trace.Report()
	lossy := report.Lossy()
	if c.o.dryRun {
		return c.dryRun(&cfg, trace, lossy)
	}
	stop, err := c.startSims(&cfg)
	if err != nil {
		return c.fail(err)
	}
	defer stop()
	note, err := c.o.key(&cfg)
	if err != nil {
		return c.fail(err)
	}
	if note != "" {
		c.warn("%s", note)
	}
	if err := cfg.Validate(); err != nil {
		return c.fail(err)
	}
	c.checkDescriptors(plan)
	r := &runner{command: c, cfg: cfg, shards: max(source.Select.Shards, 1), planned: plan.requests}
	code := r.replay(ctx, trace)
	if lossy && code == exitOK {
		code = exitLoss
	}
	if lossy {
		c.tellLosses(&report)
	}
	return code
}

// stopped is the exit of a run that ended before it began.
func (c *command) stopped(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		c.note("interrupted before the first request")
		return exitInterrupted
	}
	return c.fail(err)
}

// plan reads the trace once, decides what it decides, and prints the plan.
func (c *command) plan(ctx context.Context, trace *formats.Trace, source formats.Options, cfg *replay.Config) (*survey, error) {
	stop := func() bool { return ctx.Err() != nil }
	plan, err := look(trace.Requests(), stop)
	if err != nil {
		return nil, err
	}
	cfg.Header = trace.Header
	if cfg.Sessions == "" {
		cfg.Sessions = replay.Open
		if plan.delayOnly > 0 && plan.timedTurns == 0 {
			cfg.Sessions = replay.Closed
		}
	}
	if cfg.Prompt == "" {
		switch {
		case plan.bodies > 0:
			cfg.Prompt = replay.Literal
		case c.o.api == "chat":
			cfg.Prompt = replay.Text
		default:
			cfg.Prompt = replay.Tokens
		}
	}
	if c.o.fresh {
		cfg.Salt = rand.Text()
	}
	report := trace.Report()
	for _, n := range report.Notes {
		c.note("%s", n)
	}
	for _, w := range report.Warnings {
		c.warn("%s", w)
	}
	out := c.stderr
	if c.o.dryRun {
		out = c.stdout
	}
	plan.print(out, c.o, cfg)
	if cfg.Salt != "" {
		fmt.Fprintf(out, "plan: salt %q\n", cfg.Salt)
	}
	if (source.Select.Start > 0 || source.Select.End > 0 || source.Select.Limit > 0) && c.o.trace != "-" {
		c.compareWindow(plan, source, stop)
	}
	return plan, nil
}

// compareWindow warns where the chosen window is not like the whole file.
func (c *command) compareWindow(plan *survey, source formats.Options, stop func() bool) {
	source.Select = formats.Selection{}
	whole, err := formats.Open([]string{c.o.trace}, source)
	if err != nil {
		return // the window itself was read; nothing is lost
	}
	defer func() { _ = whole.Close() }() // temporary files alone
	file, err := look(whole.Requests(), stop)
	if err != nil {
		return
	}
	if w := compareRates(plan, file); w != "" {
		c.warn("%s", w)
	}
}

// dryRun adds the predicted hits to the plan.
func (c *command) dryRun(cfg *replay.Config, trace *formats.Trace, lossy bool) int {
	p, err := replay.Predict(*cfg, trace.Requests())
	if err != nil {
		return c.fail(err)
	}
	if p.Tokens > 0 {
		fmt.Fprintf(c.stdout, "plan: predicted hits %d of %d prompt tokens (%.4f), with server blocks of %d tokens and an endless cache\n",
			p.Hits, p.Tokens, float64(p.Hits)/float64(p.Tokens), p.BlockSize)
	}
	if p.Left > 0 {
		c.warn("%d requests could not be planned", p.Left)
	}
	fmt.Fprintln(c.stdout, "plan: dry run, nothing was sent")
	if lossy {
		report := trace.Report()
		c.tellLosses(&report)
		return exitLoss
	}
	return exitOK
}

func (c *command) tellLosses(report *formats.Report) {
	for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
		c.warn("%d rows skipped: %s", report.Skipped[reason], reason)
	}
	for _, l := range report.Losses {
		c.warn("%s", l)
	}
}

// startSims starts a built-in server for each URL "sim".
func (c *command) startSims(cfg *replay.Config) (stop func(), err error) {
	var servers []*simserver.Server
	stop = func() {
		for _, s := range servers {
			s.Close()
		}
	}
	for i, u := range c.o.urls {
		if u != sim {
			continue
		}
		config := simserver.DefaultConfig()
		config.Seed = uint64(c.o.seed)
		s, err := simserver.New(config)
		if err == nil {
			err = s.Start("127.0.0.1:0")
		}
		if err != nil {
			stop()
			return nil, fmt.Errorf("start the built-in server: %w", err)
		}
		servers = append(servers, s)
		cfg.URLs[i] = s.URL()
	}
	return stop, nil
}

// complain prints an error and, where there is one, a hint.
func complain(w io.Writer, err error, hint string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "trace-replay: error: %v\n", err)
	if hint != "" {
		fmt.Fprintf(&b, "trace-replay: hint: %s\n", hint)
	}
	_, _ = w.Write(b.Bytes()) // there is nowhere to tell that stderr is gone
}

func hint(err error) string {
	switch {
	case errors.Is(err, os.ErrExist):
		return "--force overwrites it"
	case errors.Is(err, replay.ErrKeyInClear):
		return "use https, or a tunnel to localhost"
	case errors.Is(err, syscall.ENOSPC):
		return "the recording keeps what was written; free some space"
	}
	return ""
}
