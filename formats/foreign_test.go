package formats

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retrace/record"
)

// fixturesDir holds the project's own sample traces.
const fixturesDir = "../fixtures"

// writeInput writes text to a file of that name in a directory of the test.
func writeInput(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// through converts the inputs to a canonical trace and that to a format, and
// gives what came out.
func through(t testing.TB, paths []string, o Options, format string) (string, *Conversion) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "x.trace")
	first, err := Convert(paths, o, Target{Path: trace})
	if err != nil {
		t.Fatalf("convert to trace: %v", err)
	}
	var out bytes.Buffer
	if _, err := Convert([]string{trace}, Options{}, Target{Path: "-", Format: format, Stdout: &out}); err != nil {
		t.Fatalf("convert to %s: %v", format, err)
	}
	return out.String(), first
}

// importAll gives the requests of the inputs, and the trace they came from.
func importAll(t testing.TB, paths []string, o Options) ([]record.Request, *Trace) {
	t.Helper()
	tr, err := Open(paths, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	var all []record.Request
	for r, err := range tr.Requests() {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		all = append(all, r)
	}
	return all, tr
}

// importText is importAll of one file.
func importText(t testing.TB, name, text string) ([]record.Request, *Trace) {
	t.Helper()
	return importAll(t, []string{writeInput(t, name, text)}, Options{})
}

// importError is the error of reading a text.
func importError(t testing.TB, name, text string, o Options) error {
	t.Helper()
	tr, err := Open([]string{writeInput(t, name, text)}, o)
	if err != nil {
		return err
	}
	defer tr.Close()
	for _, err := range tr.Requests() {
		if err != nil {
			return err
		}
	}
	return nil
}

// wantIn checks that a text holds all of the parts.
func wantIn(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// sameJSONLines checks that two texts hold the same JSON values line by line.
func sameJSONLines(t testing.TB, got, want string) {
	t.Helper()
	g, w := strings.Split(strings.TrimSpace(got), "\n"), strings.Split(strings.TrimSpace(want), "\n")
	if len(g) != len(w) {
		t.Fatalf("%d lines, want %d:\n%s", len(g), len(w), got)
	}
	for i := range g {
		if !EqualValue([]byte(g[i]), []byte(w[i])) {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
}
