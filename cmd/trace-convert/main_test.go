package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"retrace/cmd/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"trace-convert": main})
}

func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", fixtures)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs a command and checks its exit status: exits STATUS COMMAND ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARGS...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// realTrace is the published Mooncake trace, outside the repository.
const realTrace = "../../../shared/data/mooncake/conversation_trace.jsonl"

// TestRealTrace: the published sums, and every line given back as it stands.
func TestRealTrace(t *testing.T) {
	source, err := os.ReadFile(realTrace)
	if err != nil {
		t.Skipf("the published Mooncake trace is not here: %v", err)
	}
	dir := t.TempDir()
	trace, back := filepath.Join(dir, "a.trace"), filepath.Join(dir, "b.jsonl")
	var stderr bytes.Buffer
	for _, args := range [][]string{{realTrace, "-o", trace}, {trace, "--to", "mooncake", "-o", back}} {
		if code := run(context.Background(), args, strings.NewReader(""), io.Discard, &stderr); code != 0 {
			t.Fatalf("%v: exit status %d\n%s", args, code, &stderr)
		}
	}
	for _, want := range []string{
		"12031 requests, 144793823 input tokens, 4122048 output tokens, 288500 blocks",
		"arrivals quantised to 3,000 ms", "rows: 12031 read = 12031 kept + 0 skipped",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, &stderr)
		}
	}
	got, err := os.ReadFile(back)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(strings.ReplaceAll(string(source), ": ", ":"), ", ", ","); string(got) != want {
		t.Error("the export differs from the source beyond its blanks")
	}
}

// TestInterrupted: an interruption ends with 130 and no output.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.jsonl")
	row := `{"timestamp":0,"input_length":1,"output_length":1}` + "\n"
	if err := os.WriteFile(in, []byte(strings.Repeat(row, 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	stop() // an interrupted context
	var stderr bytes.Buffer
	code := run(ctx, []string{in, "-o", filepath.Join(dir, "out.trace")}, nil, io.Discard, &stderr)
	if code != cli.Interrupted {
		t.Errorf("exit status %d, want %d\n%s", code, cli.Interrupted, &stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
