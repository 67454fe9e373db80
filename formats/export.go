package formats

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"retrace/record"
)

// export writes a foreign format. To the source's own format rows go back in
// the source's order, to others in order of arrival.
func (j *job) export(f *Format, t Target) (*Conversion, error) {
	tr, err := j.open()
	if err != nil {
		return nil, err
	}
	out, err := t.create()
	if err != nil {
		return nil, err
	}
	x := &exporting{format: f, own: tr.Header.Source == f.Name || f.stored, lost: map[string]int64{}, leftOut: map[string]int64{}}
	h := tr.Header
	x.to = f.NewExporter(out, &h)
	if err := x.all(tr); err != nil {
		return nil, errors.Join(err, out.abort())
	}
	if err := tr.empty(); err != nil {
		return nil, errors.Join(err, out.abort())
	}
	c := tr.conversion()
	c.Lost = x.lostList(&h)
	if w := blocksWarning(&h, f); w != "" {
		c.Report.Warnings = append(c.Report.Warnings, w)
	}
	for _, what := range sortedKeys(x.leftOut) {
		c.Report.Losses = append(c.Report.Losses, x.omission(what))
	}
	if t.Strict && len(c.Lost) > 0 {
		return c, errors.Join(fmt.Errorf("--strict: %w: %s", ErrLost, strings.Join(c.Lost, "; ")), out.abort())
	}
	return c, out.commit()
}

// blocksWarning says what becomes of blocks of another size than the format's.
func blocksWarning(h *record.Header, f *Format) string {
	size := h.TokensPerBlock()
	switch {
	case size == 0 || f.BlockSize == 0 || size == f.BlockSize:
		return ""
	case !f.SplitsBlocks || h.Source == f.Name:
		return fmt.Sprintf("%s: the blocks have %d tokens, but readers of this format take %d, and the file cannot say otherwise",
			f.Name, size, f.BlockSize)
	case size%f.BlockSize == 0:
		return fmt.Sprintf("%s: each block of %d tokens was written as %d of %d",
			f.Name, size, size/f.BlockSize, f.BlockSize)
	}
	return fmt.Sprintf("%s: the ids of blocks of %d tokens were left out, as %d does not divide it",
		f.Name, size, f.BlockSize)
}

// exporting is one export on its way.
type exporting struct {
	format *Format
	own    bool
	to     Exporter
	// lost counts what requests lose, leftOut those that get no row.
	lost, leftOut map[string]int64
}

func (x *exporting) all(tr *Trace) error {
	var err error
	if x.own && !x.format.stored && (!tr.found.facts.sorted || !tr.found.facts.rowsUp) {
		err = x.bySourceRow(tr)
	} else {
		err = tr.each(x.write, false)
	}
	if err != nil {
		return err
	}
	return x.to.Close()
}

// bySourceRow sorts the requests back into the order of the source.
func (x *exporting) bySourceRow(tr *Trace) error {
	s := record.NewSorter(record.SorterOptions{TempDir: tr.job.opts.TempDir})
	defer s.Close() // removes temporary files; nothing to report
	if err := tr.each(func(r *record.Request) error { return s.Add(r, r.Row) }, false); err != nil {
		return err
	}
	stopped := tr.job.opts.interruption()
	for r, err := range s.Sorted() {
		switch {
		case err != nil:
			return fmt.Errorf("sort requests: %w", err)
		case stopped():
			return ErrInterrupted
		}
		if err := x.write(&r); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporting) write(r *record.Request) error {
	if x.own {
		return x.to.Write(r)
	}
	if x.format.LeavesOut != nil {
		if what := x.format.LeavesOut(r); what != "" {
			x.leftOut[what]++
			return nil
		}
	}
	x.note(r)
	return x.to.Write(r)
}

// note counts what the format cannot hold.
func (x *exporting) note(r *record.Request) {
	lost := fieldsOf(r) &^ x.format.Carries
	for i, name := range fieldNames {
		if lost&(1<<i) != 0 {
			x.lost[name]++
		}
	}
	if x.format.Loses != nil {
		if what := x.format.Loses(r); what != "" {
			x.lost[what]++
		}
	}
	if r.Extra != nil {
		x.lost["source fields beyond the model"]++
	}
}

// lostList is the list for people, the counts included.
func (x *exporting) lostList(h *record.Header) []string {
	var list []string
	for _, name := range sortedKeys(x.lost) {
		list = append(list, fmt.Sprintf("%s cannot carry: %s (%s)", x.format.Name, name, plural(x.lost[name], "request")))
	}
	for _, what := range sortedKeys(x.leftOut) {
		list = append(list, x.omission(what))
	}
	if x.own {
		return list
	}
	if h.Wall && x.format.Unit > 0 {
		list = append(list, fmt.Sprintf("%s cannot carry: the wall-clock origin (%s)", x.format.Name, originText(h)))
	}
	return list
}

// omission is the sentence on requests that were left out.
func (x *exporting) omission(what string) string {
	return fmt.Sprintf("%s cannot carry: %s (%s left out)", x.format.Name, what, plural(x.leftOut[what], "request"))
}

// output is a file that appears under its name when it is complete, or a stream.
type output struct {
	*bufio.Writer
	// file is nil where the stream is the caller's.
	file *record.Output
}

const outputBuffer = 256 << 10

// create opens the output.
func (t Target) create() (*output, error) {
	if t.Path == "-" {
		return &output{Writer: bufio.NewWriterSize(naming{t.Stdout, "standard output"}, outputBuffer)}, nil
	}
	f, err := record.CreateOutput(t.Path)
	if err != nil {
		return nil, err
	}
	return &output{Writer: bufio.NewWriterSize(naming{f, "output " + t.Path}, outputBuffer), file: f}, nil
}

// commit makes the output appear.
func (o *output) commit() error {
	if err := o.Flush(); err != nil {
		return errors.Join(err, o.abort())
	}
	if o.file == nil {
		return nil
	}
	return o.file.Commit()
}

// abort leaves no file behind.
func (o *output) abort() error {
	if o.file == nil {
		return nil
	}
	return o.file.Abort()
}

// naming names the output in the errors of its writes.
type naming struct {
	io.Writer
	name string
}

// Write writes on.
func (w naming) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err == nil {
		return n, nil
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the name of it is ours
	}
	return n, &fs.PathError{Op: "write", Path: w.name, Err: err}
}
