package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errCompact says that rewriting a recording lost something. The recording
// itself is as it was.
var errCompact = errors.New("the compacted file does not hold what was recorded")

// compact rewrites a recording that was closed in good order into full
// chunks, where that makes fewer of them, and a trace's requests into the order
// of their arrivals. The recording is whole without it:
// where it fails, for want of space, say, the file stays as it is.
func (w *FileWriter) compact(f Footer) error {
	full := func(n int64) int64 { return (n + maxRecords - 1) / maxRecords }
	c := &w.w.counts
	if w.header.Kind != KindTrace && w.w.seq <= full(c.Requests)+full(c.Results)+full(c.Series) {
		return nil
	}
	info, err := os.Stat(w.out.path)
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	out, err := Create(w.out.path, w.header)
	if err != nil {
		return err
	}
	if err = w.copyTo(out); err == nil && !out.holds(c) {
		err = fmt.Errorf("compact %s: %w", w.out.path, errCompact)
	}
	if err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Close(f)
}

// holds says whether as many records were written to w as c counts.
func (w *FileWriter) holds(c *Footer) bool {
	in := w.w
	return in.counts.Requests+int64(len(in.requests.plain)) == c.Requests &&
		in.counts.Results+int64(len(in.results.recs)) == c.Results &&
		in.counts.Series+int64(len(in.series.recs)) == c.Series
}

// copyTo writes all that the file of w holds to out.
func (w *FileWriter) copyTo(out *FileWriter) error {
	r, err := Open(w.out.path)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	if err := copyRequests(r, out); err != nil {
		return err
	}
	for q, err := range r.Results() {
		if err == nil {
			err = out.WriteResult(&q)
		}
		if err != nil {
			return err
		}
	}
	for s, err := range r.Series() {
		if err == nil {
			err = out.WriteSeries(&s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyRequests writes the requests of r to out by arrival.
func copyRequests(r *Reader, out *FileWriter) (err error) {
	sorter := NewSorter(SorterOptions{TempDir: filepath.Dir(out.out.path)})
	defer func() { err = errors.Join(err, sorter.Close()) }()
	for q, err := range r.Requests() {
		if err == nil {
			err = sorter.Add(&q, int64(q.Arrival))
		}
		if err != nil {
			return err
		}
	}
	for q, err := range sorter.Sorted() {
		if err == nil {
			err = out.WriteRequest(&q)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
