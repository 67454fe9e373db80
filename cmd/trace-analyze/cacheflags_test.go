package main

import (
	"strings"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "131072": 131072, "128KiB": 131072, "128 KiB": 131072, "0.5MiB": 524288, "2kB": 2000, "1.5MB": 1_500_000, "7B": 7, "1GiB": 1 << 30, "1e3": 1000,
	} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "KiB", "0.3", "0.5B", "NaN", "Inf", "1e300", "2TiB", "1KB", "12 apples"} {
		if got, err := parseBytes(text); err == nil || !strings.Contains(err.Error(), "expected whole bytes") {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
}

// FuzzParseBytes states that what is accepted is in bounds.
func FuzzParseBytes(f *testing.F) {
	for _, seed := range []string{"131072", "128KiB", "0.5MiB", "NaN", "-1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseBytes(text); err == nil && (n < 1 || n > mostBytes) {
			t.Errorf("%q: got %d", text, n)
		}
	})
}
