package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"retrace/formats"
	"retrace/record"
	"retrace/record/capture"
)

// Whatever the queue does, the traffic goes on, and what is dropped is counted
// where it can be seen.
func TestQueueFull(t *testing.T) {
	r := newRig(t, says("text/event-stream", event+finished+done), nil)
	rec := r.proxy.recorder
	r.post("/v1/completions", `{"prompt":[1]}`)
	for rec.stats.written.Load() == 0 { // the writer is idle
		time.Sleep(time.Millisecond)
	}
	// The writer is kept from its queue by one without room.
	full := make(chan *exchange)
	rec.entry.Lock()
	queue := rec.queue
	rec.queue = full
	rec.entry.Unlock()
	for range 3 {
		if status, _ := r.post("/v1/completions", `{"prompt":[1]}`); status != 200 {
			t.Fatalf("got %d", status)
		}
	}
	r.client.CloseIdleConnections()
	r.proxy.Wait()
	rec.entry.Lock()
	rec.queue = queue
	rec.entry.Unlock()
	if page := r.proxy.exposition(); !strings.Contains(page, `trace_record_dropped_total{reason="queue_full"} 3`) {
		t.Errorf("metrics:\n%s", page)
	}
	if n := rec.held.used.Load(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
	if n := len(r.records()); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	rd, err := record.Open(r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if f, ok := rd.Footer(); !ok || f.Dropped["queue_full"] != 3 {
		t.Errorf("footer %+v, %v", f, ok)
	}
}

// A disk that is full ends the recording, and says so once; the traffic goes on.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	var mu sync.Mutex
	var warnings []string
	path := t.TempDir() + "/out.trace"
	r := newRig(t, says("application/json", whole), func(c *Config) {
		c.Output = path
		c.Warn = func(s string) { mu.Lock(); defer mu.Unlock(); warnings = append(warnings, s) }
	})
	r.post("/v1/completions", `{"prompt":[1]}`)
	for r.proxy.recorder.stats.written.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	r.proxy.recorder.fail(fmt.Errorf("%s: %w", path, syscall.ENOSPC))
	for range 3 {
		if status, answer := r.post("/v1/completions", `{"prompt":[1]}`); status != 200 || answer != whole {
			t.Errorf("got %d %s", status, answer)
		}
	}
	r.closed = true
	r.client.CloseIdleConnections()
	r.front.Close()
	r.proxy.Wait()
	if err := r.proxy.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	if _, dropped := r.proxy.Written(); dropped["write_failed"] != 3 {
		t.Errorf("dropped %v, want 3", dropped)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "no space left") {
		t.Errorf("warnings %q", warnings)
	}
}

// What was answered half a second ago is in the file, whatever becomes of the
// process.
func TestInPlace(t *testing.T) {
	r := newRig(t, says("application/json", whole), nil)
	r.post("/v1/completions", `{"prompt":[1,2,3,4,5]}`)
	var n int
	for deadline := time.Now().Add(10 * time.Second); n == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		rd, err := record.Open(r.path)
		if err != nil {
			t.Fatal(err)
		}
		for q, err := range rd.Requests() {
			if h := rd.Header(); err == nil && len(q.Blocks) == 2 && h.TokensPerBlock() == 4 {
				n++
			}
		}
		rd.Close()
	}
	if n != 1 {
		t.Errorf("%d records in the open file, want 1", n)
	}
}

// Records end in the order of arrival, with equal prefixes under equal numbers.
func TestOrder(t *testing.T) {
	slow := make(chan struct{})
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if bytes.Contains(body, []byte("[9")) {
			<-slow
		}
		_, _ = io.WriteString(w, whole)
	}), nil)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { defer wg.Done(); r.post("/v1/completions", `{"prompt":[9,9,9,9,1]}`) }()
	for r.proxy.counts.inFlight.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
	r.post("/v1/completions", `{"prompt":[1,2,3,4,5]}`)
	r.post("/v1/completions", `{"prompt":[1,2,3,4,6]}`)
	close(slow)
	wg.Wait()
	all := r.records()
	if len(all) != 3 || all[0].Row != 0 || all[1].Row != 1 || all[2].Row != 2 {
		t.Fatalf("got %+v", all)
	}
	if a, b, c := all[0].Blocks, all[1].Blocks, all[2].Blocks; b[0] != c[0] || b[1] == c[1] || a[0] == b[0] {
		t.Errorf("blocks %v, %v, %v", a, b, c)
	}
}

// The header says what was kept, and of what the blocks are.
func TestHeader(t *testing.T) {
	for _, c := range []struct {
		mode capture.Mode
		body string
		unit string
		size int
	}{
		{capture.Blocks, `{"prompt":"sixteen letters."}`, "bytes", 16}, // 4 bytes for each of 4 tokens
		{capture.Blocks, `{"prompt":[1,2]}`, "", 4},
		{capture.Lengths, `{"prompt":"sixteen letters."}`, "", 0},
	} {
		r := newRig(t, says("application/json", whole), func(cfg *Config) { cfg.Capture = c.mode })
		before := time.Now()
		r.post("/v1/completions", c.body)
		r.records()
		rd, err := record.Open(r.path)
		if err != nil {
			t.Fatal(err)
		}
		h := rd.Header()
		rd.Close()
		if h.Kind != record.KindTrace || h.Capture != string(c.mode) || h.BlockUnit != c.unit || h.BlockSize != c.size || h.Namespace == "" {
			t.Errorf("%s: header %+v", c.body, h)
		}
		if c.unit != "" && h.BytesPerToken != 16.0/9 { // whole has 9 prompt tokens
			t.Errorf("%v bytes a token", h.BytesPerToken)
		}
		if at := time.Unix(0, int64(h.Origin)); !h.Wall || before.Sub(at).Abs() > time.Minute {
			t.Errorf("origin %v, now %v", at, before)
		}
	}
}

// Rotation makes files that are complete, each, and one trace together.
func TestRotation(t *testing.T) {
	r := newRig(t, says("application/json", whole), func(c *Config) { c.RotateEvery = time.Nanosecond })
	for i := range 3 {
		r.post("/v1/completions", fmt.Sprintf(`{"prompt":[1,2,3,4,%d]}`, i))
	}
	r.finish()
	base := strings.TrimSuffix(r.path, ".trace")
	if _, err := os.Stat(r.path); err == nil {
		t.Errorf("%s was written too", r.path)
	}
	// Each record but the first finds its file old, and gets another.
	var ids []uint64
	var namespace string
	var paths []string
	for i := range 3 {
		paths = append(paths, fmt.Sprintf("%s.%04d.trace", base, i+1))
		rd, err := record.Open(paths[i])
		if err != nil {
			t.Fatal(err)
		}
		f, ok := rd.Footer()
		if !ok || f.Requests != 1 {
			t.Errorf("file %d: footer %+v, %v", i+1, f, ok)
		}
		for q, err := range rd.Requests() {
			if err != nil || q.Row != int64(i) {
				t.Errorf("file %d: row %d, %v", i+1, q.Row, err)
			}
			ids = append(ids, q.Blocks...)
		}
		if h := rd.Header(); namespace != "" && namespace != h.Namespace {
			t.Errorf("file %d has another namespace", i+1)
		} else {
			namespace = h.Namespace
		}
		rd.Close()
	}
	if left, _ := os.ReadDir(filepath.Dir(r.path)); len(left) != 3 {
		t.Errorf("found %v, want 3 files", left)
	}
	trace, err := formats.Open(paths, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	for q, err := range trace.Requests() {
		if err != nil || len(q.Blocks) != 2 || q.Blocks[0] != 0 {
			t.Errorf("together: %v, %v", q.Blocks, err)
		}
	}
	if want := "[0 1 0 2 0 3]"; fmt.Sprint(ids) != want {
		t.Errorf("blocks %v, want %s", ids, want)
	}
	if _, err := New(Config{
		Upstream: r.proxy.upstream, Output: r.path, RotateSize: 1, Capture: capture.Blocks, BlockSize: 4, Salt: capture.NewSalt(),
	}); !errors.Is(err, os.ErrExist) {
		t.Errorf("files of an earlier recording: %v", err)
	}
}
