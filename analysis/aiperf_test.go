package analysis

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"retrace/record"
)

const aiperfDir = "../../shared/data/aiperf"

// aiperfRow is one line of AIPerf's records.
type aiperfRow struct {
	Metadata struct {
		Timestamp int64 `json:"timestamp_ns"`
	} `json:"metadata"`
	Metrics map[string]struct {
		Value json.RawMessage `json:"value"`
	} `json:"metrics"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}

func (r *aiperfRow) number(t *testing.T, name string) float64 {
	t.Helper()
	var v float64
	if err := json.Unmarshal(r.Metrics[name].Value, &v); err != nil {
		t.Fatalf("metric %s: %v", name, err)
	}
	return v
}

// aiperfSummary is one metric of AIPerf's own summary.
type aiperfSummary struct {
	Avg   float64  `json:"avg"`
	Min   *float64 `json:"min"`
	Max   *float64 `json:"max"`
	P50   *float64 `json:"p50"`
	P90   *float64 `json:"p90"`
	P95   *float64 `json:"p95"`
	P99   *float64 `json:"p99"`
	Std   *float64 `json:"std"`
	Count int64    `json:"count"`
}

// readAIPerf reads a recording of another tool and its own summary: 100
// requests, 89 of which were answered.
func readAIPerf(t *testing.T) ([]aiperfRow, map[string]aiperfSummary) {
	t.Helper()
	f, err := os.Open(filepath.Join(aiperfDir, "aiperf_run1_profile_export.jsonl"))
	if err != nil {
		t.Skipf("the AIPerf recording is not here: %v", err)
	}
	defer f.Close()
	var rows []aiperfRow
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r aiperfRow
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	b, err := os.ReadFile(filepath.Join(aiperfDir, "aiperf_run1_profile_export_aiperf.json"))
	if err != nil {
		t.Fatal(err)
	}
	var summary struct {
		Records map[string]aiperfSummary `json:"records"`
	}
	if err := json.Unmarshal(b, &summary); err != nil {
		t.Fatal(err)
	}
	return rows, summary.Records
}

func checkAIPerf(t *testing.T, name string, got Stats, want aiperfSummary, tolerance float64) {
	t.Helper()
	if got.Count != want.Count {
		t.Errorf("%s: got %d values, want %d", name, got.Count, want.Count)
	}
	for _, f := range []struct {
		what string
		got  Value
		want *float64
	}{
		{"mean", got.Mean, &want.Avg}, {"std", got.Std, want.Std}, {"min", got.Min, want.Min}, {"max", got.Max, want.Max},
		{"p50", got.P50, want.P50}, {"p90", got.P90, want.P90}, {"p95", got.P95, want.P95}, {"p99", got.P99, want.P99},
	} {
		if !f.got.OK || math.Abs(f.got.V-*f.want) > tolerance*max(1, math.Abs(*f.want)) {
			t.Errorf("%s, %s: got %v, want %v", name, f.what, f.got.V, *f.want)
		}
	}
}

// TestAIPerfStatistics computes AIPerf's summary from its records: linear
// interpolation between closest ranks, standard deviation of the population.
func TestAIPerfStatistics(t *testing.T) {
	rows, want := readAIPerf(t)
	for _, name := range []string{
		"ttft", "ttst", "request_latency", "inter_token_latency", "output_token_throughput_per_user",
		"output_sequence_length", "reasoning_token_count",
	} {
		var s Sample
		for i := range rows {
			if rows[i].Error == nil {
				s.Add(rows[i].number(t, name))
			}
		}
		checkAIPerf(t, name, s.Stats(), want[name], 1e-12)
	}
	var gaps Sample
	for i := range rows {
		var list []float64
		if err := json.Unmarshal(rows[i].Metrics["inter_chunk_latency"].Value, &list); err != nil && rows[i].Error == nil {
			t.Fatal(err)
		}
		for _, g := range list {
			gaps.Add(g)
		}
	}
	checkAIPerf(t, "inter_chunk_latency", gaps.Stats(), want["inter_chunk_latency"], 1e-12)
}

// TestAIPerfRun analyses the same requests as a run of ours, whose times are
// cut to microseconds: AIPerf's inter-token latency is our TPOT, its
// inter-chunk latency our ITL, and only completed requests make throughput.
func TestAIPerfRun(t *testing.T) {
	rows, want := readAIPerf(t)
	run := NewRun(RunOptions{})
	origin := rows[0].Metadata.Timestamp
	for i := range rows {
		r := &rows[i]
		res := record.NewResult()
		res.Sent = time.Duration(r.Metadata.Timestamp - origin)
		res.Scheduled, res.Granted = res.Sent, res.Sent
		if r.Error != nil {
			res.State, res.Class = record.Failed, record.ClassTimeout
			run.Add(&res)
			continue
		}
		res.State = record.Completed
		ms := func(name string) time.Duration { return time.Duration(r.number(t, name) * 1e6) }
		res.FirstOutput, res.LastOutput = res.Sent+ms("ttft"), res.Sent+ms("request_latency")
		res.CompletionTokens = int64(r.number(t, "output_sequence_length"))
		res.PromptTokens = int64(r.number(t, "input_sequence_length"))
		var gaps []float64
		if err := json.Unmarshal(r.Metrics["inter_chunk_latency"].Value, &gaps); err != nil {
			t.Fatal(err)
		}
		for _, g := range gaps {
			res.Gaps = append(res.Gaps, record.Gap{Wait: time.Duration(g * 1e6)})
		}
		run.Add(&res)
	}
	rep := run.Report()
	const cut = 2e-3 // ms: two offsets are cut to microseconds
	checkAIPerf(t, "ttft", rep.TTFT, want["ttft"], cut)
	checkAIPerf(t, "request_latency", rep.E2E, want["request_latency"], cut)
	checkAIPerf(t, "inter_token_latency", rep.TPOT, want["inter_token_latency"], cut)
	checkAIPerf(t, "inter_chunk_latency", rep.ITL, want["inter_chunk_latency"], cut)
	checkAIPerf(t, "output_sequence_length", rep.OutputTokens, want["output_sequence_length"], 1e-12)
	for _, c := range []struct {
		name string
		got  Value
	}{
		{"request_throughput", rep.Throughput.Requests},
		{"output_token_throughput", rep.Throughput.OutputTokens},
		{"benchmark_duration", rep.DurationS},
	} {
		if w := want[c.name].Avg; math.Abs(c.got.V-w) > 1e-6*w {
			t.Errorf("%s: got %v, want %v", c.name, c.got.V, w)
		}
	}
	if q := rep.Requests; q.Completed != 89 || q.Failed != 11 || q.Total != 100 {
		t.Errorf("requests: got %+v, want 89 completed and 11 failed of 100", q)
	}
	if rep.Tokens.Output.Sum != int64(want["total_osl"].Avg) || rep.Tokens.Input.Sum != int64(want["total_isl"].Avg) {
		t.Errorf("tokens: got %+v", rep.Tokens)
	}
}
