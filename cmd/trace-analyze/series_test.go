package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retrace/cmd/internal/cli"
	"retrace/record"
)

// TestServerSeries: the servers' metrics in the recordings of two shards are
// those of one server, which one of them looked at more often.
func TestServerSeries(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, times := range [][]time.Duration{{-100 * ms, 2 * time.Second}, {-100 * ms, time.Second, 2 * time.Second}} {
		path := filepath.Join(dir, []string{"a.rec", "b.rec"}[i])
		h := shard("run", i, 2)
		h.Run.Planned = 1
		w, err := record.CreateRecording(path, h, false)
		if err != nil {
			t.Fatal(err)
		}
		r := answer(0, 100*ms, 11)
		if err := w.WriteResult(&r); err != nil {
			t.Fatal(err)
		}
		for k, at := range times {
			s := record.Series{
				Name: "vllm:generation_tokens_total", Labels: map[string]string{record.ReplicaLabel: "0", "engine": "0"},
				Times: []time.Duration{at}, Values: []float64{float64(100 + k*11)},
			}
			if err := w.WriteSeries(&s); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(record.Footer{}); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	for path, want := range map[string]string{paths[0]: `"generation_tokens": 11,`, paths[1]: `"generation_tokens": 22,`} {
		if got := outputOf(t, nil, path); !strings.Contains(got, want) {
			t.Errorf("%s lacks %s:\n%s", path, want, got)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append(paths, "--json"), nil, &stdout, &stderr); code != cli.Done {
		t.Fatalf("exit status %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), `"generation_tokens": 22,`) || !strings.Contains(stdout.String(), `"scrapes": 3,`) {
		t.Errorf("together:\n%s", &stdout)
	}
}
