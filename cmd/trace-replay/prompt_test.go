package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retrace/record"
	"retrace/replay/simserver"
)

// TestNamespaceIsRecorded: case H06. Without the flag two traces have name
// spaces of their own, with it the one that it says; the recording has it.
func TestNamespaceIsRecorded(t *testing.T) {
	namespace := func(row string, flags ...string) string {
		dir := t.TempDir()
		trace, rec := filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "t.rec")
		if err := os.WriteFile(trace, []byte(row+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := replayHere(t, append([]string{trace, "--url", sim, "-o", rec, "--max-lag", "10s"}, flags...)...)
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		r, err := record.Open(rec)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Header().Namespace
	}
	const a = `{"timestamp": 0, "input_length": 20, "output_length": 2, "hash_ids": [555]}`
	const b = `{"timestamp": 0, "input_length": 30, "output_length": 2, "hash_ids": [555]}`
	if x, y := namespace(a), namespace(b); x == y || x == "" {
		t.Errorf("two traces have the name spaces %q and %q", x, y)
	}
	if x, y := namespace(a, "--namespace", "shared"), namespace(b, "--namespace", "shared"); x != "shared" || y != x {
		t.Errorf("under --namespace shared they are %q and %q", x, y)
	}
}

// TestOverheadByEndpoint: case H04. A server that puts one token before a text
// and eight more before a chat counts the wanted lengths with either API.
func TestOverheadByEndpoint(t *testing.T) {
	s, err := simserver.New(simserver.Config{BOSTokens: 1, ChatTemplateTokens: 8})
	if err == nil {
		err = s.Start("127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	trace := filepath.Join(t.TempDir(), "t.jsonl")
	const rows = `{"timestamp": 0, "input_length": 40, "output_length": 2, "hash_ids": [1]}
{"timestamp": 10, "input_length": 50, "output_length": 2, "hash_ids": [1]}
`
	if err := os.WriteFile(trace, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	for api, adds := range map[string]string{"completions": "adds 1 token:", "chat": "adds 9 tokens:"} {
		for _, flags := range [][]string{nil, {"--tokenizer", "server"}} {
			rec := filepath.Join(t.TempDir(), "t.rec")
			args := append([]string{trace, "--url", s.URL(), "-o", rec, "--prompt", "text", "--api", api, "--max-lag", "10s"}, flags...)
			code, _, stderr := replayHere(t, args...)
			if code != exitOK || !strings.Contains(stderr, adds) {
				t.Errorf("%s %v: exit %d, want %q: %s", api, flags, code, adds, stderr)
			}
			list, _ := results(t, rec)
			for _, r := range list {
				if r.Mark == record.Planned && r.PromptTokens != r.WantedInput {
					t.Errorf("%s %v: %d tokens counted, wanted %d", api, flags, r.PromptTokens, r.WantedInput)
				}
			}
		}
	}
}

// TestOneServerIsDown: what is asked and sent before the run goes to the server
// that is up, whichever of the two that is; the trace's requests go to both.
func TestOneServerIsDown(t *testing.T) {
	s, err := simserver.New(simserver.Config{ChatTemplateTokens: 8})
	if err == nil {
		err = s.Start("127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const down = "http://127.0.0.1:1"
	for up, urls := range [][]string{{s.URL(), down}, {down, s.URL()}} {
		for _, flags := range [][]string{nil, {"--tokenizer", "server"}} {
			rec := filepath.Join(t.TempDir(), "t.rec")
			code, _, stderr := replayHere(t, append([]string{"testdata/chains.jsonl", "--url", urls[0], "--url", urls[1], "-o", rec, "--api", "chat",
				"--warmup-requests", "5", "--ready-timeout", "0s", "--max-lag", "10s"}, flags...)...)
			if code != exitLoss || !strings.Contains(stderr, "server "+down+" is not ready") || !strings.Contains(stderr, "sending all the same, but for the warm-up") {
				t.Errorf("%d %v: exit %d: %s", up, flags, code, stderr)
			}
			list, _ := results(t, rec)
			marks := map[record.Mark]int{}
			for _, r := range list {
				if marks[r.Mark]++; (r.State == record.Completed) != (r.Replica == up) || r.Mark != record.Planned && r.Replica != up {
					t.Errorf("%d %v: %s to replica %d: %v", up, flags, r.ID, r.Replica, r.State)
				}
				if r.State == record.Completed && r.Mark != record.Overhead && r.PromptTokens != r.WantedInput {
					t.Errorf("%d %v: %s: %d tokens counted, wanted %d", up, flags, r.ID, r.PromptTokens, r.WantedInput)
				}
			}
			if probes := 1 - len(flags)/2; marks[record.Planned] != 20 || marks[record.WarmUp] != 5 || marks[record.Overhead] != probes {
				t.Errorf("%d %v: results by mark %v", up, flags, marks)
			}
		}
	}
}

// TestIdentityIsNoPath: shards agree on the run where the file lies elsewhere.
func TestIdentityIsNoPath(t *testing.T) {
	a := promptFlags{tokenizer: "/a/tokenizer.json", digest: "12"}
	b := promptFlags{tokenizer: "/b/tokenizer.json", digest: "12"}
	other := promptFlags{tokenizer: "/a/tokenizer.json", digest: "34"}
	server, none := promptFlags{tokenizer: askServer}, promptFlags{}
	if a.identity() != b.identity() {
		t.Errorf("%q and %q", a.identity(), b.identity())
	}
	seen := map[string]bool{}
	for _, p := range []promptFlags{a, other, server, none} {
		seen[p.identity()] = true
	}
	if len(seen) != 4 {
		t.Errorf("found %v, want four", seen)
	}
}
