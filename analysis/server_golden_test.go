package analysis

import (
	"bytes"
	"testing"
	"time"

	"retrace/record"
)

// fullRun has what mixedRun lacks: servers with metrics, one of which is down,
// probes, retries, chunks of several tokens, answers of other lengths than asked
// for, and the server's own times.
func fullRun(t *testing.T) *RunReport {
	t.Helper()
	run := NewRun(RunOptions{})
	header := record.Header{Kind: record.KindRecording, Run: &record.Run{
		URLs: []string{"http://a:8000", "http://b:8000"}, Planned: 4, Load: record.Load{Retries: 2, ProbeRate: 1},
	}}
	if err := run.AddHeader(header); err != nil {
		t.Fatal(err)
	}
	first := completed(0, 100*ms, 20*ms, 11)
	first.WantedOutput, first.PredictedHit, first.CachedTokens, first.ReasoningTokens = 20, 32, 32, 4
	first.ServerQueue, first.ServerPrefill, first.ServerDecode = ms, 90*ms, 200*ms
	second := completed(time.Second, 200*ms, 40*ms, 3)
	second.CompletionTokens, second.WantedOutput, second.PredictedHit, second.CachedTokens = 9, 9, 48, 48
	second.Gaps[0].Tokens, second.Gaps[1].Tokens = 4, 4
	second.Tries, second.Attempts = []record.Try{{Sent: 0, Wait: ms, Status: 503, Class: record.ClassHTTP5xx}}, 2
	third, fourth := failed(2*time.Second, record.ClassConnect), failed(3*time.Second, record.ClassConnect)
	third.Replica, fourth.Replica = 1, 1
	probe := completed(1500*ms, 50*ms, 0, 1)
	probe.Mark = record.Probe
	for _, r := range []record.Result{first, second, third, fourth, probe} {
		run.Add(&r)
	}
	for _, s := range []record.Series{
		seriesOf("vllm:num_requests_running", "0", point{-0.1, 0}, point{1, 2}, point{2, 1}, point{3.1, 0}),
		seriesOf("vllm:num_requests_waiting", "0", point{-0.1, 0}, point{1, 1}, point{2, 0}, point{3.1, 0}),
		seriesOf("vllm:kv_cache_usage_perc", "0", point{-0.1, 0}, point{1, 0.5}, point{2, 0.125}, point{3.1, 0}),
		seriesOf("vllm:prefix_cache_queries_total", "0", point{-0.1, 1000}, point{1, 1100}, point{3.1, 1200}),
		seriesOf("vllm:prefix_cache_hits_total", "0", point{-0.1, 10}, point{1, 42}, point{3.1, 90}),
		seriesOf("vllm:num_preemptions_total", "0", point{-0.1, 0}, point{3.1, 1}),
	} {
		run.AddSeries(0, &s)
	}
	run.AddFooter(record.Footer{}, true)
	return run.Report()
}

func TestFullRunGolden(t *testing.T) {
	rep := fullRun(t)
	var table bytes.Buffer
	if err := rep.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	golden(t, "full.txt", table.Bytes())
	js, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "full.json", js)
}
