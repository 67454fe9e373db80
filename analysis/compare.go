package analysis

import (
	"fmt"
	"io"
	"math"

	"retrace/internal/plural"
)

// CompareSchema names the JSON form of a Comparison.
const CompareSchema = "retrace.compare/1"

// The limits beyond which two runs are not comparable.
const (
	// sameWork is the relative difference of the mean, p50, p90 or p99 of the
	// prompts' or the answers' lengths beyond which two runs did different work.
	sameWork = 0.02
	// sameFailures is the difference of failure rates, as a share of all
	// requests, beyond which latencies and throughput rank nothing: a server
	// that refuses requests looks fast on those that it takes.
	sameFailures = 0.01
)

// Comparison sets two runs side by side.
type Comparison struct {
	Schema string `json:"schema"`
	// SameWork says that prompts and answers had the same lengths, within 2 %.
	SameWork bool `json:"same_work"`
	// Ranked says that the runs may be ranked: the same work, failure rates
	// within one percentage point, and both schedules kept.
	Ranked bool `json:"ranked"`
	// Reasons say why not.
	Reasons []string     `json:"reasons"`
	Rows    []CompareRow `json:"metrics"`
}

// CompareRow is one figure of two runs.
type CompareRow struct {
	Metric string `json:"metric"`
	A      Value  `json:"a"`
	B      Value  `json:"b"`
	// Change is (B-A)/A.
	Change Value `json:"change"`
}

// Compare sets two runs side by side, first whether that makes sense.
func Compare(a, b *RunReport) *Comparison {
	c := &Comparison{Schema: CompareSchema, Reasons: []string{}}
	c.work("prompts", a.InputTokens, b.InputTokens)
	c.work("answers", a.OutputTokens, b.OutputTokens)
	if a.Requests.Total != b.Requests.Total {
		c.reason("the runs had %d and %s: different work", a.Requests.Total, plural.Of(b.Requests.Total, "request"))
	}
	c.SameWork = len(c.Reasons) == 0
	c.failures(a, b)
	for i, r := range []*RunReport{a, b} {
		switch {
		case r.ScheduleKept == nil:
			c.reason("run %c sent nothing", 'A'+i)
		case !*r.ScheduleKept:
			c.reason("run %c did not keep its schedule", 'A'+i)
		}
		if r.Interrupted {
			c.reason("run %c was interrupted", 'A'+i)
		}
	}
	c.Ranked = len(c.Reasons) == 0
	c.rows(a, b)
	return c
}

func (c *Comparison) reason(format string, args ...any) {
	c.Reasons = append(c.Reasons, fmt.Sprintf(format, args...))
}

// work compares two distributions of lengths.
func (c *Comparison) work(what string, a, b Stats) {
	for _, f := range []struct {
		name string
		a, b Value
	}{{"mean", a.Mean, b.Mean}, {"p50", a.P50, b.P50}, {"p90", a.P90, b.P90}, {"p99", a.P99, b.P99}} {
		if f.a.OK != f.b.OK {
			c.reason("lengths of %s are known of one run only", what)
			return
		}
		if math.Abs(f.a.V-f.b.V) > sameWork*max(math.Abs(f.a.V), math.Abs(f.b.V)) {
			c.reason("%s differ: their %s is %s and %s tokens: different work", what, f.name, figure(f.a), figure(f.b))
			return
		}
	}
}

func (c *Comparison) failures(a, b *RunReport) {
	if math.Abs(a.FailureRate.V-b.FailureRate.V) > sameFailures {
		c.reason("failure rates differ: %s of %d and %s of %s failed", percent(a.FailureRate), a.Requests.Total,
			percent(b.FailureRate), plural.Of(b.Requests.Total, "request"))
	}
}

func (c *Comparison) rows(a, b *RunReport) {
	add := func(name string, get func(*RunReport) Value) {
		row := CompareRow{Metric: name, A: get(a), B: get(b)}
		if row.A.OK && row.B.OK {
			row.Change = Ratio(row.B.V-row.A.V, row.A.V)
		}
		c.Rows = append(c.Rows, row)
	}
	add("requests", func(r *RunReport) Value { return Some(float64(r.Requests.Total)) })
	add("failure rate", func(r *RunReport) Value { return r.FailureRate })
	add("prompt tokens, mean", func(r *RunReport) Value { return r.InputTokens.Mean })
	add("output tokens, mean", func(r *RunReport) Value { return r.OutputTokens.Mean })
	add("requests/s", func(r *RunReport) Value { return r.Throughput.Requests })
	add("output tokens/s", func(r *RunReport) Value { return r.Throughput.OutputTokens })
	add("requests/s, steady window", func(r *RunReport) Value {
		if r.Steady == nil {
			return Value{}
		}
		return r.Steady.Requests
	})
	add("observed hit rate", func(r *RunReport) Value { return r.PrefixCache.Observed })
	add("hit rate by the server's counters", func(r *RunReport) Value { return r.PrefixCache.Counted })
	for _, m := range []struct {
		name string
		get  func(*RunReport) Stats
	}{
		{"TTFT, ms", func(r *RunReport) Stats { return r.TTFT }},
		{"TPOT, ms", func(r *RunReport) Stats { return r.TPOT }},
		{"ITL, ms", func(r *RunReport) Stats { return r.ITL }},
		{"E2E, ms", func(r *RunReport) Stats { return r.E2E }},
		{"TTFT from schedule, ms", func(r *RunReport) Stats { return r.TTFTScheduled }},
		{"E2E from schedule, ms", func(r *RunReport) Stats { return r.E2EScheduled }},
	} {
		add(m.name+", mean", func(r *RunReport) Value { return m.get(r).Mean })
		add(m.name+", p50", func(r *RunReport) Value { return m.get(r).P50 })
		add(m.name+", p99", func(r *RunReport) Value { return m.get(r).P99 })
	}
}

// WriteTable writes the comparison for people.
func (c *Comparison) WriteTable(w io.Writer) error {
	p := &report{w: w}
	if c.Ranked {
		p.line("Comparable: the same work, failure rates alike, both schedules kept")
	} else {
		p.line("NOT RANKED: these runs are not comparable")
	}
	for _, r := range c.Reasons {
		p.line("  - %s", r)
	}
	p.line("")
	header := []string{"metric", "A", "B"}
	if c.Ranked {
		header = append(header, "B against A")
	}
	var rows [][]string
	for _, r := range c.Rows {
		row := []string{r.Metric, figure(r.A), figure(r.B)}
		if c.Ranked {
			row = append(row, change(r.Change))
		}
		rows = append(rows, row)
	}
	p.table(header, rows)
	return p.end("comparison")
}

func change(v Value) string {
	if x, ok := v.Get(); ok {
		return fmt.Sprintf("%+.1f %%", 100*x)
	}
	return absent
}

// WriteJSON writes the comparison as indented JSON with a final newline.
func (c *Comparison) WriteJSON(w io.Writer) error { return writeJSON(w, c) }
