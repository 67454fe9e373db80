package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/internal/plural"
	"retrace/replay"
	"retrace/replay/simserver"
)

// Exit codes, as all commands of the toolkit have them.
const (
	exitOK          = cli.Done
	exitFailed      = cli.Failed
	exitLoss        = cli.Losses
	exitLimit       = cli.Limit
	exitInterrupted = cli.Interrupted
)

// gcPercent trades a little CPU time for memory: most of what a replay holds is
// its look-ahead and what the predictor remembers, both long-lived.
const gcPercent = 50

var errInterrupted = errors.New("interrupted")

// name is the command's.
const name = "trace-replay"

// run is the command.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var o options
	flags := o.bind()
	tool := cli.Command{Name: name, In: stdin, Out: stdout, Err: stderr}
	done, err := tool.Parse(flags, args, func(w io.Writer) error { return usage(w, flags) })
	if done && err != nil {
		return exitFailed
	}
	if done {
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
		return tool.Wrong(err)
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
		told := make(chan struct{})
		go func() {
			fmt.Fprintln(stderr, "trace-replay: interrupted again: ending at once")
			close(told)
		}()
		select {
		case <-told:
		case <-time.After(200 * time.Millisecond): // stderr stands still
		}
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
				cancel()
				// A terminal that stands still must not keep the next signal.
				go fmt.Fprintf(stderr, "\ntrace-replay: %v: no more is sent, what is in flight may end; once more ends at once\n", s)
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
	part := source.Select
	cfg.Shard, cfg.Shards = part.Shard, part.Shards
	source.Select.Shard, source.Select.Shards = 0, 0 // the arrival law comes before the shard
	source.Interrupted = func() bool { return ctx.Err() != nil }
	trace, err := formats.Open([]string{c.o.trace}, source)
	if err != nil {
		return c.stopped(ctx, err)
	}
	defer func() { _ = trace.Close() }() // temporary files alone
	plan, err := c.plan(ctx, trace, &cfg)
	if isUsage(err) {
		return cli.Command{Name: name, Err: c.stderr}.Wrong(err)
	}
	if err != nil {
		return c.stopped(ctx, err)
	}
	report := trace.Report()
	lossy := report.Lossy()
	if c.o.dryRun {
		return c.dryRun(ctx, &cfg, trace, plan, lossy)
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
	c.checkLimits(plan)
	part.Speed = cfg.Speed
	code := c.repeat(ctx, &planned{cfg, part, plan}, trace)
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

func (c *command) tellLosses(report *formats.Report) {
	for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
		c.warn("%s skipped: %s", plural.Of(report.Skipped[reason], "row"), reason)
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
	cli.Command{Name: name, Err: w}.Complain(err, hint)
}

func hint(err error) string {
	var at *os.PathError
	switch {
	case errors.As(err, &at) && at.Path == os.Stdout.Name():
		return "" // no recording is concerned
	case errors.Is(err, os.ErrExist):
		return "--force overwrites it"
	case errors.Is(err, replay.ErrKeyInClear):
		return "use https, or a tunnel to localhost"
	case errors.Is(err, syscall.ENOSPC):
		return "the recording keeps what was written; free some space"
	}
	return ""
}
