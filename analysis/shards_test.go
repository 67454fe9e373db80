package analysis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"retrace/record"
)

func TestPlannedSum(t *testing.T) {
	run := NewRun(RunOptions{})
	h := recordingHeader()
	if err := run.AddHeader(h); err != nil {
		t.Fatal(err)
	}
	r := completed(0, ms, ms, 2)
	run.Add(&r)
	odd := record.Result{State: 9}
	run.Add(&odd)
	run.AddFooter(record.Footer{}, false)
	warned(t, run.Report(), "8 requests were planned, 1 are recorded", "1 results have no known state", "1 of 1 recordings were not closed")
}

func TestShards(t *testing.T) {
	header := func(id string, shard, shards int) record.Header {
		return record.Header{Kind: record.KindRecording, RunID: id, Run: &record.Run{Shard: shard, Shards: shards, MaxLag: ms}}
	}
	for _, c := range []struct {
		name string
		with record.Header
		err  string
	}{
		{"the other shard", header("r1", 1, 2), ""},
		{"a repeat", header("r2", 1, 2), `merge shards: run "r2" is not run "r1": repeats of a run are not its shards, analyse each alone`},
		{"the same shard", header("r1", 0, 2), `merge shards: shard 0 of run "r1" is given twice`},
		{"another split", header("r1", 1, 3), `merge shards: run "r1" is in 2 shards in one file and in 3 in another`},
		{"a trace", record.Header{Kind: record.KindTrace}, `analyse run: found a container of kind "trace", expected "recording"`},
	} {
		run := NewRun(RunOptions{})
		if err := run.AddHeader(header("r1", 0, 2)); err != nil {
			t.Fatal(err)
		}
		err := run.AddHeader(c.with)
		if c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.err)
		}
	}
	run := NewRun(RunOptions{})
	if err := run.AddHeader(header("r1", 0, 2)); err != nil {
		t.Fatal(err)
	}
	warned(t, run.Report(), "only 1 of the run's 2 shards are here")
	if got := run.maxLag(); got != ms {
		t.Errorf("the header's limit on lateness: got %v, want 1 ms", got)
	}
}

// TestSplitIsMerged states the law of shards: however the results are spread
// and ordered, the report is the same to the last digit.
func TestSplitIsMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		var list []record.Result
		for range n {
			d := func(name string) time.Duration { return time.Duration(rapid.Int64Range(0, 2e9).Draw(t, name)) }
			r := completed(d("due"), d("ttft"), d("gap")/10, rapid.IntRange(1, 5).Draw(t, "outputs"))
			r.State = record.State(rapid.IntRange(1, 4).Draw(t, "state"))
			list = append(list, r)
		}
		whole, err := analyse(RunOptions{}, list...).JSON()
		if err != nil {
			t.Fatal(err)
		}
		shuffled, err := analyse(RunOptions{}, rapid.Permutation(list).Draw(t, "order")...).JSON()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(whole), string(shuffled)); d != "" {
			t.Errorf("(-in order +shuffled):\n%s", d)
		}
	})
}
