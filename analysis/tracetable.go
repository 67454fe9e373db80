package analysis

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"retrace/internal/plural"
)

// WriteTable writes the report for people.
func (rep *TraceReport) WriteTable(w io.Writer) error {
	p := &report{w: w}
	rep.writeHead(p)
	rep.writeTokens(p)
	rep.writeProfile(p)
	if rep.PrefixCache != nil {
		rep.PrefixCache.write(p)
	}
	for _, s := range rep.Warnings {
		p.line("note: %s", s)
	}
	return p.end("analysis")
}

func (rep *TraceReport) writeHead(p *report) {
	from := ""
	if rep.Source != "" {
		from = " from " + rep.Source
	}
	p.line("Trace%s: %s, %s, %s s", from, plural.Of(rep.Requests, "request"), plural.Of(rep.Sessions, "session"), figure(rep.DurationS))
	p.line("Tokens: %s input, %s output", sum(rep.InputTokens.Total), sum(rep.OutputTokens.Total))
	a := rep.Arrivals
	p.line("Arrivals: %s requests/s, coefficient of variation %s (1 for Poisson), %s",
		figure(a.RateRPS), figure(a.CV), plural.Of(rep.DistinctArrivals, "different time"))
	p.line("")
}

func (rep *TraceReport) writeTokens(p *report) {
	rows := [][]string{
		statsRow("input tokens", rep.InputTokens.Stats),
		statsRow("output tokens", rep.OutputTokens.Stats),
		statsRow("interarrival, s", rep.Arrivals.Interarrival),
	}
	p.table(statsHeader("requests"), rows)
	p.line("")
	if rep.InputTokens.Few() || rep.OutputTokens.Few() || rep.Arrivals.Interarrival.Few() {
		p.line("* fewer than %d values: the p99 says little more than the maximum", few100)
	}
	p.line("Percentiles: exact, linear interpolation between closest ranks; std: of the population.")
	p.line("")
}

// barWidth is the length of the longest bar of the rate profile.
const barWidth = 40

func (rep *TraceReport) writeProfile(p *report) {
	var top float64
	for _, b := range rep.RateProfile {
		top = max(top, b.RateRPS)
	}
	if top == 0 {
		return
	}
	p.line("Rate over time, requests/s:")
	first := rep.RateProfile[0]
	decimals := startDecimals(first.EndS - first.StartS)
	for _, b := range rep.RateProfile {
		bar := strings.Repeat("#", int(b.RateRPS/top*barWidth+0.5))
		p.line("%s", strings.TrimRight(fmt.Sprintf("%12.*f s %10s  %s", decimals, b.StartS, figure(Some(b.RateRPS)), bar), " "))
	}
	p.line("")
}

// startDecimals is how many decimals tell bins of a width apart by their start.
func startDecimals(width float64) int {
	const most = 9 // times are whole nanoseconds
	n := 1
	for step := 0.1; n < most && step > width; step /= 10 {
		n++
	}
	return n
}

// grouped writes a number with commas between thousands.
func grouped(x float64) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	whole, frac, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if frac != "" {
		return whole + "." + frac
	}
	return whole
}
