package analysis

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// absent stands for a figure that does not exist.
const absent = "–"

// report writes lines and tables to w until the first error, which it keeps.
type report struct {
	w   io.Writer
	err error
}

func (p *report) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table writes rows under a header, names to the left and figures to the right.
func (p *report) table(header []string, rows [][]string) {
	if p.err != nil || len(rows) == 0 {
		return
	}
	align := make(tw.Alignment, len(header))
	for i := range align {
		align[i] = tw.AlignRight
	}
	align[0] = tw.AlignLeft
	var buf bytes.Buffer
	t := tablewriter.NewTable(&buf,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Symbols:  tw.NewSymbols(tw.StyleASCII),
			Borders:  tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off},
			Settings: tw.Settings{Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off}},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithAlignment(align),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: align}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: align}),
	)
	t.Header(header)
	if p.err = t.Bulk(rows); p.err == nil {
		p.err = t.Render()
	}
	for l := range strings.Lines(buf.String()) {
		p.line("%s", strings.TrimRight(strings.TrimPrefix(l, " "), " \n"))
	}
}

// end is the first error, with what was being done.
func (p *report) end(what string) error {
	if p.err != nil {
		return fmt.Errorf("write %s: %w", what, p.err)
	}
	return nil
}

// statsHeader heads the columns of statsRow.
func statsHeader(first string) []string {
	return []string{first, "n", "mean", "std", "min", "p50", "p90", "p95", "p99", "max"}
}

// statsRow is a distribution as a row of a table, its p99 marked where there
// are too few values for it to mean more than the maximum.
func statsRow(name string, s Stats) []string {
	return []string{
		name, strconv.FormatInt(s.Count, 10), figure(s.Mean), figure(s.Std), figure(s.Min),
		figure(s.P50), figure(s.P90), figure(s.P95), marked(s), figure(s.Max),
	}
}

// marked is a p99, with a mark where it says no more than the maximum.
func marked(s Stats) string {
	if s.Few() {
		return figure(s.P99) + "*"
	}
	return figure(s.P99)
}

// figure is a value for people: about four digits, at most three decimals.
func figure(v Value) string {
	x, ok := v.Get()
	if !ok {
		return absent
	}
	if a := math.Abs(x); a >= 0.001 && a < 1e9 {
		x = math.Round(x*1e6) / 1e6 // 2, not 2.000 for 1.9999999999999996
	}
	switch a := math.Abs(x); {
	case x == math.Trunc(x) && a < 1e15, a >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case a >= 0.001:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// rate is a share of one for people, with six decimals.
func rate(v Value) string {
	if x, ok := v.Get(); ok {
		return strconv.FormatFloat(x, 'f', 6, 64)
	}
	return absent
}

// sum is a total for people.
func sum(t Total) string {
	if t.Known == 0 {
		return absent
	}
	return strconv.FormatInt(t.Sum, 10)
}
