package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"retrace/analysis"
	"retrace/record"
	"retrace/replay"
)

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// traceFile writes n rows, one each gap.
func traceFile(t *testing.T, n int, gap time.Duration) string {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 4, "output_length": 1, "hash_ids": [%d]}`+"\n", int64(i)*gap.Milliseconds(), i)
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// mock answers generation with h and lists one model.
func mock(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"id":"m"}]}`) })
	mux.HandleFunc("POST /v1/completions", h)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func ok(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"x\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
}

func TestFailuresExitWith3(t *testing.T) {
	n := 0
	url := mock(t, func(w http.ResponseWriter, r *http.Request) {
		if n++; n%2 == 0 {
			w.WriteHeader(503)
			return
		}
		ok(w, r)
	})
	code, out, errs := replayHere(t, traceFile(t, 4, 0), "--url", url, "--json", "--max-concurrency", "1", "--max-lag", "10s")
	var report struct {
		Requests map[string]int64
		Errors   map[string]int64
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if code != exitLoss || report.Errors["http_5xx"] != 2 || report.Requests["completed"] != 2 || report.Requests["total"] != 4 {
		t.Errorf("exit %d, %+v", code, report)
	}
	if !strings.Contains(errs, "2 of 4 requests failed") || !strings.Contains(errs, "first http_5xx: HTTP 503") {
		t.Errorf("stderr: %s", errs)
	}
}

// M02: nothing came through; the report is whole all the same.
func TestAllFailed(t *testing.T) {
	url := mock(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) })
	code, out, _ := replayHere(t, traceFile(t, 3, 0), "--url", url, "--json", "--max-lag", "10s")
	if code != exitLoss || !strings.Contains(out, `"http_429": 3`) || strings.Contains(out, "NaN") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// R01, and the order of exit codes: a schedule that cannot be kept is 4, even
// where requests failed too.
func TestScheduleNotKept(t *testing.T) {
	url := mock(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	code, out, _ := replayHere(t, traceFile(t, 5, 0), "--url", url, "--max-lag", "1ns")
	first, _, _ := strings.Cut(out, "\n")
	if code != exitLimit || !strings.Contains(strings.ToLower(first), "schedule not kept") {
		t.Errorf("exit %d, first line %q", code, first)
	}
}

func TestMaxDurationIsNoLoss(t *testing.T) {
	code, out, _ := replayHere(t, traceFile(t, 100, 50*time.Millisecond), "--url", mock(t, ok), "--max-duration", "300ms", "--json", "--max-lag", "10s")
	if code != exitOK || !strings.Contains(out, `"total": 100`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestExitCode(t *testing.T) {
	kept, late := true, false
	for _, c := range []struct {
		out  replay.Outcome
		kept *bool
		err  error
		want int
	}{
		{replay.Outcome{}, nil, nil, exitOK},
		{replay.Outcome{}, &kept, nil, exitOK},
		{replay.Outcome{Failed: 1}, &kept, nil, exitLoss},
		{replay.Outcome{Failed: 1}, &late, nil, exitLimit},
		{replay.Outcome{Failed: 1}, &late, io.ErrShortWrite, exitFailed},
		{replay.Outcome{Interrupted: true, NotSent: 1}, &late, io.ErrShortWrite, exitInterrupted},
	} {
		if got := exitCode(&c.out, &analysis.RunReport{ScheduleKept: c.kept}, c.err); got != c.want {
			t.Errorf("%+v: got %d, want %d", c, got, c.want)
		}
	}
}

// child starts the command as a process of its own, by way of TestMain.
func child(t *testing.T, before string, args ...string) (*exec.Cmd, *syncBuffer, *syncBuffer) {
	t.Helper()
	exe, err := exec.LookPath("trace-replay") // testscript.Main puts it there
	if err != nil {
		t.Skip("the command is not on PATH: ", err)
	}
	var out, errs syncBuffer
	cmd := exec.Command("sh", append([]string{"-c", before + `exec "$0" "$@"`, exe}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // mostly gone by then
	return cmd, &out, &errs
}

// results reads a recording as far as it goes.
func results(t *testing.T, path string) (list []record.Result, footer bool) {
	t.Helper()
	r, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // opened to read
	for res, err := range r.Results() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, res)
	}
	_, footer = r.Footer()
	return list, footer
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for ", what)
		}
	}
}

// R16: signals at half time.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name    string
		signals []os.Signal
		code    int
		closed  bool
	}{
		{"SIGINT", []os.Signal{os.Interrupt}, exitInterrupted, true},
		{"SIGTERM", []os.Signal{syscall.SIGTERM}, exitInterrupted, true},
		{"SIGINT twice", []os.Signal{os.Interrupt, os.Interrupt}, exitInterrupted, false},
		{"SIGKILL", []os.Signal{os.Kill}, -1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			asked := 0
			hang := make(chan struct{})
			url := mock(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked++
				last := asked > 100
				mu.Unlock()
				if last && len(c.signals) == 2 {
					_, _ = io.Copy(io.Discard, r.Body)
					select {
					case <-hang:
					case <-r.Context().Done():
					}
					return
				}
				ok(w, r)
			})
			defer close(hang)
			rec := filepath.Join(t.TempDir(), "run.rec")
			cmd, out, errs := child(t, "", traceFile(t, 4000, 10*time.Millisecond), "--url", url, "-o", rec, "--grace", "5s")
			waitFor(t, "150 requests", func() bool { mu.Lock(); defer mu.Unlock(); return asked > 250 })
			for _, s := range c.signals {
				_ = cmd.Process.Signal(s)
				time.Sleep(200 * time.Millisecond)
			}
			_ = cmd.Wait() // the code says it
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, errs)
			}
			list, footer := results(t, rec)
			if footer != c.closed || c.closed && len(list) != 4000 || !c.closed && len(list) < 90 {
				t.Errorf("%d results, footer %v", len(list), footer)
			}
			if c.closed && !strings.Contains(out.String(), "of 4000") {
				t.Errorf("summary: %s", out)
			}
		})
	}
}

// A recording that cannot be written ends the run with 1, and the summary is
// printed all the same. (A limit of the file's size stands in for a full disk.)
func TestRecordingCannotBeWritten(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "run.rec")
	cmd, out, errs := child(t, "ulimit -f 1; ", traceFile(t, 3000, time.Millisecond), "--url", mock(t, ok), "-o", rec)
	_ = cmd.Wait() // the code says it
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(errs.String(), "file too large") || !strings.Contains(out.String(), "of 3000") {
		t.Errorf("exit %d: %s %s", code, errs, out)
	}
}

// R06: the limit of descriptors is named, and running into it is the client's fault.
func TestDescriptors(t *testing.T) {
	url := mock(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(300 * time.Millisecond)
		ok(w, r)
	})
	cmd, out, errs := child(t, "ulimit -n 64; ", traceFile(t, 200, 0), "--url", url, "--json")
	_ = cmd.Wait() // the code says it
	if !strings.Contains(errs.String(), "needs about 232 file descriptors at most, limit 64") {
		t.Errorf("stderr: %s", errs)
	}
	if !strings.Contains(out.String(), `"client_limit"`) || strings.Contains(out.String(), `"connect"`) {
		t.Errorf("stdout: %s", out)
	}
}

// A reader that goes away must not cost the recording.
func TestClosedStdout(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "run.rec")
	exe, err := exec.LookPath("trace-replay")
	if err != nil {
		t.Skip("the command is not on PATH: ", err)
	}
	cmd := exec.Command("sh", "-c", `"$0" "$@" 2>/dev/null | true`, exe, traceFile(t, 20, time.Millisecond), "--url", mock(t, ok), "-o", rec)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if list, footer := results(t, rec); len(list) != 20 || !footer {
		t.Errorf("%d results, footer %v", len(list), footer)
	}
}

func TestRecordingHasItsRun(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "run.rec")
	url := mock(t, ok)
	before := time.Now()
	code, _, errs := replayHere(t, traceFile(t, 20, time.Millisecond), "--url", url, "-o", rec, "--speed", "2", "--salt", "s", "--shard", "0/2", "--max-lag", "10s")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // opened to read
	h := r.Header()
	run := h.Run
	if h.Kind != record.KindRecording || h.RunID == "" || run == nil {
		t.Fatalf("header %+v", h)
	}
	list, _ := results(t, rec)
	if run.Model != "m" || run.URLs[0] != url || run.Speed != 2 || run.Salt != "s" || run.Shards != 2 || run.Planned != int64(len(list)) ||
		run.API != "completions" || run.Prompt != "tokens" || run.Sessions != "open" || run.Start.Before(before) || run.MaxLag != 10*time.Second {
		t.Errorf("run %+v, %d results", run, len(list))
	}
}
