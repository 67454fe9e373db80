package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retrace/analysis"
	"retrace/formats"
	"retrace/record"
)

// sessionsFile writes three rows each of six sessions, and six rows without one.
func sessionsFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 24 {
		session := ""
		if s := i % 8; s < 6 {
			session = fmt.Sprintf(`"session_id": "s%d", `, s)
		}
		fmt.Fprintf(&b, `{%s"timestamp": %d, "input_length": 40, "output_length": 1, "hash_ids": [%d]}`+"\n", session, 5*i, i)
	}
	path := filepath.Join(t.TempDir(), "sessions.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorded replays into a recording and opens it.
func recorded(t *testing.T, args ...string) (record.Header, []record.Result) {
	t.Helper()
	rec := filepath.Join(t.TempDir(), "run.rec")
	code, _, errs := replayHere(t, append(args, "-o", rec, "--max-lag", "10s")...)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // opened to read
	list, _ := results(t, rec)
	return r.Header(), list
}

// TestShardsMerge: shards that were run one after another, without --start-at,
// make the run that one process makes.
func TestShardsMerge(t *testing.T) {
	trace, url := sessionsFile(t), mock(t, ok)
	merged, whole := analysis.NewRun(analysis.RunOptions{}), analysis.NewRun(analysis.RunOptions{})
	due := func(list []record.Result) map[string]time.Duration {
		m := map[string]time.Duration{}
		for _, r := range list {
			m[r.ID] = r.Scheduled
		}
		return m
	}
	add := func(run *analysis.Run, h record.Header, list []record.Result) {
		if err := run.AddHeader(h); err != nil {
			t.Fatal(err)
		}
		for i := range list {
			run.Add(&list[i])
		}
	}
	h, all := recorded(t, trace, "--url", url)
	add(whole, h, all)
	schedule := map[string]time.Duration{}
	for _, shard := range []string{"1/2", "0/2"} {
		h, list := recorded(t, trace, "--url", url, "--shard", shard)
		if len(list) == 0 || len(list) == len(all) {
			t.Fatalf("shard %s has %d of %d requests", shard, len(list), len(all))
		}
		add(merged, h, list)
		maps.Copy(schedule, due(list))
	}
	if want := due(all); !maps.Equal(schedule, want) {
		t.Errorf("the shards' schedule is %v, that of the whole %v", schedule, want)
	}
	a, b := merged.Report(), whole.Report()
	if a.Requests != b.Requests || a.Requests.Completed != 24 || a.Tokens != b.Tokens || *a.Planned != *b.Planned {
		t.Errorf("merged %+v %+v, whole %+v %+v", a.Requests, a.Tokens, b.Requests, b.Tokens)
	}
	if again, _ := recorded(t, trace, "--url", url, "--shard", "0/2"); merged.AddHeader(again) == nil {
		t.Error("a shard that was run again is merged with the first")
	}
}

// TestShardsOfALaw: under an arrival law, with one start for all and two servers
// in turns, three shards at once send what one process does: the same requests,
// at the same times, to the same servers, and each its own share of the results.
func TestShardsOfALaw(t *testing.T) {
	trace, a, b := sessionsFile(t), mock(t, ok), mock(t, ok)
	args := func(more ...string) []string {
		start := time.Now().Add(2500 * time.Millisecond).UTC().Format(time.RFC3339Nano)
		return append([]string{trace, "--url", a, "--url", b, "--arrival", "gamma", "--rate", "200", "--burstiness", "0.5", "--seed", "7", "--start-at", start}, more...)
	}
	sends := func(list []record.Result) map[string]string {
		m := map[string]string{}
		for _, r := range list {
			m[r.ID] = fmt.Sprint(r.Scheduled, " to ", r.Replica)
		}
		return m
	}
	_, all := recorded(t, args()...)
	common := args()
	merged := analysis.NewRun(analysis.RunOptions{})
	union, total := map[string]string{}, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			h, list := recorded(t, append(slices.Clip(common), "--shard", fmt.Sprintf("%d/3", i))...)
			mu.Lock()
			defer mu.Unlock()
			if err := merged.AddHeader(h); err != nil {
				t.Error(err)
			}
			for k := range list {
				merged.Add(&list[k])
			}
			total += len(list)
			maps.Copy(union, sends(list))
		})
	}
	wg.Wait()
	if want := sends(all); !maps.Equal(union, want) || total != len(all) || len(all) != 24 {
		t.Errorf("%d results of three shards, %d of one process:\n%v\n%v", total, len(all), union, want)
	}
	if rep := merged.Report(); rep.Requests.Completed != 24 || rep.Planned == nil || *rep.Planned != 24 {
		t.Errorf("merged: %+v", rep.Requests)
	}
}

// TestShardsPredict: three shards predict of each request what one process does,
// in their plans too, though they send only their own: 37,888 of the tokens to
// one server are hits (see TestServerCounts), of two servers each has its own.
func TestShardsPredict(t *testing.T) {
	const trace = "../../fixtures/mooncake_sample.jsonl"
	a, b := mock(t, ok), mock(t, ok)
	for _, c := range []struct {
		args []string
		hits int64 // 0: whatever one process predicts
	}{
		{[]string{"--url", a, "--max-input-tokens", "4096", "--server-block-size", "32"}, 37_888},
		{[]string{"--url", a, "--url", b, "--server-block-size", "16", "--arrival", "poisson", "--rate", "2"}, 0},
		{[]string{"--url", a, "--server-block-size", "16", "--lora-modules", "x,y", "--warmup-requests", "2"}, 0},
	} {
		args := append([]string{trace, "--speed", "200"}, c.args...)
		hits := func(more ...string) (byID map[string]int64, sum int64) {
			byID = map[string]int64{}
			_, list := recorded(t, append(slices.Clip(args), more...)...)
			for _, r := range list {
				if r.Mark == record.Planned {
					byID[r.ID] = r.PredictedHit
					sum += r.PredictedHit
				}
			}
			code, plan, errs := replayHere(t, append(append(slices.Clip(args), more...), "--dry-run", "--json")...)
			if want := fmt.Sprintf(`"predicted_hit_tokens": %d,`, sum); code != exitOK || !strings.Contains(plan, want) {
				t.Errorf("%v: exit %d, want %s: %s%s", more, code, want, plan, errs)
			}
			return byID, sum
		}
		whole, sum := hits()
		merged := map[string]int64{}
		for i := range 3 {
			part, _ := hits("--shard", fmt.Sprintf("%d/3", i))
			maps.Copy(merged, part)
		}
		if !maps.Equal(merged, whole) || len(whole) != 65 || sum == 0 || c.hits > 0 && sum != c.hits {
			t.Errorf("%v: %d predicted hits, the shards' %v, one process's %v", c.args, sum, merged, whole)
		}
	}
}

// TestRunIDs: what the shards of a run share is in their run id, and a run of
// one process has one of its own.
func TestRunIDs(t *testing.T) {
	trace, url := sessionsFile(t), mock(t, ok)
	id := func(args ...string) string {
		h, _ := recorded(t, append([]string{trace, "--url", url, "--speed", "100"}, args...)...)
		return h.RunID
	}
	first := id("--shard", "0/2")
	if other := id("--shard", "1/2"); other != first {
		t.Errorf("shards of one run have the ids %s and %s", first, other)
	}
	seen := map[string]string{first: "--shard 0/2"}
	for _, args := range []string{
		"", "--limit 24", // neither is a shard
		"--shard 0/3", "--shard 0/2 --seed 1", "--shard 0/2 --salt x", "--shard 0/2 --limit 20", "--shard 0/2 --start 5ms",
		"--shard 0/2 --max-output-tokens 1", "--shard 0/2 --arrival poisson --rate 1000", "--shard 0/2 --speed 99",
	} {
		got := id(strings.Fields(args)...)
		if before, found := seen[got]; found {
			t.Errorf("%q has the id of %q", args, before)
		}
		seen[got] = args
	}
}

// TestRunIDOfStart: a start makes the id of a run, in whatever zone it is told.
func TestRunIDOfStart(t *testing.T) {
	id := func(start string, shards int) string {
		return runID(&record.Header{}, &options{startAt: start}, formats.Selection{Shards: shards})
	}
	const start, same, other = "2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", "2026-01-02T03:04:06Z"
	if id(start, 2) != id(same, 2) || id(start, 1) != id(same, 1) {
		t.Error("one start makes several run ids")
	}
	if id(start, 2) == id(other, 2) || id(start, 2) == id("", 2) || id(start, 2) == id(start, 1) {
		t.Error("different runs have one run id")
	}
}

// TestBodiesNameTheirAPI: the recording's header has the API that was used.
func TestBodiesNameTheirAPI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bodies.jsonl")
	const chat = `{"timestamp": 0, "payload": {"model": "m", "messages": [{"role": "user", "content": "a b"}], "max_tokens": 2}}` + "\n"
	for rows, want := range map[string]string{
		chat: "chat",
		chat + `{"timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": [1]}` + "\n": "chat,completions",
	} {
		if err := os.WriteFile(path, []byte(rows), 0o666); err != nil {
			t.Fatal(err)
		}
		if h, _ := recorded(t, path, "--url", "sim"); h.Run.API != want || h.Run.Prompt != "literal" {
			t.Errorf("API %q, prompts %q; want %q, literal", h.Run.API, h.Run.Prompt, want)
		}
	}
}

// TestServerIsDown: that every request fails is said while it happens, once.
func TestServerIsDown(t *testing.T) {
	down := mock(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	code, _, errs := replayHere(t, traceFile(t, 50, 0), "--url", down, "--max-lag", "10s")
	const alarm = "warning: every request so far failed (20): http_5xx: HTTP 500: "
	if code != exitLoss || strings.Count(errs, alarm) != 1 {
		t.Errorf("exit %d, want one %q: %s", code, alarm, errs)
	}
	var n atomic.Int64
	flaky := mock(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 5 {
			ok(w, r)
			return
		}
		w.WriteHeader(500)
	})
	_, _, errs = replayHere(t, traceFile(t, 50, time.Millisecond), "--url", flaky, "--max-lag", "10s", "--max-concurrency", "1")
	if strings.Contains(errs, "every request so far") {
		t.Errorf("one was answered: %s", errs)
	}
	code, out, errs := replayHere(t, traceFile(t, 1, 0), "--url", "http://127.0.0.1:1", "--ready-timeout", "0s")
	if code != exitLoss || !strings.HasPrefix(out, "Schedule: no request reached a connection\n") || strings.Contains(out, "–") ||
		!strings.Contains(errs, "1 of 1 request failed, 0 cancelled, 0 not sent") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestStartHasPassed names the time instead of an age of years.
func TestStartHasPassed(t *testing.T) {
	code, _, errs := replayHere(t, traceFile(t, 1, 0), "--url", mock(t, ok), "--start-at", "2020-01-01T00:00:00Z")
	if code != exitFailed || !strings.Contains(errs, "start at 2020-01-01T00:00:00Z: the time has passed, it is 20") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
