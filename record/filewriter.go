package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	out    *Output
	header Header
	stop   chan struct{} // ends the flusher of a recording
	done   chan struct{} // the flusher has ended
	closed bool
}

// Create starts a trace, as an Output: it takes path's place at Close; Abort
// leaves path as it was.
func Create(path string, h Header) (*FileWriter, error) {
	out, err := CreateOutput(path)
	if err != nil {
		return nil, err
	}
	w, err := startFile(out, h)
	if err != nil {
		_ = out.Abort() // the header's error is the one to tell
		return nil, fmt.Errorf("create output %s: %w", path, err)
	}
	return w, nil
}

// CreateRecording starts a file under its final name; whatever h.Kind says, the
// header's is KindRecording. Chunks are written at 4,096 records or after half
// a second, so that a killed process loses no more; a clean Close rewrites the
// file into full chunks. An existing file is refused without force.
func CreateRecording(path string, h Header, force bool) (*FileWriter, error) {
	h.Kind = KindRecording
	return createLive(path, h, force)
}

// CreateLive starts a trace of live traffic, written as CreateRecording's file
// is. A clean Close orders its requests by arrival, too.
func CreateLive(path string, h Header, force bool) (*FileWriter, error) {
	h.Kind = KindTrace
	return createLive(path, h, force)
}

func createLive(path string, h Header, force bool) (*FileWriter, error) {
	if target, err := follow(path); err == nil {
		if _, ok := descriptor(target); ok {
			return nil, fmt.Errorf("create recording %s: a recording is read again in the end and needs a file", path)
		}
	}
	flags := os.O_CREATE | os.O_EXCL | os.O_WRONLY
	if force {
		flags = os.O_CREATE | os.O_TRUNC | os.O_WRONLY
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		if err = pathless(err); errors.Is(err, fs.ErrNotExist) {
			err = noDirectoryError{err}
		}
		return nil, fmt.Errorf("create recording %s: %w", path, err)
	}
	w, err := startFile(&Output{path: path, file: f}, h)
	if err != nil {
		_ = f.Close() // the header's error is the one to tell
		if !force {
			_ = os.Remove(path)
		}
		return nil, fmt.Errorf("create recording %s: %w", path, err)
	}
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	go w.flusher()
	return w, nil
}

func startFile(out *Output, h Header) (*FileWriter, error) {
	w, err := NewWriter(out, h)
	if err != nil {
		return nil, err
	}
	return &FileWriter{w: w, out: out, header: h}, nil
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
		return fmt.Errorf("%s: %w", w.out.path, err)
	}
	return nil
}

// WriteRequest adds a request. r may be used again at once.
func (w *FileWriter) WriteRequest(r *Request) error {
	w.mu.Lock() // as do does, without its closure: of all calls this is the most frequent
	defer w.mu.Unlock()
	if err := w.w.WriteRequest(r); err != nil {
		return fmt.Errorf("%s: %w", w.out.path, err)
	}
	return nil
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

// Size is how many bytes have been written of the file.
func (w *FileWriter) Size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.offset
}

// SetHeader changes the header of a file from CreateLive or CreateRecording: what
// is known in the end only stands in it once it was closed in good order.
func (w *FileWriter) SetHeader(h Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.Kind = w.header.Kind
	w.header = h
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
		return fmt.Errorf("%s: %w", w.out.path, errWriterClosed)
	}
	if err := w.do(func() error { return w.w.Close(f) }); err != nil {
		_ = w.out.Abort() // the first error is the one to tell
		return err
	}
	if err := w.out.Commit(); err != nil {
		return err
	}
	if w.stop == nil {
		return nil
	}
	// Failing to compact costs nothing but size, unless it shows a fault of ours.
	if err := w.compact(f); errors.Is(err, errCompact) {
		return err
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
	err := w.out.Abort()
	if info, serr := os.Lstat(w.out.path); w.stop == nil || serr != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := os.Remove(w.out.path); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return nil
}
