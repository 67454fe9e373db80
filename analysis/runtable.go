package analysis

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"retrace/internal/plural"
)

// WriteTable writes the report for people: whether the schedule was kept
// first, then how the requests ended, throughput, latencies, and what to mind.
func (rep *RunReport) WriteTable(w io.Writer) error {
	p := &report{w: w}
	rep.writeSchedule(p)
	rep.writeRequests(p)
	rep.writeThroughput(p)
	rep.writeLatencies(p)
	rep.writeServers(p)
	for _, s := range rep.Warnings {
		p.line("note: %s", s)
	}
	return p.end("summary")
}

func (rep *RunReport) writeSchedule(p *report) {
	if rep.missing != "" {
		p.line("%s", rep.missing)
	}
	if rep.ScheduleKept == nil {
		if rep.Requests.Total == rep.Requests.NotSent {
			p.line("Schedule: nothing was sent")
			return
		}
		p.line("Schedule: no request reached a connection")
		return
	}
	word := "kept"
	if !*rep.ScheduleKept {
		word = "NOT KEPT"
		if rep.ScheduleLag.Few() {
			word += fmt.Sprintf(" (n=%d)", rep.ScheduleLag.Count)
		}
	}
	lag := rep.ScheduleLag
	p.line("Schedule %s: sends late by p50 %s ms, p99 %s ms, max %s ms (limit on p99: %s ms)",
		word, figure(lag.P50), figure(lag.P99), figure(lag.Max), figure(Some(rep.MaxLagMS)))
}

func (rep *RunReport) writeRequests(p *report) {
	q := rep.Requests
	failed := strconv.FormatInt(q.Failed, 10) + " failed"
	if share, ok := rep.FailureRate.Get(); ok && q.Failed > 0 {
		failed += fmt.Sprintf(" (%.1f %%)", 100*share)
	}
	p.line("Requests: %d completed, %s, %d cancelled, %d not sent, of %d", q.Completed, failed, q.Cancelled, q.NotSent, q.Total)
	if len(rep.Errors) > 0 {
		p.line("Failures: %s", countList(rep.Errors))
	}
	if len(rep.NotSent) > 0 {
		p.line("Not sent: %s", countList(rep.NotSent))
	}
	if b := rep.BeyondTrace; b != (RunMarked{}) {
		p.line("Beyond the trace, in no figure: %s, %s, %s",
			plural.Of(b.Overhead, "overhead probe"), plural.Of(b.WarmUp, "warm-up request"), plural.Of(b.Probe, "probe"))
	}
}

func countList(m map[string]int64) string {
	var parts []string
	for _, name := range sortedNames(m) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

func (rep *RunReport) writeThroughput(p *report) {
	if !rep.DurationS.OK {
		p.line("No request was completed: there is no duration, no throughput and no latency")
		return
	}
	t := rep.Throughput
	p.line("Duration: %s s, first send to last output of the completed requests", figure(rep.DurationS))
	p.line("Throughput: %s requests/s, %s output tokens/s, %s tokens/s in all",
		figure(t.Requests), figure(t.OutputTokens), figure(t.TotalTokens))
	p.line("Tokens: %s input, %s output, %s cached", sum(rep.Tokens.Input), sum(rep.Tokens.Output), sum(rep.Tokens.Cached))
	if g := rep.Goodput; g != nil {
		p.line("Goodput (%s): %d of %s (%s of all), %s requests/s",
			g.SLO, g.Good, plural.Of(rep.Requests.Total, "request"), percent(g.Share), figure(g.Requests))
	}
	if c := rep.PrefixCache; c.Predicted.OK || c.Observed.OK {
		p.line("Prefix cache, share of prompt tokens: %s predicted (endless cache), %s observed", rate(c.Predicted), rate(c.Observed))
	}
}

func percent(v Value) string {
	if x, ok := v.Get(); ok {
		return fmt.Sprintf("%.1f %%", 100*x)
	}
	return absent
}

func (rep *RunReport) writeLatencies(p *report) {
	head, none := "completed requests", rep.Requests.Completed == 0
	if none {
		head = "requests sent"
	}
	rows := []struct {
		name string
		s    Stats
	}{
		{"TTFT, ms", rep.TTFT}, {"TPOT, ms", rep.TPOT}, {"ITL, ms", rep.ITL}, {"E2E, ms", rep.E2E},
		{"TTFT from schedule, ms", rep.TTFTScheduled}, {"E2E from schedule, ms", rep.E2EScheduled},
		{"queue, ms", rep.Queue}, {"send lag, ms", rep.ScheduleLag}, {"output tokens", rep.OutputTokens},
	}
	if off := rep.InputOff; off.Min.V != 0 || off.Max.V != 0 {
		rows = append(rows, struct {
			name string
			s    Stats
		}{"prompt tokens off", off})
	}
	var cells [][]string
	few := false
	for _, r := range rows {
		if none && r.s.Count == 0 {
			continue
		}
		cells = append(cells, statsRow(r.name, r.s))
		few = few || r.s.Few()
	}
	if len(cells) == 0 {
		return
	}
	p.line("")
	p.table(statsHeader(head), cells)
	p.line("")
	if few {
		p.line("* fewer than %d values: the p99 says little more than the maximum", few100)
	}
	p.line("TTFT: send to first output; TPOT: (last - first output)/(output tokens - 1), from two tokens on; ITL: gaps between")
	p.line("streamed outputs of all requests; E2E: send to last output; send lag and queue: all requests sent, failed ones too.")
	p.line("Percentiles: exact, linear interpolation between closest ranks; std: of the population.")
}

func (rep *RunReport) writeServers(p *report) {
	if len(rep.Replicas) == 0 {
		return
	}
	var cells [][]string
	for _, s := range rep.Replicas {
		cells = append(cells, []string{
			strings.TrimSpace(fmt.Sprintf("%d %s", s.Replica, s.URL)),
			strconv.FormatInt(s.Requests.Completed, 10), strconv.FormatInt(s.Requests.Failed, 10),
			strconv.FormatInt(s.OutputTokens, 10),
			figure(s.TTFT.P50), figure(s.TTFT.P99), figure(s.TPOT.P50), figure(s.E2E.P50), figure(s.E2E.P99),
		})
	}
	p.line("")
	p.table([]string{"server", "completed", "failed", "output tokens", "TTFT p50", "TTFT p99", "TPOT p50", "E2E p50", "E2E p99"}, cells)
	p.line("")
}
