package main

import (
	"os"
	"path/filepath"
	"testing"

	"retrace/record"
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
