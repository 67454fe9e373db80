package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestExportToPipe: an output that is no regular file is written to, not
// replaced by one.
func TestExportToPipe(t *testing.T) {
	dir := t.TempDir()
	in, pipe := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(in, []byte(goodRow+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	for _, to := range []string{"mooncake", "trace"} {
		got := make(chan []byte, 1)
		go func() {
			data, _ := os.ReadFile(pipe)
			got <- data
		}()
		if _, err := Convert([]string{in}, Options{}, Target{Path: pipe, Format: to}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(pipe)
		if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Fatalf("%s: the pipe is gone: %v, %v", to, info, err)
		}
		if data := <-got; len(data) == 0 {
			t.Errorf("%s: nothing came through the pipe", to)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestStdoutGone: what went wrong with standard output is told by that name.
func TestStdoutGone(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(in, []byte(goodRow+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, to := range []string{"mooncake", "trace"} {
		_, err := Convert([]string{in}, Options{}, Target{Path: "-", Format: to, Stdout: w})
		if !errors.Is(err, syscall.EPIPE) || !strings.HasSuffix(err.Error(), "write standard output: broken pipe") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestUnsortedToPipe: what needs a second pass is sent once all the same.
func TestUnsortedToPipe(t *testing.T) {
	dir := t.TempDir()
	in, pipe, file := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	var rows bytes.Buffer
	for i := range 3 * speculateRows {
		at := i
		if i >= 3*speculateRows-2 {
			at = i ^ 1 // out of order, when the start is long written
		}
		fmt.Fprintf(&rows, `{"timestamp":%d,"input_length":5,"output_length":1}`+"\n", at)
	}
	if err := os.WriteFile(in, rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	got := make(chan []byte, 1)
	go func() {
		data, _ := os.ReadFile(pipe)
		got <- data
	}()
	for _, path := range []string{file, pipe} {
		if _, err := Convert([]string{in}, Options{ClockRestart: RestartSort}, Target{Path: path, Format: "trace"}); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if data := <-got; err != nil || !bytes.Equal(data, want) {
		t.Errorf("%d bytes came through the pipe, the file has %d (%v)", len(data), len(want), err)
	}
}

// TestExportThroughLink: the link stays and its file is replaced.
func TestExportThroughLink(t *testing.T) {
	dir := t.TempDir()
	in, file, link := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	for path, text := range map[string]string{in: goodRow + "\n", file: "old"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Convert([]string{in}, Options{}, Target{Path: link, Format: "mooncake"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if got, _ := os.ReadFile(file); string(got) != goodRow+"\n" {
		t.Errorf("the file behind the link holds %q", got)
	}
}

// TestCopyUntil: whole streams come over, and an interruption does not wait for
// a stream that stands still.
func TestCopyUntil(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	var got bytes.Buffer
	never := func() bool { return false }
	if err := CopyUntil(&got, io.MultiReader(bytes.NewReader(want[:7]), bytes.NewReader(want[7:])), never); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes of %d, %v", got.Len(), len(want), err)
	}
	broken := errors.New("broken")
	if err := CopyUntil(io.Discard, failing{broken}, never); !errors.Is(err, broken) {
		t.Errorf("a broken stream: %v", err)
	}
	r, w := io.Pipe()
	defer w.Close()
	var stop atomic.Bool
	time.AfterFunc(20*time.Millisecond, func() { stop.Store(true) })
	if err := CopyUntil(io.Discard, r, stop.Load); !errors.Is(err, ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
}
