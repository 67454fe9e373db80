package formats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retrace/formats"
	"retrace/record"
)

// opened is what a test wants of an opened trace.
type opened struct {
	header  record.Header
	reqs    []record.Request
	report  formats.Report
	figures formats.Figures
}

// file writes text to a file of the test's own.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openAll(t testing.TB, paths []string, o formats.Options) (opened, error) {
	t.Helper()
	tr, err := formats.Open(paths, o)
	if err != nil {
		return opened{}, err
	}
	defer tr.Close() // nothing to report
	var got opened
	for r, err := range tr.Requests() {
		if err != nil {
			return opened{}, err
		}
		got.reqs = append(got.reqs, r)
	}
	got.header, got.report, got.figures = tr.Header, tr.Report(), tr.Figures()
	return got, got.report.Check()
}

// openText opens rows given as text and fails the test where they are refused.
func openText(t testing.TB, text string, o formats.Options) opened {
	t.Helper()
	got, err := openAll(t, []string{file(t, "in.jsonl", text)}, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return got
}

// refused opens rows that must be refused and gives the error.
func refused(t testing.TB, text string, o formats.Options) string {
	t.Helper()
	_, err := openAll(t, []string{file(t, "in.jsonl", text)}, o)
	if err == nil {
		t.Fatalf("taken, but must be refused:\n%s", text)
	}
	return err.Error()
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q lacks %q", text, p)
		}
	}
}
