package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"retrace/analysis"
	"retrace/formats"
	"retrace/record"
	"retrace/replay"
)

// runner is a replay with its recording and its analysis.
type runner struct {
	*command
	cfg     replay.Config
	shards  int
	planned int64

	header  record.Header
	file    *record.FileWriter // nil without -o
	broken  bool               // it cannot be written any more
	summary *analysis.Run
	line    *progressLine
}

// checkOutput refuses early what CreateRecording would refuse late.
func (c *command) checkOutput() error {
	if c.o.output == "" || c.o.force || c.o.dryRun {
		return nil
	}
	if _, err := os.Lstat(c.o.output); err == nil {
		return fmt.Errorf("create recording %s: %w", c.o.output, os.ErrExist)
	}
	return nil
}

// replay runs, closes the recording, prints the summary and gives the exit status.
func (r *runner) replay(ctx context.Context, trace *formats.Trace) int {
	r.summary = analysis.NewRun(analysis.RunOptions{MaxLag: r.o.maxLag})
	r.line = newProgressLine(r.stderr, r.planned)
	r.cfg.Started = r.started
	r.cfg.Sink = r.sink
	if r.line != nil {
		r.cfg.Progress = r.line.show
	}
	out, err := replay.Run(ctx, r.cfg, trace.Requests())
	r.line.end()
	if r.header.Run == nil { // the run ended before its start
		return r.stopped(ctx, err)
	}
	footer := record.Footer{Interrupted: out.Interrupted, Notes: out.Notes}
	if len(out.Target.Addresses) > 0 {
		footer.Notes = append(footer.Notes, "server names were resolved once, to "+strings.Join(out.Target.Addresses, ", "))
	}
	if r.file != nil {
		if closeErr := r.file.Close(footer); err == nil && closeErr != nil {
			err = fmt.Errorf("close recording %s: %w", r.o.output, closeErr)
		}
	}
	r.summary.AddFooter(footer, true)
	report := r.summary.Report()
	if printErr := r.print(report); printErr != nil && err == nil {
		err = printErr
	}
	r.tell(&out)
	if err != nil {
		complain(r.stderr, err, hint(err))
	}
	return exitCode(&out, report, err)
}

// exitCode is 130, 1, 4 or 3, whichever applies first.
func exitCode(out *replay.Outcome, report *analysis.RunReport, err error) int {
	switch {
	case out.Interrupted:
		return exitInterrupted
	case err != nil:
		return exitFailed
	case report.ScheduleKept != nil && !*report.ScheduleKept:
		return exitLimit
	case out.Lost():
		return exitLoss
	}
	return exitOK
}

func (r *runner) print(report *analysis.RunReport) error {
	if r.o.json {
		return report.WriteJSON(r.stdout)
	}
	return report.WriteTable(r.stdout)
}

// tell prints what the summary does not say.
func (r *runner) tell(out *replay.Outcome) {
	for _, n := range out.Notes {
		r.note("%s", n)
	}
	if out.Opened > 0 {
		r.note("connections: %d opened, %d times reused", out.Opened, out.Reused)
	}
	for _, class := range slices.Sorted(maps.Keys(out.Errors)) {
		r.note("first %s: %s", class, out.Errors[class])
	}
	if out.Lost() {
		r.note("%d of %d requests failed, %d were cancelled, %d were not sent", out.Failed, out.Planned, out.Cancelled, out.NotSent)
	}
	for _, reason := range slices.Sorted(maps.Keys(out.Reasons)) {
		r.note("not sent: %d: %s", out.Reasons[reason], reason)
	}
}

// started opens the recording, once the server is known.
func (r *runner) started(t replay.Target) error {
	for _, n := range t.Notes {
		r.warn("%s", n)
	}
	if t.Proxy != "" {
		r.note("proxy %s", t.Proxy)
	}
	h := r.cfg.Header
	h.Kind = record.KindRecording
	h.Seed = r.o.seed
	run := &record.Run{
		Start: t.Start, URLs: t.URLs, Proxy: t.Proxy, Insecure: r.o.insecure,
		Model: t.Model, API: string(r.cfg.API), Prompt: string(r.cfg.Prompt), Sessions: string(r.cfg.Sessions),
		Speed: r.cfg.Speed, Shard: r.cfg.Shard, Shards: r.shards, Salt: r.cfg.Salt,
		MaxConcurrency: r.o.maxConcurrency, MaxLag: r.o.maxLag,
		ServerBlockSize: t.ServerBlockSize, Overhead: t.Overhead, Planned: r.planned,
	}
	h.RunID = runID(&h, run, r.o)
	if t.Overhead > 0 {
		r.note("the server's template adds %d tokens: prompts are cut by as many", t.Overhead)
	}
	if r.o.output != "" {
		file, err := record.CreateRecording(r.o.output, withRun(h, run), r.o.force)
		if err != nil {
			return err
		}
		r.file = file
	}
	h.Run = run
	r.header = h
	if err := r.summary.AddHeader(h); err != nil {
		return fmt.Errorf("start summary: %w", err)
	}
	return nil
}

func withRun(h record.Header, run *record.Run) record.Header {
	h.Run = run
	return h
}

// sink takes one result. A recording that cannot be written ends the run, but
// the summary still gets every result.
func (r *runner) sink(res *record.Result) error {
	r.summary.Add(res)
	if r.file == nil || r.broken {
		return nil
	}
	if err := r.file.WriteResult(res); err != nil {
		r.broken = true
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}
