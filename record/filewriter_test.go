package record

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func resultAt(i int) Result {
	r := NewResult()
	r.Scheduled = time.Duration(i) * time.Millisecond
	r.WantedInput = int64(i)
	return r
}

func readResults(t *testing.T, path string) ([]Result, *Reader) {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := collect(r.Results())
	if err != nil {
		t.Fatal(err)
	}
	return got, r
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// A trace takes its place only when it is complete.
func TestCreateReplacesAtClose(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.trace")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path, Header{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Create(path, Header{}) // a second writer gets a name of its own
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Abort(); err != nil {
		t.Fatal(err)
	}
	r := NewRequest()
	if err := w.WriteRequest(&r); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("before Close the file holds %q", b)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); !slices.Equal(got, []string{"a.trace"}) {
		t.Errorf("files are %v", got)
	}
	if err := w.Close(Footer{}); err == nil {
		t.Error("closed twice")
	}
	if err := w.Abort(); err != nil {
		t.Error("Abort after Close is to do nothing:", err)
	}
	rd, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	for range 2 { // a file can be read again
		if got, err := collect(rd.Requests()); err != nil || len(got) != 1 || rd.Loss() != nil {
			t.Error(got, err, rd.Loss())
		}
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, create := range []func() (*FileWriter, error){
		func() (*FileWriter, error) { return Create(filepath.Join(dir, "a.trace"), Header{}) },
		func() (*FileWriter, error) {
			return CreateRecording(filepath.Join(dir, "a.rec"), Header{Kind: KindRecording}, false)
		},
	} {
		w, err := create()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
		if got := entries(t, dir); len(got) != 0 {
			t.Errorf("files are %v", got)
		}
	}
}

func TestRecordingRefusesAnExistingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.rec")
	for i, force := range []bool{false, false, true} {
		w, err := CreateRecording(path, Header{Kind: KindRecording}, force)
		if i == 1 {
			if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one that names the file", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(Footer{}); err != nil {
			t.Fatal(err)
		}
	}
}

// What was written is on disk within a second, without Close; from many
// goroutines at once.
func TestRecordingIsFlushed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.rec")
	w, err := CreateRecording(path, Header{Kind: KindRecording}, false)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			r := resultAt(i)
			if err := w.WriteResult(&r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	deadline := time.Now().Add(5 * time.Second)
	for {
		got, r := readResults(t, path)
		if len(got) == 100 && r.Loss() != nil && r.Loss().Lost == Unknown {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of 100 results are on disk, loss %v", len(got), r.Loss())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := w.Close(Footer{Interrupted: true}); err != nil {
		t.Fatal(err)
	}
	got, r := readResults(t, path)
	footer, ok := r.Footer()
	if len(got) != 100 || r.Loss() != nil || !ok || !footer.Interrupted || footer.Results != 100 {
		t.Error(len(got), r.Loss(), footer, ok)
	}
}

// A recording of many small chunks is compacted into full ones; nothing of it
// changes but its size.
func TestRecordingIsCompacted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.rec")
	w, err := CreateRecording(path, Header{Kind: KindRecording, RunID: "x"}, false)
	if err != nil {
		t.Fatal(err)
	}
	var want []Result
	for i := range 5000 {
		r := resultAt(i)
		want = append(want, r)
		if err := w.WriteResult(&r); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			q := NewRequest()
			q.Row = int64(i)
			if err := errors.Join(w.WriteRequest(&q), w.Flush()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.WriteSeries(&Series{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Footer{Notes: []string{"kept"}}); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if after.Size() > before.Size()/2 {
		t.Errorf("%d bytes before, %d after", before.Size(), after.Size())
	}
	got, r := readResults(t, path)
	expect(t, got, want, sameResult)
	footer, _ := r.Footer()
	if footer.Requests != 50 || footer.Results != 5000 || footer.Series != 1 || footer.Notes[0] != "kept" || r.Header().RunID != "x" {
		t.Errorf("%+v, %+v", footer, r.Header())
	}
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("files are %v", got)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(frameOffsets(t, b)); n != 1+1+2+1+2 {
		t.Errorf("%d frames, want header, 1 chunk of requests, 2 of results, 1 of series, footer, seek table", n)
	}
}

// TestKilledRecorder is the process that TestKill kills.
func TestKilledRecorder(t *testing.T) {
	path := os.Getenv("RETRACE_TEST_RECORD")
	if path == "" {
		t.Skip("only as a child of TestKill")
	}
	w, err := CreateRecording(path, Header{Kind: KindRecording}, false)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := 0; ; i++ {
		r := resultAt(i)
		r.Sent = time.Since(start)
		if err := w.WriteResult(&r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// After kill -9 everything is there but the last second.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "killed.rec")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledRecorder$")
	cmd.Env = append(os.Environ(), "RETRACE_TEST_RECORD="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(path); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	begun := time.Now()
	time.Sleep(2200 * time.Millisecond)
	ran := time.Since(begun)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	got, r := readResults(t, path)
	if r.Loss() == nil {
		t.Error("the loss is not told")
	}
	for i := range got {
		if got[i].WantedInput != int64(i) {
			t.Fatalf("result %d is number %d", i, got[i].WantedInput)
		}
	}
	if len(got) == 0 || got[len(got)-1].Sent < ran-time.Second {
		t.Errorf("%d results, the last of %v, of a run of %v", len(got), got[max(len(got)-1, 0)].Sent, ran)
	}
}

// A full disk is told once and for all, with the file's name, and leaves what
// was written before.
func TestFullDisk(t *testing.T) {
	disk := fullDisk(t)
	if _, err := Create(disk, Header{}); err == nil || !strings.Contains(err.Error(), disk) {
		t.Errorf("create on a full disk: %v", err)
	}
	path := filepath.Join(t.TempDir(), "a.rec")
	w, err := CreateRecording(path, Header{Kind: KindRecording}, false)
	if err != nil {
		t.Fatal(err)
	}
	r := resultAt(0)
	if err := errors.Join(w.WriteResult(&r), w.Flush()); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	w.mu.Lock()
	w.w.w = full
	w.mu.Unlock()
	var first error
	for range 3 {
		err := errors.Join(w.WriteResult(&r), w.Flush())
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no space left") {
			t.Fatalf("error %v, want one that names file and cause", err)
		}
		if first == nil {
			first = err
		}
	}
	if err := w.Close(Footer{}); err == nil {
		t.Error("Close does not tell")
	}
	got, rd := readResults(t, path)
	if len(got) != 1 || rd.Loss() == nil {
		t.Errorf("%d results, loss %v", len(got), rd.Loss())
	}
}

// Paths that cannot be written or read say which.
func TestPathErrors(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "no", "such", "x.trace")
	for name, call := range map[string]func() error{
		missing: func() error { _, err := Create(missing, Header{}); return err },
		dir:     func() error { _, err := Create(dir, Header{}); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("create %s: %v", name, err)
		}
	}
	for _, path := range []string{missing, dir} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("open %s: %v", path, err)
		}
	}
	if _, err := Create(filepath.Join(dir, "x"), Header{Kind: "nonsense"}); err == nil {
		t.Error("a header of kind nonsense was taken")
	}
	if got := entries(t, dir); len(got) != 0 {
		t.Errorf("files are %v", got)
	}
}

// A named pipe is written and read directly.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Skipf("no named pipes here: %s", out)
	}
	failed := make(chan error, 1)
	go func() {
		w, err := Create(path, Header{})
		if err == nil {
			r := NewRequest()
			err = errors.Join(w.WriteRequest(&r), w.Close(Footer{}))
		}
		failed <- err
	}()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := collect(r.Requests())
	if err := errors.Join(err, <-failed); err != nil || len(got) != 1 || r.Loss() != nil {
		t.Error(err, len(got), r.Loss())
	}
}
