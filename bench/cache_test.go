package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestMeasureCacheAlone draws a curve of a made trace without a Python to
// compare with.
func TestMeasureCacheAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a command")
	}
	var out, errs bytes.Buffer
	args := []string{"--data", t.TempDir() + "/none.jsonl", "--python", t.TempDir() + "/none", "--rounds", "1", "cache"}
	if code := run(args, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	for _, want := range []string{"### Cache curves", "13 capacities", "has no kvcache_sim", "LRU's hits for every capacity", "together"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, &out)
		}
	}
}

func TestRivalCurveRefuses(t *testing.T) {
	for _, python := range []string{"false", "true", "echo"} { // fails, prints nothing, prints no JSON
		if _, _, err := rivalCurve(context.Background(), &options{python: python}, []string{"x"}); err == nil {
			t.Errorf("%s: no error", python)
		}
	}
}
