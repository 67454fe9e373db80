package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"retrace/analysis"
	"retrace/formats"
)

// repeatPath is where the recording of run i of n goes: RUN.2.rec for RUN.rec.
func repeatPath(path string, i, n int) string {
	if path == "" || n < 2 {
		return path
	}
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(path, ext), i, ext)
}

// outputs are the recordings of all runs.
func (o *options) outputs() []string {
	paths := make([]string, o.load.repeat)
	for i := range paths {
		paths[i] = repeatPath(o.output, i+1, o.load.repeat)
	}
	return paths
}

// repeatSalt gives run i prompts of its own; the first has those of a single run.
func repeatSalt(salt string, i int) string {
	if i < 2 {
		return salt
	}
	return strings.TrimSpace(fmt.Sprintf("%s repeat %d", salt, i))
}

// exitOrder is the order in which exit statuses take precedence.
var exitOrder = []int{exitInterrupted, exitFailed, exitLimit, exitLoss, exitOK}

// worse is the exit status that tells more.
func worse(a, b int) int {
	return exitOrder[min(slices.Index(exitOrder, a), slices.Index(exitOrder, b))]
}

// repeat makes the runs one after the other, and sums them up together. A run
// that is interrupted or fails is the last.
func (c *command) repeat(ctx context.Context, run *planned, trace *formats.Trace) int {
	n := c.o.load.repeat
	code := exitOK
	var reports []*analysis.RunReport
	for i := 1; i <= n && (code == exitOK || code == exitLoss || code == exitLimit); i++ {
		r := &runner{command: c, planned: *run, nth: i, output: repeatPath(c.o.output, i, n)}
		if n > 1 {
			r.note("run %d of %d", i, n)
			if !c.o.load.samePrompts {
				r.cfg.Salt = repeatSalt(run.cfg.Salt, i)
			}
		}
		if i > 1 {
			r.cfg.StartAt = time.Time{} // it was the first run's
		}
		code = worse(code, r.replay(ctx, trace))
		if r.report != nil {
			reports = append(reports, r.report)
		}
	}
	if n > 1 && len(reports) > 0 {
		together := analysis.NewRepeats(reports)
		write := together.WriteTable
		if c.o.json {
			write = together.WriteJSON
		}
		if err := write(c.stdout); err != nil {
			return worse(code, c.fail(fmt.Errorf("write summary: %w", err)))
		}
	}
	return code
}
