package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"retrace/cmd/internal/cli"
	"retrace/record"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"trace-analyze": func() {
			os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs testdata/*.txtar: each shows calls, what they print and
// how they exit. The recordings that they read are made by writeRecordings.
func TestScripts(t *testing.T) {
	mooncake, err := filepath.Abs("../../../shared/data/mooncake/conversation_trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("MOONCAKE", mooncake)
			return writeRecordings(e.WorkDir)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "mooncake" {
				_, err := os.Stat(mooncake)
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"cut": cut, "canonical": canonical, "gzip": gzipFile},
	})
}

// gzip FILE makes FILE.gz.
func gzipFile(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	ts.Check(zip(path, path+".gz"))
}

// cut FILE N drops the last N bytes of a file.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	info, err := os.Stat(path)
	ts.Check(err)
	var n int64
	_, err = fmt.Sscan(args[1], &n)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()-n))
}

// canonical FILE writes a canonical trace of two equal prompts.
func canonical(ts *testscript.TestScript, _ bool, args []string) {
	w, err := record.Create(ts.MkAbs(args[0]), record.Header{Kind: record.KindTrace, BlockSize: 512, Source: "mooncake"})
	ts.Check(err)
	for i := range 2 {
		r := record.NewRequest()
		r.Row, r.Arrival = int64(i), time.Duration(i)*time.Second
		r.InputTokens, r.OutputTokens, r.Blocks = 1300, int64(4+i), []uint64{1, 2, 3}
		ts.Check(w.WriteRequest(&r))
	}
	ts.Check(w.Close(record.Footer{}))
}

const ms = time.Millisecond

// shard is a recording of one process of a run.
func shard(runID string, i, n int) record.Header {
	return record.Header{Kind: record.KindRecording, RunID: runID, Run: &record.Run{
		URLs: []string{"http://localhost:8000"}, Speed: 1, Shard: i, Shards: n, MaxLag: 10 * ms, Planned: 3,
	}}
}

// answer is a completed request: due at k seconds, first output after ttft,
// n outputs in all, 20 ms apart.
func answer(k int, ttft time.Duration, n int) record.Result {
	r := record.NewResult()
	r.ID, r.State, r.Status = fmt.Sprint(k), record.Completed, 200
	r.Scheduled = time.Duration(k) * time.Second
	r.Granted, r.Sent = r.Scheduled, r.Scheduled+ms
	r.FirstByte, r.FirstOutput = r.Sent+ttft, r.Sent+ttft
	r.LastOutput = r.FirstOutput + time.Duration(n-1)*20*ms
	r.End = r.LastOutput
	for range n - 1 {
		r.Gaps = append(r.Gaps, record.Gap{Wait: 20 * ms, Tokens: 1})
	}
	r.WantedInput, r.PromptTokens, r.PredictedHit, r.CachedTokens = 100, 100, 32, 32
	r.WantedOutput, r.CompletionTokens, r.CountedOutput = int64(n), int64(n), int64(n)
	return r
}

func refused(k int) record.Result {
	r := record.NewResult()
	r.ID, r.State, r.Class, r.Status = fmt.Sprint(k), record.Failed, record.ClassHTTP5xx, 503
	r.Scheduled = time.Duration(k) * time.Second
	r.Granted, r.Sent = r.Scheduled, r.Scheduled+ms
	return r
}

// writeRecordings writes what the scripts read: run.rec, the two shards of
// the same requests, a repeat, one where all failed, one that was interrupted,
// and run.rec compressed.
func writeRecordings(dir string) error {
	list := []record.Result{
		answer(0, 100*ms, 11), answer(1, 200*ms, 6), refused(2), answer(3, 150*ms, 1), answer(4, 120*ms, 21), answer(5, 110*ms, 3),
	}
	whole := shard("run-a", 0, 1)
	whole.Run.Planned = 6
	repeat := whole
	repeat.RunID = "run-b"
	for _, f := range []struct {
		name    string
		header  record.Header
		results []record.Result
		footer  record.Footer
	}{
		{"run.rec", whole, list, record.Footer{}},
		{"shard0.rec", shard("run-a", 0, 2), []record.Result{list[0], list[2], list[4]}, record.Footer{}},
		{"shard1.rec", shard("run-a", 1, 2), []record.Result{list[1], list[3], list[5]}, record.Footer{}},
		{"repeat.rec", repeat, list, record.Footer{}},
		{"failed.rec", shard("run-c", 0, 1), []record.Result{refused(0), refused(1), refused(2)}, record.Footer{}},
		{"interrupted.rec", shard("run-d", 0, 1), list[:2], record.Footer{Interrupted: true}},
	} {
		if err := writeRecording(filepath.Join(dir, f.name), f.header, f.results, f.footer); err != nil {
			return err
		}
	}
	return zip(filepath.Join(dir, "run.rec"), filepath.Join(dir, "run.rec.gz"))
}

func writeRecording(path string, h record.Header, results []record.Result, f record.Footer) error {
	w, err := record.CreateRecording(path, h, false)
	if err != nil {
		return err
	}
	for i := range results {
		if err := w.WriteResult(&results[i]); err != nil {
			return err
		}
	}
	return w.Close(f)
}

func zip(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(b); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, buf.Bytes(), 0o644)
}

func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	var list []record.Result
	for k := range 2 * checkEvery {
		list = append(list, answer(k, ms, 2))
	}
	path := filepath.Join(dir, "long.rec")
	if err := writeRecording(path, shard("run", 0, 1), list, record.Footer{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{path}, nil, &stdout, &stderr); code != cli.Interrupted {
		t.Errorf("exit status %d, want %d", code, cli.Interrupted)
	}
	if stdout.Len() > 0 || stderr.String() != "trace-analyze: error: interrupted\n" {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
}

// TestExitCodes has one call for each status of CLI.md.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	if err := writeRecordings(dir); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const row = `{"timestamp": 0, "input_length": 600, "output_length": 10, "hash_ids": [1, 2]}` + "\n"
	write("good.jsonl", row)
	write("bad.jsonl", row+"{}\n")
	write("empty.jsonl", "")
	whole, err := os.ReadFile(filepath.Join(dir, "run.rec"))
	if err != nil {
		t.Fatal(err)
	}
	write("cut.rec", string(whole[:len(whole)-20]))
	write("head.rec", string(whole[:30]))
	t.Chdir(dir)
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"good.jsonl"}, cli.Done},
		{[]string{"run.rec"}, cli.Done},
		{[]string{"failed.rec"}, cli.Done},
		{[]string{"interrupted.rec"}, cli.Done},
		{[]string{"compare", "run.rec", "failed.rec"}, cli.Done},
		{[]string{"--help"}, cli.Done},
		{[]string{"bad.jsonl"}, cli.Failed},
		{[]string{"empty.jsonl"}, cli.Failed},
		{[]string{"missing.jsonl"}, cli.Failed},
		{[]string{"head.rec"}, cli.Failed},
		{[]string{"run.rec", "repeat.rec"}, cli.Failed},
		{[]string{}, cli.Usage},
		{[]string{"good.jsonl", "--nonsense"}, cli.Usage},
		{[]string{"good.jsonl", "--slo", "ttft=1s"}, cli.Usage},
		{[]string{"good.jsonl", "run.rec"}, cli.Usage},
		{[]string{"hash-blocks"}, cli.Usage},
		{[]string{"bad.jsonl", "--bad-lines", "skip"}, cli.Losses},
		{[]string{"cut.rec"}, cli.Losses},
		{[]string{"compare", "run.rec", "cut.rec"}, cli.Losses},
	} {
		var stdout, stderr bytes.Buffer
		if got := run(context.Background(), c.args, nil, &stdout, &stderr); got != c.want {
			t.Errorf("trace-analyze %q: exit status %d, want %d; stderr: %s", c.args, got, c.want, stderr.String())
		}
		if c.want == cli.Failed && stdout.Len() > 0 {
			t.Errorf("trace-analyze %q: a failed analysis prints %q", c.args, stdout.String())
		}
	}
}

// TestNoTempFilesStay: standard input and compressed recordings go through
// temporary files, which are gone afterwards.
func TestNoTempFilesStay(t *testing.T) {
	dir := t.TempDir()
	if err := writeRecordings(dir); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	in, err := os.Open(filepath.Join(dir, "run.rec"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var stdout, stderr bytes.Buffer
	for _, args := range [][]string{{"-"}, {filepath.Join(dir, "run.rec.gz")}} {
		if code := run(context.Background(), args, in, &stdout, &stderr); code != cli.Done {
			t.Errorf("%q: exit status %d: %s", args, code, stderr.String())
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// TestPackedRecording: a recording that was compressed once more is read, by
// name and from standard input.
func TestPackedRecording(t *testing.T) {
	dir := t.TempDir()
	if err := writeRecordings(dir); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "run.rec")
	data, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	if _, err := gz.Write(data); err != nil || gz.Close() != nil {
		t.Fatal(err)
	}
	want := outputOf(t, nil, plain)
	for name, packed := range map[string][]byte{"gzip": zipped.Bytes(), "zstd": z.EncodeAll(data, nil)} {
		path := filepath.Join(t.TempDir(), "run.rec")
		if err := os.WriteFile(path, packed, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := outputOf(t, nil, path); got != want {
			t.Errorf("%s by name: %s", name, got)
		}
		if got := outputOf(t, bytes.NewReader(packed), "-"); got != want {
			t.Errorf("%s from standard input: %s", name, got)
		}
	}
}

// TestCutPackedRecording: what is left of a packed recording is analysed, and
// that something is missing is said.
func TestCutPackedRecording(t *testing.T) {
	dir := t.TempDir()
	if err := writeRecordings(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run.rec.gz")
	data, err := os.ReadFile(filepath.Join(dir, "run.rec"))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes()[:packed.Len()-60], 0o600); err != nil { // into the footer
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"--json", path}, nil, &stdout, &stderr); code != cli.Losses {
		t.Errorf("exit status %d\n%s", code, &stderr)
	}
	if !strings.Contains(stderr.String(), "cut short") || !strings.Contains(stdout.String(), `"total": 6`) {
		t.Errorf("%s%s", &stdout, &stderr)
	}
}

func outputOf(t *testing.T, stdin io.Reader, path string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"--json", path}, stdin, &stdout, &stderr); code != cli.Done {
		t.Errorf("%s: exit status %d\n%s", path, code, &stderr)
	}
	return stdout.String()
}

// TestInterruptedInput: a signal ends the wait for an input that never comes.
func TestInterruptedInput(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, stop)
	var stderr bytes.Buffer
	if code := run(ctx, []string{"-"}, r, io.Discard, &stderr); code != cli.Interrupted {
		t.Errorf("exit status %d\n%s", code, &stderr)
	}
}
