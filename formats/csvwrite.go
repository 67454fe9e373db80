package formats

import (
	"bufio"
	"fmt"
	"io"

	"retrace/record"
)

// csvExporter writes the rows of a CSV format whose importer keeps unknown
// columns as leftovers.
type csvExporter struct {
	w      *bufio.Writer
	layout csvLayout
	// same says that the source was of this format too.
	same  bool
	buf   []byte
	extra []Member
}

// newCSVExporter writes the header of the columns names, or of usual where names
// are no layout that an importer made.
func newCSVExporter(w io.Writer, schema csvSchema, names, usual []string, same bool) csvExporter {
	e := csvExporter{w: bufio.NewWriter(w), same: same}
	var err error
	if e.layout, err = schema.layout(names); err != nil {
		e.layout, _ = schema.layout(usual)
	}
	_, _ = e.w.Write(e.layout.appendHeader(nil)) // it fails again at the next write
	return e
}

// row writes one row; cell gives the text of a known column.
func (e *csvExporter) row(r *record.Request, cell func(field string) []byte) error {
	e.extra = nil
	if e.same && r.Extra != nil {
		var err error
		if e.extra, err = ParseObject(r.Extra); err != nil {
			return fmt.Errorf("write request %s: read its leftovers: %w", r.Key(), err)
		}
	}
	e.buf = e.buf[:0]
	for i, field := range e.layout.fields {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if field != "" {
			e.buf = appendCell(e.buf, cell(field))
			continue
		}
		raw, _ := Find(e.extra, e.layout.names[i])
		text, _ := DecodeString(raw)
		e.buf = appendCell(e.buf, []byte(text))
	}
	_, err := e.w.Write(append(e.buf, '\n'))
	return err
}

// Close writes out what is buffered.
func (e *csvExporter) Close() error { return e.w.Flush() }
