package record

import (
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

var (
	errWriterClosed = errors.New("write container: the writer is closed")
	errProof        = errors.New("a chunk does not decode to what was to be written; nothing of it was written")
)

// Writer writes a container to a stream. Records are kept until their chunk is
// full, encoded, proved by decoding, and written in one call. The bytes depend
// on nothing but what is written: not on time, machine or GOMAXPROCS. It is
// for one goroutine.
type Writer struct {
	w      io.Writer
	err    error // sticky
	closed bool
	chunk  int // records at which a chunk is closed
	proof  bool
	cutter cutter

	*writeScratch // nil once closed
	results       resultStage
	series        seriesStage
	resCodec      resultCodec
	serCodec      seriesCodec

	offset int64
	seq    int64
	counts Footer
	index  []indexEntry
	seek   []seekEntry
}

// NewWriter writes the header to w; a header without a kind is that of a trace.
// Close it to write what is kept back, and
// to release it.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	return newWriter(w, h, zstd.SpeedDefault)
}

func newWriter(w io.Writer, h Header, level zstd.EncoderLevel) (*Writer, error) {
	if h.Kind == "" {
		h.Kind = KindTrace
	}
	item, err := encodeHeader(h)
	if err != nil {
		return nil, err
	}
	if _, err := decodeHeader(item); err != nil {
		return nil, fmt.Errorf("write header: %w", err)
	}
	scratch, err := newWriteScratch(level)
	if err != nil {
		return nil, err
	}
	out := &Writer{w: w, writeScratch: scratch, chunk: maxRecords, proof: true}
	out.cutter = cutter{least: leastBlob, put: out.putBlob}
	out.reqCodec.blockSize = h.BlockSize
	out.reqCodec.begin()
	if err := out.put(rawFrame(item), item, indexEntry{Kind: "header"}); err != nil {
		out.discard()
		return nil, err
	}
	return out, nil
}

// put writes one frame and notes it in the index.
func (w *Writer) put(frame, item []byte, e indexEntry) error {
	n, err := w.w.Write(frame)
	if err == nil && n < len(frame) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("write container: %w", err)
		return w.err
	}
	e.Offset, e.Length, e.XXH64 = w.offset, int64(len(frame)), xxhash.Sum64(frame)
	w.index = append(w.index, e)
	w.seek = append(w.seek, seekEntry{
		compressed: uint32(len(frame)), content: uint32(len(item)), checksum: uint32(xxhash.Sum64(item)),
	})
	w.offset += int64(len(frame))
	return nil
}

// ready says why nothing can be written.
func (w *Writer) ready() error {
	if w.err == nil && w.closed {
		return errWriterClosed
	}
	return w.err
}

// tooLarge refuses one record; the Writer or Sorter goes on.
func tooLarge(kind, key string, size int) error {
	return fmt.Errorf("write %s %s: it holds %d bytes, at most %d are allowed", kind, key, size, maxRecordBytes)
}

// WriteRequest adds a request. r may be used again at once.
func (w *Writer) WriteRequest(r *Request) error {
	if err := w.ready(); err != nil {
		return err
	}
	if size := requestBytes(r); size > maxRecordBytes {
		return tooLarge("request", r.Key(), size)
	}
	if w.cutter.least > 0 && len(r.Body) >= w.cutter.least {
		return w.addLong(r)
	}
	return w.addCut(r, nil, nil)
}

// addCut adds a request whose body was cut at spans, with the key of a sorted
// run.
func (w *Writer) addCut(r *Request, key *int64, spans []bodySpan) error {
	size := requestBytes(r) + spanBytes*len(spans)
	if err := w.ready(); err != nil {
		return err
	}
	if len(w.requests.plain) > 0 && w.requests.bytes+size > softChunkBytes {
		if err := w.flushRequests(); err != nil {
			return err
		}
	}
	w.requests.add(r, size)
	w.requests.cut(spans)
	w.reqCodec.enc.add(&w.reqCodec.in, r, w.reqCodec.blockSize)
	if key != nil {
		w.requests.keys = append(w.requests.keys, *key)
	}
	if len(w.requests.plain) >= w.chunk {
		return w.flushRequests()
	}
	return nil
}

// WriteResult adds a result; its times are cut to whole microseconds. r may be
// used again at once.
func (w *Writer) WriteResult(r *Result) error {
	size := resultBytes(r)
	if err := w.ready(); err != nil {
		return err
	}
	if size > maxRecordBytes {
		return tooLarge("result", r.ID, size)
	}
	if len(w.results.recs) > 0 && w.results.bytes+size > softChunkBytes {
		if err := w.flushResults(); err != nil {
			return err
		}
	}
	w.results.add(r, size)
	if len(w.results.recs) >= w.chunk {
		return w.flushResults()
	}
	return nil
}

// WriteSeries adds a series. s may be used again at once.
func (w *Writer) WriteSeries(s *Series) error {
	size, err := seriesBytes(s)
	if err != nil {
		return fmt.Errorf("write %w", err)
	}
	if err := w.ready(); err != nil {
		return err
	}
	if size > maxRecordBytes {
		return tooLarge("series", s.Name, size)
	}
	if len(w.series.recs) > 0 && w.series.bytes+size > softChunkBytes {
		if err := w.flushSeries(); err != nil {
			return err
		}
	}
	w.series.add(s, size)
	if len(w.series.recs) >= w.chunk {
		return w.flushSeries()
	}
	return nil
}

// Flush closes the chunks that have records and writes them.
func (w *Writer) Flush() error {
	if err := w.ready(); err != nil {
		return err
	}
	if err := w.flushRequests(); err != nil {
		return err
	}
	if err := w.flushResults(); err != nil {
		return err
	}
	return w.flushSeries()
}

// Close writes what is kept back, the footer with the true counts, and the
// seek table. It does not close the underlying writer. The Writer is of no use
// after, whatever Close says.
func (w *Writer) Close(f Footer) error {
	if w.closed {
		return errWriterClosed
	}
	err := w.Flush()
	w.discard()
	if err != nil {
		return err
	}
	f.Requests, f.Results, f.Series = w.counts.Requests, w.counts.Results, w.counts.Series
	item, err := encodeFooter(f, w.index)
	if err != nil {
		return err
	}
	if err := w.put(rawFrame(item), item, indexEntry{}); err != nil {
		return err
	}
	if _, err := w.w.Write(appendSeekTable(nil, w.seek)); err != nil {
		w.err = fmt.Errorf("write container: %w", err)
	}
	return w.err
}

// discard releases the Writer without completing the container.
func (w *Writer) discard() {
	if !w.closed {
		w.closed = true
		w.release()
		w.writeScratch = nil
	}
}
