package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retrace/record"
)

func TestRepeatPath(t *testing.T) {
	for _, c := range []struct {
		path string
		i, n int
		want string
	}{
		{"run.rec", 1, 1, "run.rec"}, {"run.rec", 2, 3, "run.2.rec"}, {"", 1, 3, ""}, {"a.b/run", 10, 11, "a.b/run.10"}, {"x/run.a.rec", 1, 2, "x/run.a.1.rec"},
	} {
		if got := repeatPath(c.path, c.i, c.n); got != c.want {
			t.Errorf("%s %d of %d: %s, want %s", c.path, c.i, c.n, got, c.want)
		}
	}
}

// TestWorse: 130, 1, 4, 3, in that order.
func TestWorse(t *testing.T) {
	order := []int{130, 1, 4, 3, 0}
	for i, a := range order {
		for j, b := range order {
			if got := worse(a, b); got != order[min(i, j)] {
				t.Errorf("%d and %d: %d", a, b, got)
			}
		}
	}
}

// TestRepeatsDiffer: each run has a run id and prompts of its own, and one
// schedule; --repeat-same-prompts keeps the prompts.
func TestRepeatsDiffer(t *testing.T) {
	trace, url := traceFile(t, 4, 0), mock(t, ok)
	for _, same := range []bool{false, true} {
		rec := filepath.Join(t.TempDir(), "run.rec")
		args := []string{trace, "--url", url, "--repeat", "2", "-o", rec, "--max-lag", "10s", "--salt", "s", "--arrival", "poisson", "--rate", "100"}
		if same {
			args = append(args, "--repeat-same-prompts")
		}
		if code, _, errs := replayHere(t, args...); code != exitOK {
			t.Fatalf("exit %d: %s", code, errs)
		}
		var headers []record.Header
		var due [2]map[string]string
		for i := range due {
			path := repeatPath(rec, i+1, 2)
			r, err := record.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			headers = append(headers, r.Header())
			_ = r.Close() // opened to read
			list, _ := results(t, path)
			due[i] = map[string]string{}
			for _, res := range list {
				due[i][res.ID] = res.Scheduled.String()
			}
		}
		a, b := headers[0], headers[1]
		salt := "s repeat 2"
		if same {
			salt = "s"
		}
		if a.RunID == b.RunID || a.Run.Salt != "s" || b.Run.Salt != salt || b.Run.Load.Repeat != 2 || b.Run.Load.Repeats != 2 {
			t.Errorf("same %v: run ids %s and %s, salts %q and %q, %+v", same, a.RunID, b.RunID, a.Run.Salt, b.Run.Salt, b.Run.Load)
		}
		for id, at := range due[0] {
			if due[1][id] != at {
				t.Errorf("request %s is due at %s and %s", id, at, due[1][id])
			}
		}
	}
}

// TestNothingLeaks (M11): with a warm-up, probes and repeats against one server
// whose cache is never cleared, each run hits what the trace's own prompts hold, to
// the token, as tokens and as text: three requests share two blocks each, so two of
// three times 32 of 40 tokens are hits.
func TestNothingLeaks(t *testing.T) {
	var rows strings.Builder
	for i := range 30 {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 40, "output_length": 1, "hash_ids": [%d]}`+"\n", 4*i, i/3)
	}
	trace := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(trace, []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, api := range []string{"completions", "chat"} {
		code, out, errs := replayHere(t, trace, "--url", "sim", "--api", api, "--max-concurrency", "1", "--max-lag", "10s", "--json",
			"--warmup-requests", "33", "--probe-rate", "100", "--repeat", "2")
		var doc struct {
			Runs []struct {
				Requests    struct{ Completed int }
				PrefixCache struct {
					Predicted int `json:"predicted_hit_tokens"`
					Observed  int `json:"observed_hit_tokens"`
				} `json:"prefix_cache"`
				Beyond struct{ Warmup, Probe int } `json:"beyond_trace"`
			}
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitOK || len(doc.Runs) != 2 {
			t.Fatalf("%s: exit %d, %v: %s%s", api, code, err, out, errs)
		}
		for i, r := range doc.Runs {
			want := 10 * 2 * 32
			if r.Requests.Completed != 30 || r.PrefixCache.Predicted != want || r.PrefixCache.Observed != want || r.Beyond.Warmup != 33 || r.Beyond.Probe == 0 {
				t.Errorf("%s: run %d: %+v, want %d hit tokens", api, i+1, r, want)
			}
		}
	}
}
