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

// writeSchedule puts what spoils the run first: a schedule that was not kept,
// then a run that did not go to its end.
func (rep *RunReport) writeSchedule(p *report) {
	broken := rep.ScheduleKept != nil && !*rep.ScheduleKept
	if broken {
		rep.writeLateness(p)
	}
	if rep.missing != "" {
		p.line("%s", rep.missing)
	}
	if !broken {
		rep.writeLateness(p)
	}
}

func (rep *RunReport) writeLateness(p *report) {
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
	if t := rep.Retries; t != nil {
		p.line("Retries: %s made again, %s, %d completed in the end; failure rate %s at the first attempt, %s with retries",
			plural.Of(t.Requests, "request"), plural.Of(t.Attempts, "time"), t.Recovered, percent(t.FirstAttempt), percent(t.With))
	}
	if len(rep.NotSent) > 0 {
		p.line("Not sent: %s", countList(rep.NotSent))
	}
	if b := rep.BeyondTrace; b != (RunMarked{}) {
		p.line("Beyond the trace, in no figure: %s, %s, %s",
			plural.Of(b.Overhead, "overhead probe"), plural.Of(b.WarmUp, "warm-up request"), plural.Of(b.Probe, "probe"))
	}
	writeAside(p, "Warm-up", rep.WarmUp)
	writeAside(p, "Probes", rep.Probes)
}

// writeAside tells how the requests of one mark went.
func writeAside(p *report, name string, a *RunAside) {
	if a == nil {
		return
	}
	q := a.Requests
	p.line("%s: %d completed, %d failed, %d cancelled, %d not sent; TTFT p50 %s ms, p99 %s ms; E2E p50 %s ms, p99 %s ms",
		name, q.Completed, q.Failed, q.Cancelled, q.NotSent, figure(a.TTFT.P50), marked(a.TTFT), figure(a.E2E.P50), marked(a.E2E))
	if len(a.Errors) > 0 {
		p.line("%s, failures: %s", name, countList(a.Errors))
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
	p.line("Throughput, whole run: %s requests/s, %s output tokens/s, %s tokens/s in all",
		figure(t.Requests), figure(t.OutputTokens), figure(t.TotalTokens))
	if s := rep.Steady; s != nil {
		p.line("Throughput, steady window (%s s to %s s): %s requests/s, %s output tokens/s, %s tokens/s in all",
			figure(Some(s.FromS)), figure(Some(s.ToS)), figure(s.Requests), figure(s.OutputTokens), figure(s.TotalTokens))
	}
	p.line("Tokens: %s input, %s output, %s cached", sum(rep.Tokens.Input), sum(rep.Tokens.Output), sum(rep.Tokens.Cached))
	rep.writeMedia(p)
	if g := rep.Goodput; g != nil {
		p.line("Goodput (%s): %d of %s (%s of all), %s requests/s",
			g.SLO, g.Good, plural.Of(rep.Requests.Total, "request"), percent(g.Share), figure(g.Requests))
	}
	rep.writeCache(p)
	rep.writeServer(p)
}

// writeMedia parts the input's tokens where the server told those of media.
func (rep *RunReport) writeMedia(p *report) {
	t := rep.Tokens
	if t.Media.Known == 0 || t.Media.Sum == 0 {
		return
	}
	note := ""
	if t.Media.Known < t.Input.Known {
		note = fmt.Sprintf(" (%d of %s tell it)", t.Media.Known, plural.Of(t.Input.Known, "request"))
	}
	p.line("Of the input: %s tokens of images, audio and video%s, %s of text or not told; the throughput counts both",
		sum(t.Media), note, sum(Total{t.Input.Sum - t.Media.Sum, t.Input.Known}))
}

// writeCache puts what was predicted of the prefix cache beside what was seen.
func (rep *RunReport) writeCache(p *report) {
	c := rep.PrefixCache
	if !c.Predicted.OK && !c.Observed.OK && !c.Counted.OK {
		return
	}
	counted := ""
	if c.Counted.OK {
		counted = fmt.Sprintf(", %s by the server's counters", rate(c.Counted))
	}
	p.line("Prefix cache, share of prompt tokens: %s predicted (endless cache), %s observed%s", rate(c.Predicted), rate(c.Observed), counted)
}

// writeServer tells what the servers' metrics said.
func (rep *RunReport) writeServer(p *report) {
	m := rep.Server
	if m == nil {
		return
	}
	pair := func(s Stats) string { return figure(s.Mean) + " (max " + figure(s.Max) + ")" }
	p.line("Server, by %s of its metrics: %s running, %s waiting, KV cache %s in use (max %s), %s %s",
		plural.Of(m.Scrapes, "scrape"), pair(m.Running), pair(m.Waiting), percent(m.KVUsage.Mean), percent(m.KVUsage.Max),
		figure(m.Preemptions), plural.Noun(int(m.Preemptions.V), "preemption"))
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
	rows := rep.latencyRows()
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
	if !none {
		p.line("Means: one value a request, of ITL one a gap; TPOT with one weight a token: %s ms. Steady window: from a tenth of", figure(rep.TokenMean))
		p.line("the time of sending after the first send, to the last send; a request counts where its last output is.")
	}
	p.line("Percentiles: exact, linear interpolation between closest ranks; std: of the population.")
}

// statsLine is a distribution under its name in the table.
type statsLine struct {
	name string
	s    Stats
}

// latencyRows are those of every run, and those that have something to say.
func (rep *RunReport) latencyRows() []statsLine {
	rows := []statsLine{
		{"TTFT, ms", rep.TTFT}, {"TPOT, ms", rep.TPOT}, {"ITL, ms", rep.ITL}, {"E2E, ms", rep.E2E},
		{"TTFT from schedule, ms", rep.TTFTScheduled}, {"E2E from schedule, ms", rep.E2EScheduled},
		{"queue, ms", rep.Queue}, {"send lag, ms", rep.ScheduleLag}, {"output tokens", rep.OutputTokens},
	}
	add := func(name string, s Stats, wanted bool) {
		if wanted {
			rows = append(rows, statsLine{name, s})
		}
	}
	a := rep.Achieved
	add("output tokens, of wanted", a, a.Count > 0 && (a.Min.V != 1 || a.Max.V != 1))
	add("prompt tokens off", rep.InputOff, rep.InputOff.Min.V != 0 || rep.InputOff.Max.V != 0)
	// Where every output has one token the interval is the ITL.
	add("interval of a token, ms", rep.Interval, rep.Interval.Count > 0 && rep.Interval.Count != rep.ITL.Count)
	add("queue in the server, ms", rep.ServerQueue, rep.ServerQueue.Count > 0)
	add("prefill in the server, ms", rep.ServerPrefill, rep.ServerPrefill.Count > 0)
	add("decode in the server, ms", rep.ServerDecode, rep.ServerDecode.Count > 0)
	return rows
}

func (rep *RunReport) writeServers(p *report) {
	if len(rep.Replicas) == 0 {
		return
	}
	var cells [][]string
	metrics := false
	for _, s := range rep.Replicas {
		metrics = metrics || s.Server != nil
	}
	for _, s := range rep.Replicas {
		row := []string{
			strings.TrimSpace(fmt.Sprintf("%d %s", s.Replica, s.URL)),
			strconv.FormatInt(s.Requests.Completed, 10), strconv.FormatInt(s.Requests.Failed, 10),
			strconv.FormatInt(s.OutputTokens, 10),
			figure(s.TTFT.P50), marked(s.TTFT), figure(s.TPOT.P50), figure(s.E2E.P50), marked(s.E2E),
			rate(s.PrefixCache.Predicted), rate(s.PrefixCache.Observed),
		}
		if metrics {
			row = append(row, serverCells(&s)...)
		}
		cells = append(cells, row)
	}
	header := []string{
		"server", "completed", "failed", "output tokens", "TTFT p50", "TTFT p99", "TPOT p50", "E2E p50", "E2E p99", "hits predicted", "observed",
	}
	if metrics {
		header = append(header, "counted", "running", "waiting", "KV max")
	}
	p.line("")
	p.table(header, cells)
	p.line("")
}

// serverCells are what a server's metrics add to its row.
func serverCells(s *RunServer) []string {
	if s.Server == nil {
		return []string{absent, absent, absent, absent}
	}
	return []string{rate(s.PrefixCache.Counted), figure(s.Server.Running.Mean), figure(s.Server.Waiting.Mean), percent(s.Server.KVUsage.Max)}
}
