package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrace/analysis"
	"retrace/record"
)

// TestRecordingGivesTheSummary: the analysis of a recording, servers' metrics,
// probes and warm-up included, is the run's own summary to the last digit.
func TestRecordingGivesTheSummary(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "run.rec")
	code, live, errs := replayHere(t, "testdata/chains.jsonl", "--url", sim, "--url", sim, "-o", rec, "--json", "--max-lag", "10s",
		"--metrics-interval", "100ms", "--warmup-requests", "3", "--probe-rate", "20", "--retries", "1")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // opened to read
	run := analysis.NewRun(analysis.RunOptions{})
	if err := run.AddHeader(r.Header()); err != nil {
		t.Fatal(err)
	}
	for res, err := range r.Results() {
		if err != nil {
			t.Fatal(err)
		}
		run.Add(&res)
	}
	points := 0
	for s, err := range r.Series() {
		if err != nil {
			t.Fatal(err)
		}
		points += len(s.Times)
		run.AddSeries(0, &s)
	}
	footer, ok := r.Footer()
	run.AddFooter(footer, ok)
	rep := run.Report()
	b, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(live, string(b)); d != "" {
		t.Errorf("live summary and recording differ (-live +recording):\n%s", d)
	}
	c := rep.PrefixCache
	if points == 0 || rep.Server == nil || rep.Probes == nil || rep.WarmUp == nil || rep.Retries == nil || len(rep.Replicas) != 2 {
		t.Errorf("%d points, server %+v, probes %+v, warm-up %+v", points, rep.Server, rep.Probes, rep.WarmUp)
	}
	if !c.Predicted.OK || c.PredictedTokens != c.ObservedTokens {
		t.Errorf("predicted %v, observed %v", c.PredictedTokens, c.ObservedTokens)
	}
}
