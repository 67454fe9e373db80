package record

import (
	"fmt"
	"os"
)

// compact rewrites a recording that was closed in good order into full
// chunks. The recording is whole without it: where it fails, for want of
// space, say, the file stays as it is.
func (w *FileWriter) compact(f Footer) error {
	full := func(n int64) int64 { return (n + maxRecords - 1) / maxRecords }
	c := &w.w.counts
	if w.w.seq <= full(c.Requests)+full(c.Results)+full(c.Series) {
		return nil
	}
	if info, err := os.Stat(w.path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	out, err := Create(w.path, w.header)
	if err != nil {
		return nil // as above: the recording is whole
	}
	if err := w.copyTo(out); err != nil {
		_ = out.Abort()
		return nil
	}
	if got := out.w.counts; got.Requests+int64(len(out.w.requests.plain)) != c.Requests ||
		got.Results+int64(len(out.w.results.recs)) != c.Results ||
		got.Series+int64(len(out.w.series.recs)) != c.Series {
		_ = out.Abort()
		return fmt.Errorf("compact %s: it does not hold what was written to it", w.path)
	}
	_ = out.Close(f) // as above
	return nil
}

func (w *FileWriter) copyTo(out *FileWriter) error {
	r, err := Open(w.path)
	if err != nil {
		return err
	}
	defer r.Close()
	for q, err := range r.Requests() {
		if err == nil {
			err = out.WriteRequest(&q)
		}
		if err != nil {
			return err
		}
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
