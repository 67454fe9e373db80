package analysis

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrace/record"
)

// point is one figure of one scrape, at a time in seconds.
type point struct {
	at    float64
	value float64
}

// seriesOf is a series of server 0, with a label of its own where one is given.
func seriesOf(name, label string, list ...point) record.Series {
	return seriesAt(0, name, label, list...)
}

func seriesAt(replica int, name, label string, list ...point) record.Series {
	s := record.Series{Name: name, Labels: map[string]string{record.ReplicaLabel: strconv.Itoa(replica)}}
	if label != "" {
		s.Labels["engine"] = label
	}
	for _, p := range list {
		s.Times = append(s.Times, time.Duration(p.at*float64(time.Second)))
		s.Values = append(s.Values, p.value)
	}
	return s
}

// served is a run of two requests, sent at 0.001 s and 2.001 s, the second of
// which ends at 3.001 s, with the given series.
func served(list ...record.Series) *RunReport {
	run := NewRun(RunOptions{})
	for _, r := range []record.Result{completed(0, ms, 0, 1), completed(2*time.Second, 999*ms, 0, 1)} {
		run.Add(&r)
	}
	for i := range list {
		run.AddSeries(0, &list[i])
	}
	return run.Report()
}

// TestServerMetrics: gauges count at 1 s, 2 s and 3 s, within the run; counters
// from the scrape before it to the one after it.
func TestServerMetrics(t *testing.T) {
	rep := served(
		seriesOf("vllm:num_requests_running", "0", point{-0.1, 9}, point{1, 1}, point{2, 2}, point{3, 6}, point{3.2, 9}),
		seriesOf("vllm:num_requests_waiting", "0", point{-0.1, 9}, point{1, 0}, point{2, 4}, point{3, 2}, point{3.2, 9}),
		seriesOf("vllm:kv_cache_usage_perc", "0", point{-0.1, 1}, point{1, 0.5}, point{2, 0.25}, point{3, 0.75}, point{3.2, 1}),
		seriesOf("vllm:prefix_cache_queries_total", "0", point{-0.1, 1000}, point{1, 1100}, point{3.2, 1400}),
		seriesOf("vllm:prefix_cache_hits_total", "0", point{-0.1, 500}, point{1, 500}, point{3.2, 600}),
		seriesOf("vllm:num_preemptions_total", "0", point{-0.1, 3}, point{3.2, 5}),
		seriesOf("unknown_total", "0", point{-0.1, 3}, point{3.2, 5}),
	)
	m := rep.Server
	if m == nil || m.Scrapes != 5 || m.Resets != 0 || m.PromptTokens.OK || m.GenerationTokens.OK {
		t.Fatalf("got %+v", m)
	}
	about(t, "running", m.Running.Mean, 3)
	about(t, "most running", m.Running.Max, 6)
	about(t, "waiting", m.Waiting.Mean, 2)
	about(t, "KV usage", m.KVUsage.Mean, 0.5)
	about(t, "preemptions", m.Preemptions, 2)
	about(t, "queries", m.Queries, 400)
	about(t, "hits", m.Hits, 100)
	about(t, "hit rate", m.HitRate, 0.25)
	about(t, "queries before", m.QueriesBefore, 1000)
	about(t, "hit rate of the run", rep.PrefixCache.Counted, 0.25)
	about(t, "hits of the run", rep.PrefixCache.CountedTokens, 100)
	silent(t, rep)
	rowOf(t, rep, "Server, by 5 scrapes of its metrics: 3 (max 6) running, 2 (max 4) waiting, KV cache 50.0 % in use (max 75.0 %), 2 preemptions", true)
	rowOf(t, rep, "– predicted (endless cache), – observed, 0.250000 by the server's counters", true)
}

// TestServerEngines: of two engines behind one server requests and counters add
// up, usage does not; a counter that the first scrape lacks began at 0.
func TestServerEngines(t *testing.T) {
	m := served(
		seriesOf("vllm:num_requests_running", "0", point{1, 1}, point{2, 2}),
		seriesOf("vllm:num_requests_running", "1", point{1, 3}, point{2, 6}),
		seriesOf("vllm:kv_cache_usage_perc", "0", point{1, 0.2}),
		seriesOf("vllm:kv_cache_usage_perc", "1", point{1, 0.4}),
		seriesOf("vllm:prompt_tokens_total", "0", point{-0.1, 10}, point{3.2, 25}),
		seriesOf("vllm:prompt_tokens_total", "1", point{1, 7}, point{3.2, 30}),
	).Server
	about(t, "running", m.Running.Mean, 6)
	about(t, "KV usage", m.KVUsage.Mean, 0.3)
	about(t, "prompt tokens", m.PromptTokens, 15+30)
}

// TestCounterReset: 100 before, 150, then 20 after a restart, 60 at the end: 50
// + 20 + 40.
func TestCounterReset(t *testing.T) {
	rep := served(seriesOf("vllm:generation_tokens_total", "", point{-0.1, 100}, point{1, 150}, point{2, 20}, point{3.2, 60}))
	about(t, "generation tokens", rep.Server.GenerationTokens, 110)
	if rep.Server.Resets != 1 {
		t.Errorf("%d resets", rep.Server.Resets)
	}
	warned(t, rep, "1 times a counter of a server fell")
}

// TestCounterBefore: what the counters did before the last scrape before the
// first send, a reset even, is not the run's.
func TestCounterBefore(t *testing.T) {
	rep := served(seriesOf("vllm:generation_tokens_total", "", point{-30, 100}, point{-20, 5}, point{-0.1, 50}, point{3.2, 60}))
	about(t, "generation tokens", rep.Server.GenerationTokens, 10)
	if rep.Server.Resets != 0 {
		t.Errorf("%d resets", rep.Server.Resets)
	}
}

// TestScrapedTooLate: a server that could not be read before the first send, and
// one that could not after the last end.
func TestScrapedTooLate(t *testing.T) {
	for _, s := range []record.Series{
		seriesOf("vllm:generation_tokens_total", "", point{1, 100}, point{3.2, 160}),
		seriesOf("vllm:generation_tokens_total", "", point{-0.1, 100}, point{2, 160}),
	} {
		rep := served(s)
		about(t, "generation tokens", rep.Server.GenerationTokens, 60)
		warned(t, rep, "the metrics of 1 of 1 servers were not read before the first send or after the last end")
	}
}

// TestTwoNames: vLLM had two names for one metric at a time.
func TestTwoNames(t *testing.T) {
	m := served(
		seriesOf("vllm:gpu_prefix_cache_hits_total", "", point{-0.1, 0}, point{3.2, 5}),
		seriesOf("vllm:prefix_cache_hits_total", "", point{-0.1, 0}, point{3.2, 7}),
	).Server
	about(t, "hits", m.Hits, 7)
	if m.HitRate.OK {
		t.Errorf("a hit rate without queries: %v", m.HitRate)
	}
}

// TestSGLang: its hits are of all prompt tokens, from several sources.
func TestSGLang(t *testing.T) {
	m := served(
		seriesOf("sglang:prompt_tokens_total", "", point{-0.1, 100}, point{3.2, 300}),
		seriesOf("sglang:cached_tokens_total", "device", point{-0.1, 10}, point{3.2, 40}),
		seriesOf("sglang:cached_tokens_total", "host", point{1, 20}, point{3.2, 20}),
	).Server
	about(t, "hit rate", m.HitRate, 50.0/200)
	about(t, "prompt tokens", m.PromptTokens, 200)
}

// TestWarmServer: counted hits beyond the predicted ones are told where usage
// does not tell.
func TestWarmServer(t *testing.T) {
	run := NewRun(RunOptions{})
	r := completed(0, 3*time.Second, 0, 1)
	r.PredictedHit = 10
	run.Add(&r)
	for _, s := range []record.Series{
		seriesOf("vllm:prefix_cache_queries_total", "", point{-0.1, 0}, point{3.2, 100}),
		seriesOf("vllm:prefix_cache_hits_total", "", point{-0.1, 0}, point{3.2, 50}),
	} {
		run.AddSeries(0, &s)
	}
	warned(t, run.Report(), "the hits that the server counted exceed the predicted ones (0.5000 > 0.1000)")
}

// TestServersApart: results, hits and metrics of two servers, one of which is
// down, and of a third that had no request.
func TestServersApart(t *testing.T) {
	run := NewRun(RunOptions{})
	h := record.Header{Kind: record.KindRecording, Run: &record.Run{URLs: []string{"http://a", "http://b", "http://c"}, Planned: 2}}
	if err := run.AddHeader(h); err != nil {
		t.Fatal(err)
	}
	a, b := completed(0, time.Second, 0, 1), failed(500*ms, record.ClassConnect)
	a.PredictedHit, a.CachedTokens, b.Replica = 32, 16, 1
	run.Add(&a)
	run.Add(&b)
	for _, s := range []record.Series{
		seriesAt(0, "vllm:prefix_cache_queries_total", "", point{-0.1, 0}, point{1.1, 100}),
		seriesAt(0, "vllm:prefix_cache_hits_total", "", point{-0.1, 0}, point{1.1, 16}),
		seriesAt(0, "vllm:num_requests_running", "", point{0.5, 1}),
		seriesAt(-1, "vllm:num_requests_running", "", point{0.5, 1}),
		seriesAt(1<<30, "vllm:num_requests_running", "", point{0.5, 1}),
	} {
		run.AddSeries(0, &s)
	}
	rep := run.Report()
	if len(rep.Replicas) != 3 {
		t.Fatalf("%d servers", len(rep.Replicas))
	}
	x, y, z := rep.Replicas[0], rep.Replicas[1], rep.Replicas[2]
	if x.InputTokens != 100 || x.CachedTokens.Sum != 16 || x.Server == nil || x.Requests.Completed != 1 || x.URL != "http://a" {
		t.Errorf("first %+v", x)
	}
	about(t, "predicted", x.PrefixCache.Predicted, 0.32)
	about(t, "observed", x.PrefixCache.Observed, 0.16)
	about(t, "counted", x.PrefixCache.Counted, 0.16)
	if y.Requests.Failed != 1 || y.Server != nil || y.TTFT.Count != 0 || z.Requests.Total != 0 || z.URL != "http://c" {
		t.Errorf("others %+v %+v", y, z)
	}
	rowOf(t, rep, "1 http://b          0       1              0         –         –         –        –        –               –         –         –        –        –       –", true)
}

// TestShardsSeeOneServer: the shards of a run ask the same servers, whose
// counters are not added up.
func TestShardsSeeOneServer(t *testing.T) {
	run := NewRun(RunOptions{})
	r := completed(0, 3*time.Second, 0, 1)
	run.Add(&r)
	few := seriesOf("vllm:generation_tokens_total", "", point{-0.1, 100}, point{3.2, 150})
	more := seriesOf("vllm:generation_tokens_total", "", point{-0.2, 100}, point{1, 120}, point{3.1, 160})
	run.AddSeries(1, &few)
	run.AddSeries(0, &more)
	about(t, "generation tokens", run.Report().Server.GenerationTokens, 60)
}

// TestSeriesInAnyPieces: a series may come in pieces and in any order.
func TestSeriesInAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1000), 2, 30).Draw(t, "values")
		order := rapid.Permutation(indices(len(values))).Draw(t, "order")
		whole := record.Series{Name: "vllm:generation_tokens_total", Labels: map[string]string{record.ReplicaLabel: "0"}}
		run, parts := NewRun(RunOptions{}), NewRun(RunOptions{})
		r := completed(0, 10*time.Second, 0, 1)
		run.Add(&r)
		parts.Add(&r)
		for i, v := range values {
			at := time.Duration(i)*time.Second - 500*ms // the first before the first send
			whole.Times, whole.Values = append(whole.Times, at), append(whole.Values, float64(v))
		}
		run.AddSeries(0, &whole)
		for _, i := range order {
			piece := whole
			piece.Times, piece.Values = whole.Times[i:i+1], whole.Values[i:i+1]
			parts.AddSeries(0, &piece)
		}
		a, b := run.Report().Server, parts.Report().Server
		if *a != *b {
			t.Errorf("whole %+v, in pieces %+v", a, b)
		}
		// By hand: growth from the value at -0.5 s, a fall being a restart at 0.
		want, resets := 0.0, int64(0)
		for i := 1; i < len(values); i++ {
			if d := values[i] - values[i-1]; d >= 0 {
				want += float64(d)
			} else {
				want, resets = want+float64(values[i]), resets+1
			}
		}
		if a.GenerationTokens != Some(want) || a.Resets != resets {
			t.Errorf("grew by %v with %d resets, want %v with %d", a.GenerationTokens, a.Resets, want, resets)
		}
	})
}

func indices(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestOddSeries: figures that are none, and a run that sent nothing.
func TestOddSeries(t *testing.T) {
	rep := served(seriesOf("vllm:num_requests_running", "", point{1, math.NaN()}, point{1.5, -1}, point{2, math.Inf(1)}, point{2.5, 1e300}, point{3, 2}))
	if m := rep.Server; m.Running.Count != 1 || m.Scrapes != 1 {
		t.Errorf("got %+v", m)
	}
	run := NewRun(RunOptions{})
	s := seriesOf("vllm:num_requests_running", "", point{1, 1})
	run.AddSeries(0, &s)
	rep = run.Report()
	if rep.Server != nil {
		t.Errorf("of a run that sent nothing: %+v", rep.Server)
	}
	if b, err := rep.JSON(); err != nil || !strings.Contains(string(b), `"server_metrics": null`) {
		t.Errorf("JSON %v", err)
	}
}
