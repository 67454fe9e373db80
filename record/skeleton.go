package record

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"iter"
	"os"
	"sort"
	"sync"
)

type skelItem struct {
	Q *Request
	S *Result
	M *Series
	F *Footer
}

// Writer writes a container.
type Writer struct {
	e *gob.Encoder
	f Footer
}

// NewWriter starts a container on w.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	if _, err := io.WriteString(w, "retrace-skeleton"); err != nil {
		return nil, err
	}
	e := gob.NewEncoder(w)
	return &Writer{e: e}, e.Encode(h)
}

// WriteRequest adds a request; r may be reused after.
func (w *Writer) WriteRequest(r *Request) error { w.f.Requests++; return w.e.Encode(skelItem{Q: r}) }

// WriteResult adds a result; r may be reused after.
func (w *Writer) WriteResult(r *Result) error { w.f.Results++; return w.e.Encode(skelItem{S: r}) }

// WriteSeries adds a series.
func (w *Writer) WriteSeries(s *Series) error { w.f.Series++; return w.e.Encode(skelItem{M: s}) }

// Close writes the footer; it does not close the underlying writer.
func (w *Writer) Close(f Footer) error {
	f.Requests, f.Results, f.Series = w.f.Requests, w.f.Results, w.f.Series
	return w.e.Encode(skelItem{F: &f})
}

// FileWriter writes a container file; its methods may be called from many goroutines.
type FileWriter struct {
	mu   sync.Mutex
	w    *Writer
	f    *os.File
	path string
}

// Create starts a trace file.
func Create(path string, h Header) (*FileWriter, error) { return CreateRecording(path, h, true) }

// CreateRecording starts a recording in place.
func CreateRecording(path string, h Header, force bool) (*FileWriter, error) {
	fl := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if !force {
		fl |= os.O_EXCL
	}
	f, err := os.OpenFile(path, fl, 0o666)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(f, h)
	return &FileWriter{w: w, f: f, path: path}, err
}

// WriteRequest adds a request; r may be reused after.
func (w *FileWriter) WriteRequest(r *Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.WriteRequest(r)
}

// WriteResult adds a result; r may be reused after.
func (w *FileWriter) WriteResult(r *Result) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.WriteResult(r)
}

// WriteSeries adds a series.
func (w *FileWriter) WriteSeries(s *Series) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.WriteSeries(s)
}

// Close completes the file.
func (w *FileWriter) Close(f Footer) error { return errors.Join(w.w.Close(f), w.f.Close()) }

// Abort gives the file up and removes it.
func (w *FileWriter) Abort() error { return errors.Join(w.f.Close(), os.Remove(w.path)) }

// Reader reads a container.
type Reader struct {
	h     Header
	d     *gob.Decoder
	foot  *Footer
	items []skelItem
	c     io.Closer
}

// Open opens a container file.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.c = f
	return r, nil
}

// NewReader reads a container from a stream.
func NewReader(rd io.Reader) (*Reader, error) {
	var magic [16]byte
	if _, err := io.ReadFull(rd, magic[:]); err != nil {
		return nil, err
	}
	if !IsContainer(magic[:]) {
		return nil, ErrNotContainer
	}
	r := &Reader{d: gob.NewDecoder(rd)}
	if err := r.d.Decode(&r.h); err != nil {
		return nil, err
	}
	for {
		var it skelItem
		err := r.d.Decode(&it)
		if err == io.EOF {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if it.F != nil {
			r.foot = it.F
		}
		r.items = append(r.items, it)
	}
}

// Header is the container's header.
func (r *Reader) Header() Header { return r.h }

// Requests yields the requests in the file's order.
func (r *Reader) Requests() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		for _, it := range r.items {
			if it.Q != nil && !yield(*it.Q, nil) {
				return
			}
		}
	}
}

// Results yields the results in the file's order.
func (r *Reader) Results() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for _, it := range r.items {
			if it.S != nil && !yield(*it.S, nil) {
				return
			}
		}
	}
}

// Series yields the series in the file's order.
func (r *Reader) Series() iter.Seq2[Series, error] {
	return func(yield func(Series, error) bool) {
		for _, it := range r.items {
			if it.M != nil && !yield(*it.M, nil) {
				return
			}
		}
	}
}

// Footer is the container's footer, if it has been found.
func (r *Reader) Footer() (Footer, bool) {
	if r.foot == nil {
		return Footer{}, false
	}
	return *r.foot, true
}

// Loss says what could not be read, nil when the container is whole.
func (r *Reader) Loss() *CorruptError { return nil }

// Close releases the reader.
func (r *Reader) Close() error {
	if r.c != nil {
		return r.c.Close()
	}
	return nil
}

// IsContainer says whether a file that starts with head is a container.
func IsContainer(head []byte) bool { return bytes.HasPrefix(head, []byte("retrace-skeleton")) }

// SorterOptions bound a Sorter's memory; zero values stand for the defaults.
type SorterOptions struct {
	TempDir string
}

// Sorter sorts requests by a key, stable for ties.
type Sorter struct {
	reqs []Request
	keys []int64
}

// NewSorter makes an empty Sorter.
func NewSorter(SorterOptions) *Sorter { return &Sorter{} }

// Add takes a copy of r with the key to sort by.
func (s *Sorter) Add(r *Request, key int64) error {
	s.reqs, s.keys = append(s.reqs, *r), append(s.keys, key)
	return nil
}

// Sorted yields the requests by key; those of one key in the order of Add.
func (s *Sorter) Sorted() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		idx := make([]int, len(s.reqs))
		for i := range idx {
			idx[i] = i
		}
		sort.SliceStable(idx, func(a, b int) bool { return s.keys[idx[a]] < s.keys[idx[b]] })
		for _, i := range idx {
			if !yield(s.reqs[i], nil) {
				return
			}
		}
	}
}

// Close removes the temporary files.
func (s *Sorter) Close() error { return nil }
