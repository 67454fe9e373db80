package record

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/klauspost/compress/zstd"
)

var (
	errClosed   = errors.New("the reader is closed")
	errReadOnce = errors.New("a stream can be read only once")
)

// Reader reads a container. A file can be iterated over any number of times,
// a stream once. It holds one chunk at a time, and of the long strings of
// base64 that bodies share 16 MiB at most, or one; those of a stream go through
// a temporary file.
//
// Damage does not stop an iteration: whole chunks are delivered, and Loss says
// what was not. An iterator yields an error only where reading fails as such,
// or where the file holds several containers.
type Reader struct {
	path   string
	file   *os.File
	size   int64
	stream *pass // of a stream or the first pass of a file, behind its header
	header Header
	footer *Footer
	loss   *CorruptError
	dec    *zstd.Decoder
}

// Open opens the container at path. The error wraps ErrEmpty, ErrNotContainer
// or ErrConcatenated where that is the fault.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open container: %w", err)
	}
	r, err := openFile(f)
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return r, nil
}

func openFile(f *os.File) (*Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	if info.IsDir() {
		return nil, errors.New("is a directory")
	}
	if !info.Mode().IsRegular() {
		r, err := newReader(f, nil, f.Name())
		if r != nil {
			r.file = f
		}
		return r, err
	}
	r, err := newReader(io.NewSectionReader(f, 0, info.Size()), f, f.Name())
	if err != nil {
		return nil, err
	}
	if r.footer, err = readTail(f, info.Size()); err != nil {
		_ = r.Close() // the file is the caller's still
		return nil, err
	}
	r.file, r.size = f, info.Size()
	return r, nil
}

// NewReader reads the container that rd starts with. rd is read to its end by
// the first iteration, and not closed.
func NewReader(rd io.Reader) (*Reader, error) { return newReader(rd, nil, "") }

// newReader reads rd; at, where it is not nil, is the same by offset.
func newReader(rd io.Reader, at io.ReaderAt, path string) (*Reader, error) {
	dec, err := newReadDecoder()
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	r := &Reader{path: path, dec: dec}
	r.stream = r.newPass(rd, at)
	if r.header, err = r.stream.header(); err != nil {
		decoders.Put(dec)
		return nil, err
	}
	return r, nil
}

func (r *Reader) newPass(rd io.Reader, at io.ReaderAt) *pass {
	return &pass{blobs: &blobStore{at: at, dec: r.dec}, path: r.path, scan: frameScanner{r: rd}, dec: r.dec, next: make(map[string]int64)}
}

// begin is a pass that has read its header.
func (r *Reader) begin() (*pass, error) {
	if r.dec == nil {
		return nil, errClosed
	}
	if p := r.stream; p != nil {
		r.stream = nil
		return p, nil
	}
	if r.size == 0 {
		return nil, errReadOnce
	}
	p := r.newPass(io.NewSectionReader(r.file, 0, r.size), r.file)
	if _, err := p.header(); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.path, err)
	}
	return p, nil
}

// end takes over what a pass has learnt.
func (r *Reader) end(p *pass) {
	p.blobs.close()
	r.loss = p.loss
	if p.footer != nil {
		r.footer = p.footer
	}
}

// Header is the container's header.
func (r *Reader) Header() Header { return r.header }

// Footer is the container's footer: at once for a whole file, after an
// iteration for a stream; false where there is none.
func (r *Reader) Footer() (Footer, bool) {
	if r.footer == nil {
		return Footer{}, false
	}
	return *r.footer, true
}

// Loss says what the latest iteration could not read, nil where nothing was
// amiss with the file.
func (r *Reader) Loss() *CorruptError { return r.loss }

// Close releases the reader and its file.
func (r *Reader) Close() error {
	if r.dec == nil {
		return nil
	}
	decoders.Put(r.dec)
	r.dec, r.stream = nil, nil
	if r.file != nil {
		if err := r.file.Close(); err != nil {
			return fmt.Errorf("close container: %w", err)
		}
	}
	return nil
}

// Requests yields the requests in the file's order. What a request points to
// stays its own; the blocks of a chunk's requests are one allocation, which
// one that is kept keeps.
func (r *Reader) Requests() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		c, ok := requestCodecs.Get().(*requestCodec)
		if !ok {
			c = &requestCodec{}
		}
		defer func() {
			c.store = nil
			requestCodecs.Put(c)
		}()
		c.blockSize = r.header.BlockSize
		records(r, itemRequests, c, c.each)(yield)
	}
}

// Results yields the results in the file's order, which is that of completion.
func (r *Reader) Results() iter.Seq2[Result, error] {
	c := &resultCodec{}
	return records(r, itemResults, c, each(c))
}

// Series yields the series in the file's order.
func (r *Reader) Series() iter.Seq2[Series, error] {
	c := &seriesCodec{}
	return records(r, itemSeries, c, each(c))
}

// decoder reads the chunks of one kind.
type decoder[T any] interface {
	// decode reads the columns of a chunk, at is then its record i, good until
	// the next call of either.
	decode(*cursor, chunkHead) error
	at(i int) *T
}

// each yields the first n records of a chunk, until yield is false.
func each[T any](d decoder[T]) func(n int, yield func(T, error) bool) bool {
	return func(n int, yield func(T, error) bool) bool {
		for i := range n {
			if !yield(*d.at(i), nil) {
				return false
			}
		}
		return true
	}
}

// records yields the records of one kind; chunk yields those of one chunk.
func records[T any](r *Reader, kind string, d decoder[T], chunk func(int, func(T, error) bool) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		p, err := r.begin()
		if err != nil {
			yield(zero, err)
			return
		}
		defer r.end(p)
		if c, ok := any(d).(*requestCodec); ok {
			c.store = p.blobs
		}
		for {
			h, offset, cur, err := p.chunk()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(zero, err)
				return
			}
			if h.kind != kind {
				continue
			}
			if err := d.decode(cur, h); err != nil {
				p.lostChunk(h, offset, err)
				continue
			}
			if !chunk(h.count, yield) {
				return
			}
		}
	}
}
