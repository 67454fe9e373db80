package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// flushEvery is how often a recording's unfinished chunks are written, so that
// what is lost by a kill is less than a second.
const flushEvery = 500 * time.Millisecond

// FileWriter writes a container file. Its methods may be called from any
// goroutine. The first error sticks; what was on disk before it stays readable.
type FileWriter struct {
	mu     sync.Mutex
	w      *Writer
	f      *os.File
	path   string // the final name
	temp   string // the name until Close, "" where written in place
	header Header
	stop   chan struct{} // ends the flusher of a recording
	done   chan struct{} // the flusher has ended
	closed bool
}

// Create starts a trace. It is written under a temporary name beside path and
// takes path's place at Close; Abort leaves path as it was. A path that is no
// regular file (a pipe, a device) is written directly.
func Create(path string, h Header) (*FileWriter, error) {
	target, direct, err := OutputPath(path)
	switch {
	case err != nil:
		return nil, err
	case direct:
		return startFile(path, "", h, os.O_WRONLY)
	}
	for n := 0; ; n++ {
		temp := filepath.Join(filepath.Dir(target), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(target), os.Getpid(), n))
		w, err := startFile(target, temp, h, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		return w, err
	}
}

// CreateRecording starts a file under its final name. Chunks are written at
// 4,096 records or after half a second, so that a killed process loses no
// more; a clean Close rewrites the file into full chunks. An existing file is
// refused without force.
func CreateRecording(path string, h Header, force bool) (*FileWriter, error) {
	flags := os.O_CREATE | os.O_EXCL | os.O_WRONLY
	if force {
		flags = os.O_CREATE | os.O_TRUNC | os.O_WRONLY
	}
	w, err := startFile(path, "", h, flags)
	if err != nil {
		return nil, err
	}
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	go w.flusher()
	return w, nil
}

func startFile(path, temp string, h Header, flags int) (*FileWriter, error) {
	name := path
	if temp != "" {
		name = temp
	}
	f, err := os.OpenFile(name, flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	w, err := NewWriter(f, h)
	if err != nil {
		_ = f.Close() // the header's error is the one to tell
		if flags&os.O_EXCL != 0 {
			_ = os.Remove(name)
		}
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return &FileWriter{w: w, f: f, path: path, temp: temp, header: h}, nil
}

// flusher writes unfinished chunks until the file is closed.
func (w *FileWriter) flusher() {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
			_ = w.Flush() // the error sticks, the next call tells it
		}
	}
}

// do runs one call under the lock and names the file in its error.
func (w *FileWriter) do(call func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := call(); err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	return nil
}

// WriteRequest adds a request. r may be used again at once.
func (w *FileWriter) WriteRequest(r *Request) error {
	return w.do(func() error { return w.w.WriteRequest(r) })
}

// WriteResult adds a result; its times are cut to whole microseconds. r may be
// used again at once.
func (w *FileWriter) WriteResult(r *Result) error {
	return w.do(func() error { return w.w.WriteResult(r) })
}

// WriteSeries adds a series. s may be used again at once.
func (w *FileWriter) WriteSeries(s *Series) error {
	return w.do(func() error { return w.w.WriteSeries(s) })
}

// Flush writes the chunks that have records.
func (w *FileWriter) Flush() error { return w.do(w.w.Flush) }

// halt ends the flusher and says whether the file is still to be closed.
func (w *FileWriter) halt() bool {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.mu.Unlock()
	if !closed && w.stop != nil {
		close(w.stop)
		<-w.done
	}
	return !closed
}

// Close completes the file and gives it its final form and name. Where it
// fails, a trace leaves no file; of a recording stays what could be written.
func (w *FileWriter) Close(f Footer) error {
	if !w.halt() {
		return fmt.Errorf("%s: %w", w.path, errWriterClosed)
	}
	err := w.do(func() error { return w.w.Close(f) })
	if cerr := w.f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("close %s: %w", w.path, cerr)
	}
	switch {
	case err != nil:
		w.removeTemp()
		return err
	case w.temp != "":
		if err := os.Rename(w.temp, w.path); err != nil {
			w.removeTemp()
			return fmt.Errorf("name %s: %w", w.path, err)
		}
	case w.stop != nil:
		// Failing to compact costs nothing but size, unless it shows a fault of ours.
		if err := w.compact(f); errors.Is(err, errCompact) {
			return err
		}
	}
	return nil
}

// Abort gives the file up: a trace leaves path as it was, a recording is removed.
func (w *FileWriter) Abort() error {
	if !w.halt() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.w.discard()
	_ = w.f.Close() // it is removed
	w.removeTemp()
	if info, err := os.Stat(w.path); w.stop == nil || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if err := os.Remove(w.path); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return nil
}

func (w *FileWriter) removeTemp() {
	if w.temp != "" {
		_ = os.Remove(w.temp) // best effort: it is of no use to anyone
	}
}
