package main

import (
	"path/filepath"
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
