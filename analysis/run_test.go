package analysis

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrace/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const ms = time.Millisecond

// completed is a request that was due at the given time, left a millisecond
// late, brought its first output after ttft and n outputs in all, gap apart.
func completed(due, ttft, gap time.Duration, n int) record.Result {
	r := record.NewResult()
	r.State, r.Status = record.Completed, 200
	r.Scheduled, r.Granted, r.Sent = due, due, due+ms
	r.FirstByte, r.FirstOutput = r.Sent+ttft, r.Sent+ttft
	r.LastOutput = r.FirstOutput + time.Duration(n-1)*gap
	r.End = r.LastOutput + ms
	for range n - 1 {
		r.Gaps = append(r.Gaps, record.Gap{Wait: gap, Tokens: 1})
	}
	r.WantedInput, r.PromptTokens = 100, 100
	r.CompletionTokens, r.CountedOutput = int64(n), int64(n)
	return r
}

func failed(due time.Duration, class string) record.Result {
	r := record.NewResult()
	r.State, r.Class = record.Failed, class
	r.Scheduled, r.Granted, r.Sent = due, due, due+ms
	return r
}

func analyse(opts RunOptions, results ...record.Result) *RunReport {
	run := NewRun(opts)
	for i := range results {
		run.Add(&results[i])
	}
	return run.Report()
}

// mixedRun has every state, several classes, marks and two servers.
func mixedRun() []record.Result {
	list := []record.Result{
		completed(0, 100*ms, 20*ms, 11),
		completed(1000*ms, 200*ms, 30*ms, 5),
		completed(2000*ms, 150*ms, 25*ms, 1),
		failed(2500*ms, record.ClassHTTP5xx),
		failed(2600*ms, record.ClassTimeout),
		failed(2700*ms, record.ClassHTTP5xx),
	}
	for i := range list[:3] {
		list[i].CachedTokens, list[i].PredictedHit = 16*int64(i), 32*int64(i)
	}
	list[1].Replica = 1
	cut := record.NewResult()
	cut.State, cut.Scheduled, cut.Granted, cut.Sent = record.Cancelled, 3000*ms, 3005*ms, 3007*ms
	unsent := record.NewResult()
	unsent.State, unsent.Reason, unsent.Scheduled = record.NotSent, "max_in_flight", 3100*ms
	probe := completed(-500*ms, 9000*ms, 900*ms, 50)
	probe.Mark = record.Overhead
	warm := completed(-400*ms, 9000*ms, 900*ms, 50)
	warm.Mark = record.WarmUp
	return append(list, cut, unsent, probe, warm)
}

func recordingHeader() record.Header {
	return record.Header{Kind: record.KindRecording, RunID: "r1", Run: &record.Run{
		URLs: []string{"http://a:8000", "http://b:8000"}, MaxLag: 10 * ms, Planned: 8,
	}}
}

func mixedReport(t *testing.T) *RunReport {
	t.Helper()
	run := NewRun(RunOptions{SLO: &SLO{TTFT: 160 * ms, TPOT: 30 * ms}})
	if err := run.AddHeader(recordingHeader()); err != nil {
		t.Fatal(err)
	}
	list := mixedRun()
	for i := range list {
		run.Add(&list[i])
	}
	run.AddFooter(record.Footer{Interrupted: true, Notes: []string{"the server went away"}}, true)
	return run.Report()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestRunGolden(t *testing.T) {
	rep := mixedReport(t)
	b, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "run.json", b)
	var table bytes.Buffer
	if err := rep.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	golden(t, "run.txt", table.Bytes())
}

// TestRunByHand checks the golden run's figures against sums done by hand.
func TestRunByHand(t *testing.T) {
	rep := mixedReport(t)
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"requests", rep.Requests, RunRequests{Total: 8, Completed: 3, Failed: 3, Cancelled: 1, NotSent: 1}},
		{"errors", rep.Errors, map[string]int64{"http_5xx": 2, "timeout": 1}},
		// First send at 1 ms; last output of the third at 2001 + 150 ms.
		{"duration", rep.DurationS, Some(2.15)},
		{"input", rep.Tokens.Input.Sum, int64(300)},
		{"output", rep.Tokens.Output.Sum, int64(11 + 5 + 1)},
		{"cached", rep.Tokens.Cached.Sum, int64(0 + 16 + 32)},
		{"requests/s", rep.Throughput.Requests, Some(3 / 2.15)},
		{"output tokens/s", rep.Throughput.OutputTokens, Some(17 / 2.15)},
		{"tokens/s", rep.Throughput.TotalTokens, Some(317 / 2.15)},
		// Sent: 3 completed, 3 failed, 1 cancelled; lags 1 ms six times, and
		// 3007 - 3005 = 2 ms; one waited 5 ms for its slot.
		{"lag n", rep.ScheduleLag.Count, int64(7)},
		{"lag max", rep.ScheduleLag.Max, Some(2)},
		{"queue max", rep.Queue.Max, Some(5)},
		{"ttft n", rep.TTFT.Count, int64(3)},
		{"ttft mean", rep.TTFT.Mean, Some(150)},
		{"ttft from schedule", rep.TTFTScheduled.Mean, Some(151)},
		// M01: the answer of one token has no TPOT and no gap.
		{"tpot n", rep.TPOT.Count, int64(2)},
		{"tpot mean", rep.TPOT.Mean, Some(25)},
		{"itl n", rep.ITL.Count, int64(10 + 4)},
		// 100 + 10·20, 200 + 4·30, 150.
		{"e2e max", rep.E2E.Max, Some(320)},
		{"e2e min", rep.E2E.Min, Some(150)},
		// Good: the first (100 ms, 20 ms) and the third (150 ms, no TPOT).
		{"good", rep.Goodput.Good, int64(2)},
		{"goodput", rep.Goodput.Requests, Some(2 / 2.15)},
		{"good share", rep.Goodput.Share, Some(0.25)},
		{"predicted", rep.PrefixCache.Predicted, Some(96.0 / 300)},
		{"observed", rep.PrefixCache.Observed, Some(48.0 / 300)},
		{"marks", rep.BeyondTrace, RunMarked{Overhead: 1, WarmUp: 1}},
		{"not sent", rep.NotSent, counts{"max_in_flight": 1}},
		{"failure rate", rep.FailureRate, Some(3.0 / 8)},
		{"kept", *rep.ScheduleKept, true},
	} {
		if d := cmp.Diff(c.want, c.got, near); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// runKeys is the order of the keys in the contract.
var runKeys = []string{
	"schema", "requests", "errors", "duration_s", "tokens", "throughput", "schedule_kept", "schedule_lag_ms", "queue_ms",
	"ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "ttft_scheduled_ms", "e2e_scheduled_ms", "output_tokens_per_request",
	"goodput", "prefix_cache",
	// Beyond the contract.
	"input_tokens_per_request", "failure_rate", "not_sent_reasons", "beyond_trace", "interrupted", "max_lag_ms", "replicas",
	"warnings", "planned",
}

// TestEmptyRuns: M02 and M03. Nothing, and nothing but failures, is a valid
// report with n = 0 and nulls.
func TestEmptyRuns(t *testing.T) {
	for name, rep := range map[string]*RunReport{
		"no requests": analyse(RunOptions{}),
		"all failed":  analyse(RunOptions{}, failed(0, record.ClassConnect), failed(ms, record.ClassConnect)),
	} {
		b, err := rep.JSON()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, key := range []string{"duration_s", "goodput"} {
			if string(m[key]) != "null" {
				t.Errorf("%s: %s is %s, want null", name, key, m[key])
			}
		}
		var ttft Stats
		if err := json.Unmarshal(m["ttft_ms"], &ttft); err != nil || ttft != (Stats{}) {
			t.Errorf("%s: ttft_ms is %s", name, m["ttft_ms"])
		}
		if err := rep.WriteTable(&bytes.Buffer{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	rep := analyse(RunOptions{})
	if rep.ScheduleKept != nil {
		t.Error("a schedule of nothing is neither kept nor broken")
	}
}

func TestRunKeyOrder(t *testing.T) {
	b, err := mixedReport(t).JSON()
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, key := range runKeys {
		at := bytes.Index(b, []byte("\n  \""+key+"\":"))
		if at <= last {
			t.Errorf("key %s is missing or out of order", key)
		}
		last = at
	}
}

// TestSingleOutput: one output at one moment has no throughput to speak of
// where the run has no duration, and never a NaN.
func TestSingleOutput(t *testing.T) {
	r := completed(0, 0, 0, 1)
	rep := analyse(RunOptions{}, r)
	if rep.DurationS != Some(0) || rep.Throughput.Requests.OK {
		t.Errorf("got a duration of %v and a throughput of %v", rep.DurationS, rep.Throughput.Requests)
	}
}

// TestNoUsage: M04. Without usage the output is what came here, never what was
// asked for; the report says so.
func TestNoUsage(t *testing.T) {
	r := completed(0, 10*ms, 10*ms, 12)
	r.WantedOutput, r.CompletionTokens, r.PromptTokens = 500, record.Unknown, record.Unknown
	rep := analyse(RunOptions{}, r)
	if rep.Tokens.Output.Sum != 12 || rep.Tokens.Input.Sum != 100 {
		t.Errorf("tokens: got %+v, want 12 out and 100 in", rep.Tokens)
	}
	if rep.PrefixCache.Observed.OK || rep.Tokens.Cached.Known != 0 {
		t.Error("cached tokens that nobody reported are not null")
	}
	warned(t, rep, "output tokens of 1 of 1 request are counted here", "input tokens of 1 of 1 request are the trace's")
}

// TestCountsDiffer: M05. Both counts are kept and more than 5 % is flagged.
func TestCountsDiffer(t *testing.T) {
	r := completed(0, 10*ms, 10*ms, 100)
	r.CountedOutput = 94
	warned(t, analyse(RunOptions{}, r), "the server counted 100 output tokens, here came 94 chunks (-6.0 %)")
	r.CountedOutput = 95
	silent(t, analyse(RunOptions{}, r))
	flat := completed(0, 10*ms, 0, 3)
	warned(t, analyse(RunOptions{}, flat), "a TPOT of 0")
}

// TestRefusals: M06. A server that refuses half is shown to.
func TestRefusals(t *testing.T) {
	var a, b []record.Result
	for range 10 {
		a = append(a, completed(0, 100*ms, 100*ms, 100))
	}
	for range 5 {
		b = append(b, completed(0, 100*ms, 50*ms, 100), failed(0, record.ClassHTTP5xx))
	}
	x, y := analyse(RunOptions{}, a...), analyse(RunOptions{}, b...)
	warned(t, y, "5 of 10 requests failed")
	c := Compare(x, y)
	if c.Ranked || !strings.Contains(strings.Join(c.Reasons, "\n"), "failure rates differ: 0.0 % of 10 and 50.0 % of 10") {
		t.Errorf("a comparison with different failure rates: ranked %v, %q", c.Ranked, c.Reasons)
	}
}

// TestQueueing: M07. Eight requests at 10/s, 500 ms each, one at a time: from
// the send the mean is 0.5 s; the k-th ends at 0.5(k+1) s and was due at
// 0.1k s, so from the schedule the mean is 0.5 + 0.4·3.5 = 1.9 s.
func TestQueueing(t *testing.T) {
	var list []record.Result
	for k := range 8 {
		r := completed(time.Duration(k)*100*ms, 0, 0, 1)
		r.Granted = time.Duration(k) * 500 * ms
		r.Sent = r.Granted
		r.FirstOutput = r.Sent + 500*ms
		r.LastOutput = r.FirstOutput
		list = append(list, r)
	}
	rep := analyse(RunOptions{}, list...)
	for name, v := range map[string][2]Value{
		"ttft": {rep.TTFT.Mean, Some(500)}, "e2e": {rep.E2E.Mean, Some(500)},
		"e2e from schedule": {rep.E2EScheduled.Mean, Some(1900)}, "queue": {rep.Queue.Mean, Some(1400)},
		"lag": {rep.ScheduleLag.Max, Some(0)},
	} {
		if d := cmp.Diff(v[1], v[0], near); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestScheduleNotKept(t *testing.T) {
	r := completed(0, 10*ms, 10*ms, 3)
	r.Sent += 10 * ms // 11 ms late
	rep := analyse(RunOptions{}, r)
	if *rep.ScheduleKept {
		t.Error("11 ms late are within the default of 10 ms")
	}
	var table bytes.Buffer
	if err := rep.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(table.String(), "\n"); !strings.HasPrefix(first, "Schedule NOT KEPT (n=1): ") {
		t.Errorf("first line: %s", first)
	}
	if rep := analyse(RunOptions{MaxLag: 11 * ms}, r); !*rep.ScheduleKept {
		t.Error("11 ms late are beyond 11 ms")
	}
}

// TestTablesOfNothing: where nothing was completed there is no table of dashes,
// and what was sent is told from what met no server.
func TestTablesOfNothing(t *testing.T) {
	unconnected := failed(0, record.ClassConnect)
	unconnected.Sent = record.NoTime
	unsent := record.NewResult()
	unsent.State, unsent.Reason = record.NotSent, "interrupted"
	for _, c := range []struct {
		name   string
		result record.Result
		want   string
		table  string
	}{
		{"server down", unconnected, "Schedule: no request reached a connection", ""},
		{"not sent", unsent, "Schedule: nothing was sent", ""},
		{"refused", failed(0, record.ClassHTTP5xx), "Schedule kept: ", "send lag, ms"},
	} {
		var table bytes.Buffer
		if err := analyse(RunOptions{}, c.result).WriteTable(&table); err != nil {
			t.Fatal(err)
		}
		text := table.String()
		if !strings.HasPrefix(text, c.want) {
			t.Errorf("%s: got %.80s, want %s", c.name, text, c.want)
		}
		if c.table == "" && strings.Contains(text, "TTFT") || strings.Contains(text, absent) || !strings.Contains(text, c.table) {
			t.Errorf("%s: got\n%s", c.name, text)
		}
	}
}

func TestPrefixRates(t *testing.T) {
	a, b := completed(0, ms, ms, 2), completed(0, ms, ms, 2)
	a.CachedTokens, a.PredictedHit = 60, 50
	b.PredictedHit = 100 // of which the server says nothing
	rep := analyse(RunOptions{}, a, b)
	if rep.PrefixCache != (RunPrefix{Predicted: Some(0.5), Observed: Some(0.6), PredictedTokens: Some(50), ObservedTokens: Some(60)}) {
		t.Errorf("got %+v, want both rates over the first request", rep.PrefixCache)
	}
	warned(t, rep, "observed hits exceed the predicted ones", "cached tokens are known of 1 of 2")
	a.CachedTokens = record.Unknown
	rep = analyse(RunOptions{}, a, b)
	if rep.PrefixCache != (RunPrefix{Predicted: Some(0.75), PredictedTokens: Some(150)}) {
		t.Errorf("got %+v, want the predicted rate over both", rep.PrefixCache)
	}
}

// TestHitsBelow: fewer hits than predicted have a second reason beside eviction
// where requests are missing whose prefixes were to be hit.
func TestHitsBelow(t *testing.T) {
	a := completed(0, ms, ms, 2)
	a.CachedTokens, a.PredictedHit = 40, 50
	b := completed(0, ms, ms, 2)
	b.State, b.Class = record.Failed, record.ClassHTTP429
	silent(t, analyse(RunOptions{}, a))
	warned(t, analyse(RunOptions{}, a, b), "observed hits are below the predicted ones (0.4000 < 0.5000): these count on the prefixes of all planned requests, of which 1 were not completed")
	a.CachedTokens = 50
	if all := strings.Join(analyse(RunOptions{}, a, b).Warnings, "; "); strings.Contains(all, "hits") {
		t.Errorf("a word on hits that are as predicted: %s", all)
	}
}

func warned(t *testing.T, rep *RunReport, parts ...string) {
	t.Helper()
	all := strings.Join(rep.Warnings, "\n")
	for _, p := range parts {
		if !strings.Contains(all, p) {
			t.Errorf("no warning says %q; got:\n%s", p, all)
		}
	}
}

func silent(t *testing.T, rep *RunReport) {
	t.Helper()
	if len(rep.Warnings) > 0 {
		t.Errorf("unexpected warnings: %q", rep.Warnings)
	}
}

func TestWriteErrorsAreReported(t *testing.T) {
	for _, write := range []func(*RunReport) error{
		func(r *RunReport) error { return r.WriteTable(brokenPipe{}) },
		func(r *RunReport) error { return r.WriteJSON(brokenPipe{}) },
	} {
		if err := write(mixedReport(t)); err == nil {
			t.Error("a report that cannot be written is no error")
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }
