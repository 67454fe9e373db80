package formats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// R21: first turns in epoch time and later ones from 0 are refused, whatever
// the unit; a trace in epoch time, or one that starts late, is not.
func TestMixedOrigins(t *testing.T) {
	const row = `{"timestamp":%s,"session_id":"%s","input_length":5}` + "\n"
	file := func(rows ...string) string {
		var b strings.Builder
		for i := 0; i < len(rows); i += 2 {
			fmt.Fprintf(&b, row, rows[i], rows[i+1])
		}
		return b.String()
	}
	const date = "1700000000000"
	for _, c := range []struct {
		name, text, want string
		o                Options
	}{
		{"a later turn at 0", file(date, "a", "0", "a"),
			"row 1 is at 472222h13m20s (2023-11-14, if counted from 1970), row 2 of ", Options{}},
		{"later turns after a while", file(date, "a", "0", "a", "1700000001000", "b", "7000", "b", "9000", "a"), "row 2 of", Options{}},
		{"taken as they are", file(date, "a", "0", "a"), "two origins", Options{ClockRestart: RestartSort}},
		{"in seconds", file("1700000000", "a", "1", "a"), "two origins", Options{Unit: time.Second}},
		{"dates alone", file(date, "a", "1700000001000", "a"), "", Options{}},
		{"offsets alone", file("1000", "a", "0", "a"), "", Options{}},
		{"later turns at dates too", file(date, "a", "1700000001000", "a", "0", "a"), "", Options{}},
		{"no sessions", file(date, "a", "0", "b"), "", Options{}},
		{"225 days late", file("19440110000", "a", "19440111000", "a"), "", Options{}},
	} {
		in := filepath.Join(t.TempDir(), "in.jsonl")
		if err := os.WriteFile(in, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Convert([]string{in}, c.o, Target{Path: in + ".trace"})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if _, err := os.Stat(in + ".trace"); (err == nil) != (c.want == "") {
			t.Errorf("%s: output: %v", c.name, err)
		}
	}
}
