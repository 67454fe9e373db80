package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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

// TestFullDisk: an output that cannot be written is an error, whatever the
// format, and a device is not replaced. The device is a private copy.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	in, device := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "device")
	if err := os.WriteFile(in, []byte(`{"timestamp":0,"input_length":1,"output_length":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const full = 1<<8 | 7 // the number of Linux's /dev/full
	if err := syscall.Mknod(device, syscall.S_IFCHR|0o600, full); err != nil || runtime.GOOS != "linux" {
		t.Skipf("no device nodes can be made here: %v", err)
	}
	if f, err := os.OpenFile(device, os.O_WRONLY, 0); err != nil {
		t.Skipf("device nodes cannot be opened here: %v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"trace", "jsonl", "mooncake"} {
		var stderr bytes.Buffer
		code := run(context.Background(), []string{in, "--to", to, "-o", device}, nil, io.Discard, &stderr)
		if code != cli.Failed || !strings.Contains(stderr.String(), device) || !strings.Contains(stderr.String(), "no space left on device\n") {
			t.Errorf("%s: exit status %d: %s", to, code, &stderr)
		}
		if info, err := os.Lstat(device); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			t.Fatalf("%s: the device was replaced: %v, %v", to, info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
