package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"

	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/internal/plural"
	"retrace/record"
)

// printConversion tells what was done: notes, then the sums, then warnings.
func printConversion(cmd cli.Command, c *formats.Conversion, o *options) {
	for _, l := range c.Lost {
		cmd.Tell("warning", "%s", l)
	}
	if !o.quiet {
		printSums(cmd, c)
	}
	for _, s := range c.Report.Warnings {
		cmd.Tell("warning", "%s", s)
	}
}

func printSums(cmd cli.Command, c *formats.Conversion) {
	for _, n := range c.Report.Notes {
		cmd.Tell("", "%s", n)
	}
	f := c.Figures
	cmd.Tell("", "%s, %s, %s, %s", plural.Of(f.Requests, "request"), plural.Of(f.Input, "input token"),
		plural.Of(f.Output, "output token"), plural.Of(f.Blocks, "block"))
	if f.First != record.NoTime {
		least := ""
		if f.Untimed > 0 {
			least = "at least " // these wait for the answers before them
		}
		cmd.Tell("", "span %s, %s; a replay is planned to take %sthat long", f.Span(), meanRate(f), least)
	}
	r := &c.Report
	cmd.Tell("", "rows: %d read = %d kept + %d skipped", r.Read, r.Kept, r.SkippedRows())
	if r.Kept != f.Requests {
		cmd.Tell("", "selected %d of %s", f.Requests, plural.Of(r.Kept, "request"))
	}
}

// meanRate is what trace-analyze calls arrivals.rate_rps: requests with an
// arrival / (last − first arrival).
func meanRate(f formats.Figures) string {
	rate, ok := f.MeanRate()
	if !ok {
		return "all at one instant"
	}
	return "mean rate " + strconv.FormatFloat(rate, 'g', 6, 64) + " requests/s"
}

// printLosses names what is missing; these are the last lines on stderr.
func printLosses(cmd cli.Command, r *formats.Report) {
	for _, l := range r.Losses {
		cmd.Tell("lost", "%s", l)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		cmd.Tell("", "skipped %s: %s (first: %s)", plural.Of(r.Skipped[reason], "row"), reason, r.FirstSkipped[reason])
	}
}

// listFormats prints the table of --list-formats, and below it what the
// formats carry.
func listFormats(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tFILES\tDIRECTION\tBLOCK\tUNIT\tTITLE")
	for _, f := range formats.Table() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Files, f.Direction, f.Block, f.Unit, f.Title)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	fmt.Fprint(w, "\nBLOCK is the length of a prefix block in tokens, UNIT that of times. Requests carry:\n\n")
	for _, f := range formats.Table() {
		const indent = 12
		if _, err := fmt.Fprintf(w, "%-*s%s\n", indent, f.Name, cli.Wrap(f.Carries, indent)); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return nil
}
