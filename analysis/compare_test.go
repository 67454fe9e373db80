package analysis

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"retrace/record"
)

// even is a run of n equal requests.
func even(n int, change func(*record.Result)) *RunReport {
	var list []record.Result
	for range n {
		r := completed(0, 100*ms, 10*ms, 21)
		change(&r)
		list = append(list, r)
	}
	return analyse(RunOptions{}, list...)
}

func same(*record.Result) {}

func TestCompare(t *testing.T) {
	base := even(10, same)
	for _, c := range []struct {
		name   string
		b      *RunReport
		work   bool
		ranked bool
		reason string
	}{
		{"the same", even(10, same), true, true, ""},
		{"faster", even(10, func(r *record.Result) { *r = completed(0, 50*ms, 5*ms, 21) }), true, true, ""},
		{"shorter prompts", even(10, func(r *record.Result) { r.PromptTokens = 90 }), false, false, "prompts differ: their mean is 100 and 90 tokens: different work"},
		{"longer answers", even(10, func(r *record.Result) { *r = completed(0, 100*ms, 10*ms, 42) }), false, false, "answers differ: their mean is 21 and 42 tokens: different work"},
		{"unknown lengths", even(10, func(r *record.Result) { r.PromptTokens, r.WantedInput = record.Unknown, record.Unknown }), false, false, "lengths of prompts are known of one run only"},
		{"fewer requests", even(9, same), false, false, "the runs had 10 and 9 requests: different work"},
		{"late", even(10, func(r *record.Result) { r.Scheduled -= 100 * ms; r.Granted = r.Scheduled }), true, false, "run B did not keep its schedule"},
		{"nothing", analyse(RunOptions{}), false, false, "run B sent nothing"},
	} {
		got := Compare(base, c.b)
		if got.SameWork != c.work || got.Ranked != c.ranked || c.reason != "" && !slices.Contains(got.Reasons, c.reason) {
			t.Errorf("%s: got same work %v, ranked %v, %q; want %v, %v, %q", c.name, got.SameWork, got.Ranked, got.Reasons, c.work, c.ranked, c.reason)
		}
	}
}

func TestCompareTable(t *testing.T) {
	fast := even(10, func(r *record.Result) { *r = completed(0, 50*ms, 5*ms, 21) })
	var table bytes.Buffer
	if err := Compare(even(10, same), fast).WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", table.Bytes())
	table.Reset()
	if err := Compare(even(10, same), even(9, same)).WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if s := table.String(); !strings.HasPrefix(s, "NOT RANKED") || strings.Contains(s, "%") {
		t.Errorf("runs that cannot be ranked are ranked:\n%s", s)
	}
	var js bytes.Buffer
	if err := Compare(even(10, same), fast).WriteJSON(&js); err != nil || !strings.Contains(js.String(), `"schema": "retrace.compare/1"`) {
		t.Errorf("got %v, %s", err, js.String())
	}
}

func TestCompareInterrupted(t *testing.T) {
	run := NewRun(RunOptions{})
	if err := run.AddHeader(record.Header{Kind: record.KindRecording}); err != nil {
		t.Fatal(err)
	}
	run.AddFooter(record.Footer{Interrupted: true}, true)
	if got := Compare(even(1, same), run.Report()); !slices.Contains(got.Reasons, "run B was interrupted") {
		t.Errorf("got %q", got.Reasons)
	}
}
