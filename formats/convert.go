package formats

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"retrace/record"
	"retrace/record/capture"
)

// Target says what Convert writes, and where.
type Target struct {
	// Path is the output file, "-" for Stdout. It appears under its name only
	// when it is complete.
	Path string
	// Format is "trace" (also where empty) or the name of a format that can be written.
	Format string
	// Strict makes it an error that the format cannot hold something.
	Strict bool
	Stdout io.Writer
}

// Conversion is what Convert did.
type Conversion struct {
	Header  record.Header
	Report  Report
	Figures Figures
	// Lost lists what the target format cannot carry.
	Lost []string
}

// ErrLost is wrapped by the error of a strict conversion that loses something.
var ErrLost = errors.New("the target format cannot carry everything")

// Convert reads a trace and writes it in another form.
func Convert(paths []string, o Options, t Target) (*Conversion, error) {
	target := containerFormat
	if t.Format != "" && t.Format != containerFormat.Name {
		f, err := Lookup(t.Format)
		if err != nil {
			return nil, err
		}
		if f.NewExporter == nil {
			return nil, fmt.Errorf("the format %s can be read only", f.Name)
		}
		target = f
	}
	if o.Capture == "" {
		o.Capture, o.captureUnasked = capture.Blocks, true
	}
	j, err := prepare(paths, o)
	if err != nil {
		return nil, err
	}
	defer j.in.close()
	if target != containerFormat {
		return j.export(target, t)
	}
	found, c, err := j.speculate(t)
	if c != nil || err != nil {
		return c, err
	}
	return j.store(found, t)
}

// store writes a canonical trace by the general way. found is the survey of the
// source, nil where it was not made yet.
func (j *job) store(found *outcome, t Target) (*Conversion, error) {
	tr, err := j.surveyed(found)
	if err != nil {
		return nil, err
	}
	w, err := t.writer(tr.Header)
	if err != nil {
		return nil, err
	}
	if err := tr.each(w.WriteRequest, false); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return tr.finish(w)
}

func (j *job) surveyed(found *outcome) (*Trace, error) {
	if found == nil {
		return j.open()
	}
	return j.trace(found)
}

// finish closes the output and sums up.
func (t *Trace) finish(w traceWriter) (*Conversion, error) {
	if err := t.empty(); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	if err := w.Close(record.Footer{Dropped: t.report.Skipped}); err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	return t.conversion(), nil
}

// conversion is what has become of the trace.
func (t *Trace) conversion() *Conversion {
	c := &Conversion{Header: t.Header, Report: t.Report(), Figures: t.figures}
	if w := t.oddPart(); w != "" {
		c.Report.Warnings = append(slices.Clip(c.Report.Warnings), w)
	}
	return c
}

// empty is the error of a window that holds nothing. A shard may be empty, and
// so may a trace all of whose rows were skipped and counted.
func (t *Trace) empty() error {
	if t.figures.Requests > 0 || t.sel.Shards > 1 || t.found.facts.rows == 0 {
		return nil
	}
	return fmt.Errorf("the selection holds no request (of %d in the trace)", t.found.facts.rows)
}

// traceWriter is what writes a container, to a file or a stream.
type traceWriter interface {
	WriteRequest(r *record.Request) error
	Close(f record.Footer) error
	Abort() error
}

// streamWriter is a container on its way to a stream, which cannot be undone.
type streamWriter struct{ *record.Writer }

// Abort leaves the stream as it is: without a footer, so that readers notice.
func (streamWriter) Abort() error { return nil }

func (t Target) writer(h record.Header) (traceWriter, error) {
	if t.Path == "-" {
		w, err := record.NewWriter(naming{t.Stdout, "standard output"}, h)
		return streamWriter{w}, err
	}
	w, err := record.Create(t.Path, h)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// speculateRows is how many rows the header is first told by.
const (
	speculateRows  = 1024
	speculateBytes = 8 << 20
)

// speculation writes a trace while it is read for the first time, on the
// guesses that it is in order and that its first rows tell the header.
type speculation struct {
	target Target
	pass   *pass
	held   []record.Request
	bytes  int
	w      traceWriter
	header record.Header
	off    bool
	sums   Figures
}

// speculate converts a source in one pass where the guesses hold. Where they do
// not, it leaves no output and gives the survey that it has become.
func (j *job) speculate(t Target) (*outcome, *Conversion, error) {
	if t.Path == "-" || record.InPlace(t.Path) || j.format.stored || j.opts.Select.partial() {
		return nil, nil, nil
	}
	s := &speculation{target: t, sums: newFigures()}
	s.pass = j.newPass(s.take)
	s.pass.keep = true // until the rows held back are written
	found, err := s.pass.all()
	if err == nil && !s.off {
		err = s.flush()
	}
	if err != nil {
		return nil, nil, j.countMissing(errors.Join(err, s.abort()))
	}
	if s.off || !found.facts.sorted || !reflect.DeepEqual(found.header, s.header) {
		return found, nil, s.abort()
	}
	tr, err := j.trace(found)
	if err != nil {
		return nil, nil, errors.Join(err, s.abort())
	}
	tr.figures = s.sums
	c, err := tr.finish(s.w)
	return nil, c, err
}

func (s *speculation) abort() error {
	s.off, s.held = true, nil
	if s.w == nil {
		return nil
	}
	w := s.w
	s.w = nil
	return w.Abort()
}

func (s *speculation) take(r *record.Request, _ int64) error {
	if s.off {
		return nil
	}
	if !s.pass.facts.sorted {
		return s.abort()
	}
	if s.w != nil {
		return s.write(r)
	}
	if s.held == nil {
		s.held = make([]record.Request, 0, speculateRows)
	}
	s.held = append(s.held, *r)
	s.bytes += len(r.Body) + len(r.Extra) + 8*len(r.Blocks)
	if len(s.held) >= speculateRows || s.bytes >= speculateBytes {
		return s.flush()
	}
	return nil
}

// flush decides on the header and writes what was held back.
func (s *speculation) flush() error {
	if s.w != nil {
		return nil
	}
	s.header = s.pass.header()
	w, err := s.target.writer(s.header)
	if err != nil {
		return err
	}
	s.w = w
	for i := range s.held {
		if err := s.write(&s.held[i]); err != nil {
			return err
		}
	}
	s.held, s.pass.keep = nil, false
	return nil
}

func (s *speculation) write(r *record.Request) error {
	if r.Arrival != record.NoTime {
		r.Arrival -= s.header.Origin
	}
	s.sums.add(r)
	return s.w.WriteRequest(r)
}
