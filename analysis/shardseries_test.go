package analysis

import (
	"strings"
	"testing"
	"time"

	"retrace/record"
)

// halves is a run in two shards: the first sends at 0.001 s and ends at 1.001 s,
// the second, which began so much later, sends at 2.001 s and ends at 3.001 s.
func halves(t *testing.T, later time.Duration, first, second record.Series) *RunReport {
	t.Helper()
	run := NewRun(RunOptions{})
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, s := range []record.Series{first, second} {
		h := record.Header{Kind: record.KindRecording, RunID: "r", Run: &record.Run{Shard: i, Shards: 2, Start: start.Add(time.Duration(i) * later)}}
		if err := run.AddHeader(h); err != nil {
			t.Fatal(err)
		}
		r := completed(time.Duration(i)*2*time.Second, 999*ms, 0, 1)
		r.Shard, r.CachedTokens, r.PredictedHit = i, 60, 50
		run.Add(&r)
		run.AddSeries(i, &s)
	}
	return run.Report()
}

const generated = "vllm:generation_tokens_total"

// TestShardsLookOn: the shard that looked at the server most often was done
// first; what the server counted after its last look is the other's. 100 before,
// 130 at 1.2 s, 160 at 3.2 s are 60. At 1.24 s the clocks may differ: 129 is no
// restart.
func TestShardsLookOn(t *testing.T) {
	often := seriesOf(generated, "", point{-0.1, 100}, point{0.5, 110}, point{1, 120}, point{1.2, 130})
	rep := halves(t, 0, often, seriesOf(generated, "", point{-0.1, 100}, point{1.24, 129}, point{3.2, 160}))
	about(t, "generation tokens", rep.Server.GenerationTokens, 60)
	if m := rep.Server; m.Resets != 0 || m.Scrapes != 5 {
		t.Errorf("got %d resets, %d scrapes, want 0 and 4 + 1", m.Resets, m.Scrapes)
	}
	if all := strings.Join(rep.Warnings, "; "); strings.Contains(all, "were not read") {
		t.Errorf("counters of the whole run are said to lack a part: %s", all)
	}

	// Where the second began 2 s later, its 1.2 s are the first one's 3.2 s.
	rep = halves(t, 2*time.Second, often, seriesOf(generated, "", point{-0.1, 140}, point{1.2, 160}))
	about(t, "generation tokens", rep.Server.GenerationTokens, 60)

	// One after another, they have no time in common.
	rep = halves(t, time.Hour, often, seriesOf(generated, "", point{-0.1, 500}, point{3.2, 560}))
	about(t, "generation tokens", rep.Server.GenerationTokens, 30)
	warned(t, rep, "the metrics of 1 of 1 servers were not read")

	// The one that looked most often looked to the end.
	rep = halves(t, 0, seriesOf(generated, "", point{-0.1, 100}, point{1.2, 130}), seriesOf(generated, "", point{-0.1, 100}, point{1.3, 131}, point{3.2, 160}))
	about(t, "generation tokens", rep.Server.GenerationTokens, 60)
	if rep.Server.Scrapes != 3 {
		t.Errorf("got %d scrapes, want one shard's 3", rep.Server.Scrapes)
	}
}

// TestShardsShareCaches: the shards' requests find each other's prefixes, so
// that hits beyond the predicted ones need no earlier run, and --fresh, which
// shards cannot have, is no advice.
func TestShardsShareCaches(t *testing.T) {
	rep := halves(t, 0, seriesOf(generated, "", point{-0.1, 0}, point{1.2, 1}), seriesOf(generated, "", point{-0.1, 0}, point{3.2, 2}))
	warned(t, rep, "the server was warm, by an earlier run (--salt tells) or, where turns wait for each other, by the other shards' requests")
	if all := strings.Join(rep.Warnings, "; "); strings.Contains(all, "--fresh") {
		t.Errorf("advice that shards cannot take: %s", all)
	}
}
