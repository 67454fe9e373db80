package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/olekukonko/tablewriter"

	"retrace/formats"
	"retrace/record"
)

// Spans outside these bounds hint at a wrong unit of time.
const (
	shortSpan = time.Second
	longSpan  = 30 * 24 * time.Hour
)

// printConversion tells what was done: notes, then the sums, then warnings.
func printConversion(w io.Writer, c *formats.Conversion, o *options) {
	if !o.quiet {
		for _, n := range c.Report.Notes {
			fmt.Fprintf(w, "trace-convert: %s\n", n)
		}
		f := c.Figures
		fmt.Fprintf(w, "trace-convert: %d requests, %d input tokens, %d output tokens, %d blocks\n",
			f.Requests, f.Input, f.Output, f.Blocks)
		if f.First != record.NoTime {
			fmt.Fprintf(w, "trace-convert: span %s, %s; a replay is planned to take that long\n", f.Span(), meanRate(f))
		}
		fmt.Fprintf(w, "trace-convert: rows: %d read = %d kept + %d skipped\n",
			c.Report.Read, c.Report.Kept, c.Report.SkippedRows())
		if c.Report.Kept != f.Requests {
			fmt.Fprintf(w, "trace-convert: selected %d of %d requests\n", f.Requests, c.Report.Kept)
		}
	}
	for _, s := range append(c.Report.Warnings, spanWarnings(c.Figures)...) {
		fmt.Fprintf(w, "trace-convert: warning: %s\n", s)
	}
}

// meanRate is (requests − 1) / span.
func meanRate(f formats.Figures) string {
	if f.Span() <= 0 {
		return "all at one instant"
	}
	return "mean rate " + strconv.FormatFloat(float64(f.Requests-1)/f.Span().Seconds(), 'g', 6, 64) + " requests/s"
}

func spanWarnings(f formats.Figures) []string {
	const hint = "check the unit of time (--time-unit)"
	switch {
	case f.Requests < 2:
		return nil
	case f.Span() < shortSpan:
		return []string{fmt.Sprintf("the trace spans only %s: %s", f.Span(), hint)}
	case f.Span() > longSpan:
		return []string{fmt.Sprintf("the trace spans %.1f days: %s", f.Span().Hours()/24, hint)}
	}
	return nil
}

func printLost(w io.Writer, c *formats.Conversion) {
	for _, l := range c.Lost {
		fmt.Fprintf(w, "trace-convert: warning: %s\n", l)
	}
}

// printLosses names what is missing; these are the last lines on stderr.
func printLosses(w io.Writer, r *formats.Report) {
	for _, l := range r.Losses {
		fmt.Fprintf(w, "trace-convert: lost: %s\n", l)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		rows := "rows"
		if r.Skipped[reason] == 1 {
			rows = "row"
		}
		fmt.Fprintf(w, "trace-convert: skipped %d %s: %s (first: %s)\n", r.Skipped[reason], rows, reason, r.FirstSkipped[reason])
	}
}

// listFormats prints the table of --list-formats.
func listFormats(std streams) int {
	t := tablewriter.NewWriter(std.out)
	t.Header("name", "files", "direction", "block", "unit", "carries", "title")
	for _, f := range formats.Table() {
		if err := t.Append(f.Name, f.Files, f.Direction, f.Block, f.Unit, f.Carries, f.Title); err != nil {
			fmt.Fprintf(std.err, "trace-convert: error: %v\n", err)
			return exitFailed
		}
	}
	if err := t.Render(); err != nil {
		fmt.Fprintf(std.err, "trace-convert: error: %v\n", err)
		return exitFailed
	}
	return exitDone
}
