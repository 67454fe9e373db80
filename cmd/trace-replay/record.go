package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"retrace/analysis"
	"retrace/formats"
	"retrace/internal/plural"
	"retrace/record"
	"retrace/replay"
)

// planned is what the plan has settled.
type planned struct {
	cfg    replay.Config
	part   formats.Selection
	survey *survey
}

// runner is a replay with its recording and its analysis.
type runner struct {
	*command
	planned
	// nth, from 1, is which of the runs of --repeat this is; output is where its
	// recording goes, "" for nowhere; report its summary, nil before.
	nth    int
	output string
	report *analysis.RunReport

	header  record.Header
	file    *record.FileWriter // nil without -o
	broken  bool               // it cannot be written any more
	taking  sync.Mutex         // of results and series into summary
	summary *analysis.Run
	line    *progressLine

	failed int // requests so far, -1 once one did not fail or it was told
	told   sync.WaitGroup
}

// checkOutput refuses early what CreateRecording would refuse late.
func (c *command) checkOutput() error {
	if c.o.output == "" || c.o.dryRun {
		return nil
	}
	for _, path := range c.o.outputs() {
		if err := writable(path, c.o.force); err != nil {
			return fmt.Errorf("create recording %s: %w", path, err)
		}
	}
	return nil
}

// writable says why a file cannot be written at path, nil where it may be.
func writable(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return holdsFiles(filepath.Dir(path))
	case err != nil:
		return err
	case info.IsDir():
		return unix.EISDIR
	case !force:
		return os.ErrExist
	case unix.Access(path, unix.W_OK) != nil:
		return fs.ErrPermission
	}
	return nil
}

func holdsFiles(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s: %w", dir, unix.ENOTDIR)
	case unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
		return fmt.Errorf("write to %s: %w", dir, fs.ErrPermission)
	}
	return nil
}

// replay runs, closes the recording, prints the summary and gives the exit status.
func (r *runner) replay(ctx context.Context, trace *formats.Trace) int {
	r.summary = analysis.NewRun(analysis.RunOptions{MaxLag: r.o.maxLag})
	r.line = newProgressLine(r.stderr, r.survey.requests)
	r.cfg.Prepared = func(t replay.Target) error { return r.foretell(ctx, &r.cfg, t, trace, r.survey) }
	r.cfg.Started = r.started
	r.cfg.Sink, r.cfg.Series = r.sink, r.series
	if r.line != nil {
		r.cfg.Progress = r.line.update
	}
	out, err := replay.Run(ctx, r.cfg, trace.Requests())
	if r.header.Run == nil { // the run ended before its start
		r.line.end()
		return r.stopped(ctx, err)
	}
	footer := record.Footer{Interrupted: out.Interrupted, Notes: out.Notes}
	if len(out.Target.Addresses) > 0 {
		often := "once"
		if d := r.cfg.Client.RefreshNames; d > 0 {
			often = fmt.Sprintf("before the run and again where older than %v, at first", d)
		}
		footer.Notes = append(footer.Notes, "server names were resolved "+often+", to "+strings.Join(out.Target.Addresses, ", "))
	}
	if d := out.Target.Vocabulary.Digest(); d != "" {
		footer.Notes = append(footer.Notes, "prompts are made of the vocabulary "+d)
	}
	if r.file != nil {
		if closeErr := r.file.Close(footer); err == nil && closeErr != nil {
			err = fmt.Errorf("close recording %s: %w", r.output, closeErr)
		}
	}
	r.line.end() // which waits for the terminal: the recording is closed
	r.told.Wait()
	r.summary.AddFooter(footer, true)
	report := r.summary.Report()
	r.report = report
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
	switch several := r.o.load.repeat > 1; {
	case r.o.json && several:
		return nil // they are one object, in the end
	case r.o.json:
		return report.WriteJSON(r.stdout)
	case several:
		if _, err := fmt.Fprintf(r.stdout, "Run %d of %d\n", r.nth, r.o.load.repeat); err != nil {
			return err
		}
		defer fmt.Fprintln(r.stdout)
	}
	return report.WriteTable(r.stdout)
}

// tell prints what the summary does not say.
func (r *runner) tell(out *replay.Outcome) {
	for _, n := range out.Notes {
		r.note("%s", n)
	}
	if out.Opened+out.Reused > 0 {
		r.note("connections: %d opened, reused %s", out.Opened, plural.Of(out.Reused, "time"))
	}
	for _, class := range slices.Sorted(maps.Keys(out.Errors)) {
		r.note("first %s: %s", class, out.Errors[class])
	}
	if untrusted(out) {
		r.note("every request failed at the server's certificate: --cacert FILE trusts those in it, --insecure checks none")
	}
	if out.Lost() {
		r.note("%d of %s failed, %d cancelled, %d not sent", out.Failed, plural.Of(out.Planned, "request"), out.Cancelled, out.NotSent)
	}
	for _, reason := range slices.Sorted(maps.Keys(out.Reasons)) {
		r.note("not sent: %d: %s", out.Reasons[reason], reason)
	}
}

// untrusted says that TLS let no request through.
func untrusted(out *replay.Outcome) bool {
	_, found := out.Errors[record.ClassTLS]
	return found && len(out.Errors) == 1 && out.Completed+out.Cancelled == 0
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
		Model: t.Model, API: r.survey.apiNames(&r.cfg), Prompt: string(r.cfg.Prompt), Sessions: string(r.cfg.Sessions),
		Speed: r.cfg.Speed, Shard: r.cfg.Shard, Shards: max(r.part.Shards, 1), Salt: r.cfg.Salt,
		MaxConcurrency: r.o.maxConcurrency, MaxLag: r.o.maxLag,
		ServerBlockSize: t.ServerBlockSize, Overhead: t.Overhead, Planned: r.survey.requests, Load: r.load(t),
	}
	h.RunID = runID(&h, r.o, r.part)
	if r.nth > 1 && r.o.startAt != "" {
		h.RunID = fmt.Sprintf("%s-%d", h.RunID, r.nth)
	}
	if t.Overhead > 0 {
		behind := ""
		if t.Tail > 0 {
			behind = fmt.Sprintf(" (%d of them behind a prompt)", t.Tail)
		}
		r.note("the server's template adds %s%s: prompts are cut by as many", plural.Of(t.Overhead, "token"), behind)
	}
	if r.output != "" {
		file, err := record.CreateRecording(r.output, withRun(h, run), r.o.force)
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

// failedAlarm is how many requests may fail, and none succeed, before a run
// says so while it goes on: a server that is down costs the trace's whole time.
const failedAlarm = 20

// alarm tells once that every request so far failed.
func (r *runner) alarm(res *record.Result) {
	switch {
	case r.failed < 0 || res.Mark != record.Planned || res.State == record.NotSent:
		return
	case res.State != record.Failed:
		r.failed = -1
		return
	}
	if r.failed++; r.failed < failedAlarm {
		return
	}
	r.failed = -1
	class, why := res.Class, res.Error
	r.told.Go(func() { // a terminal that stands still must not hold the results
		r.warn("every request so far failed (%d): %s: %s; the schedule goes on to the trace's end, Ctrl-C ends it", failedAlarm, class, why)
	})
}

func withRun(h record.Header, run *record.Run) record.Header {
	h.Run = run
	return h
}

// sink takes one result. A recording that cannot be written ends the run, but
// the summary still gets every result.
func (r *runner) sink(res *record.Result) error {
	r.taking.Lock()
	r.summary.Add(res)
	r.taking.Unlock()
	r.alarm(res)
	if r.file == nil || r.broken {
		return nil
	}
	if err := r.file.WriteResult(res); err != nil {
		r.broken = true
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}
