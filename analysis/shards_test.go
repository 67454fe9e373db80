package analysis

import (
	"bytes"
	"strings"
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
	warned(t, run.Report(), "8 requests planned, 1 recorded", "1 result of no known state", "1 of 1 recording was not closed")
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
		{"a repeat", header("r2", 1, 2), `merge shards: run "r2" is not run "r1": repeats of a run are not its shards, analyse each alone (shards of one run share trace, flags, seed and --start-at)`},
		{"the same shard", header("r1", 0, 2), `merge shards: shard 0 of run "r1" is given twice: a shard that was run again is a repeat, analyse each run alone`},
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

// TestShardsApart: shards that ran one after another are said to.
func TestShardsApart(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		apart time.Duration
		warns bool
	}{{0, false}, {5 * time.Second, false}, {90 * time.Second, true}, {-90 * time.Second, true}} {
		run := NewRun(RunOptions{})
		for i, start := range []time.Time{at, at.Add(c.apart)} {
			h := record.Header{Kind: record.KindRecording, RunID: "r", Run: &record.Run{Shard: i, Shards: 2, Start: start}}
			if err := run.AddHeader(h); err != nil {
				t.Fatal(err)
			}
		}
		if rep := run.Report(); c.warns {
			warned(t, rep, "the shards started 1m30s apart")
		} else {
			silent(t, rep)
		}
	}
}

// TestInterruptedHeadline: what a killed run's file lacks stands above all.
func TestInterruptedHeadline(t *testing.T) {
	for _, c := range []struct {
		name    string
		planned int64
		closed  bool
		footer  record.Footer
		want    string
	}{
		{"killed", 65, false, record.Footer{}, "INTERRUPTED: 1 of 65 planned are in the file"},
		{"stopped", 1, true, record.Footer{Interrupted: true}, "INTERRUPTED: 1 of 1 planned are in the file"},
		{"killed, of no plan", 0, false, record.Footer{}, "INTERRUPTED: how much was planned is not known"},
		{"whole", 1, true, record.Footer{}, "Schedule kept: "},
	} {
		run := NewRun(RunOptions{})
		h := recordingHeader()
		h.Run.Planned = c.planned
		if err := run.AddHeader(h); err != nil {
			t.Fatal(err)
		}
		r := completed(0, ms, ms, 2)
		run.Add(&r)
		run.AddFooter(c.footer, c.closed)
		rep := run.Report()
		var table bytes.Buffer
		if err := rep.WriteTable(&table); err != nil || !strings.HasPrefix(table.String(), c.want) {
			t.Errorf("%s: %v, got %.80s", c.name, err, &table)
		}
		if known := c.planned > 0; known != (rep.Planned != nil) || known && *rep.Planned != c.planned {
			t.Errorf("%s: planned %v, want %d", c.name, rep.Planned, c.planned)
		}
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
