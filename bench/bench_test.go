package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                       "say what to measure",
		"speed":                  `measure "speed"`,
		"replay mem":             `measure "mem"`,
		"--rounds 0 replay":      "more than 0",
		"--requests -1 memory":   "more than 0",
		"--memory-rate 0 memory": "more than 0",
	} {
		var stderr bytes.Buffer
		if code := run(strings.Fields(args), &stderr, &stderr); code != 2 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit %d, %q, want 2 and %q", args, code, stderr.String(), want)
		}
	}
}

func TestMedian(t *testing.T) {
	for want, xs := range map[float64][]float64{3: {3}, 2: {3, 1}, 5: {9, 5, 1}, 4: {1, 9, 3, 5}} {
		if got := median(xs); got != want {
			t.Errorf("median of %v is %v, want %v", xs, got, want)
		}
	}
}

// TestShuffledIsPermutation: every row comes once, and hardly any in its place.
func TestShuffledIsPermutation(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 997, 1000, 4096} {
		seen := make([]bool, n)
		inPlace := 0
		for i := range n {
			at := shuffled(i, n)
			seen[at] = true
			if at == i {
				inPlace++
			}
		}
		if slices.Contains(seen, false) || n > 10 && inPlace > n/10 {
			t.Errorf("%d rows: %d in place, seen %v", n, inPlace, !slices.Contains(seen, false))
		}
	}
}

// TestRowsAreMooncake reads what the generators write back, twice the same.
func TestRowsAreMooncake(t *testing.T) {
	makers := map[string]func() func(i int) row{
		"steady":       func() func(i int) row { return func(i int) row { return steadyRow(i, 1000) } },
		"wide":         func() func(i int) row { return func(i int) row { return wideRow(i, 1000) } },
		"conversation": func() func(i int) row { return conversationRows(1) },
	}
	for name, maker := range makers {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := writeRows(path, 300, maker()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		again := maker()
		for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
			var got struct {
				Timestamp   int64    `json:"timestamp"`
				InputLength int64    `json:"input_length"`
				Output      int64    `json:"output_length"`
				HashIDs     []uint64 `json:"hash_ids"`
			}
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatalf("%s, line %d: %v", name, i+1, err)
			}
			want := again(i)
			if fmt.Sprint(got) != fmt.Sprint(want) || got.InputLength <= 0 || got.Output <= 0 {
				t.Fatalf("%s, line %d: %v, want %v", name, i+1, got, want)
			}
		}
	}
}

// TestMeasureSmall runs every measurement with few requests, from the build of
// the commands to the last table.
func TestMeasureSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the commands")
	}
	var stdout, stderr bytes.Buffer
	args := []string{"--rounds", "1", "--span", "300ms", "--rates", "200", "--requests", "300", "--memory-rate", "500", "all"}
	if code := run(args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	for _, want := range []string{"| trace-convert | unsorted JSONL", "| 300 of 300 |", "| 200 | 60 of 60 |", "| read the `.trace` back into requests"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	t.Log(stdout.String())
}

func TestReadSummaryRefuses(t *testing.T) {
	for _, out := range []string{"", "{}", "done"} {
		if _, err := readSummary([]byte(out)); err == nil {
			t.Errorf("%q is taken for a summary", out)
		}
	}
}

func TestConversationFallsBack(t *testing.T) {
	o := &options{data: filepath.Join(t.TempDir(), "absent"), scratch: t.TempDir()}
	path, what, err := conversation(o)
	if err != nil || !strings.Contains(what, "made") {
		t.Fatalf("%q, %v", what, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 1<<20 {
		t.Errorf("made trace: %v, %v", info, err)
	}
	var none timings
	if err := none.parsePython(context.Background(), &options{python: "no-such-python"}, path); none.wall != nil || err != nil {
		t.Errorf("absent Python: %v, %v", none, err)
	}
}
