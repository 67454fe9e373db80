package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestToolRate: the two forms in which the tools write a rate.
func TestToolRate(t *testing.T) {
	for text, want := range map[string]float64{
		`{"request_throughput": {"unit": "requests/sec", "avg": 983.5}, "request_count": {"avg": 500}}`: 983.5,
		`{"completed": 500, "request_throughput": 2642.5}`:                                              2642.5,
		`{"request_throughput": 0}`: 0,
		`{"completed": 500}`:        0,
		`{`:                         0,
	} {
		if got, err := toolRate([]byte(text)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}

// TestGroupOf: a process may have brackets and blanks in its name.
func TestGroupOf(t *testing.T) {
	for text, want := range map[string]int{"7 (a) b) S 1 42 42 0": 42, "7 (go) R 1 9 9": 9, "7 (go)": 0} {
		if got := groupOf([]byte(text)); got != want {
			t.Errorf("%q: group %d, want %d", text, got, want)
		}
	}
	if _, err := os.Stat("/proc/self/smaps_rollup"); err == nil && groupMemory(syscall.Getpgrp()) < 1<<20 {
		t.Error("this process's group has less than 1 MiB")
	}
}

// TestQuicker: 1500 ms are 100 at 15 times the speed, and nothing else changes.
func TestQuicker(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(from, []byte(`{"timestamp": 1500, "input_length": 3, "hash_ids": [1,2]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := quicker(from, to, 15); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if want := `{"hash_ids":[1,2],"input_length":3,"timestamp":100}`; err != nil || strings.TrimSpace(string(text)) != want {
		t.Errorf("found %s, %v, want %s", text, err, want)
	}
}
