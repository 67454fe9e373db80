package formats

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"retrace/record"
)

// csvSchema is what a format of CSV files knows of its columns: all by their
// published names, and those that must be there.
type csvSchema struct {
	known, required []string
	// oneOf are columns of which there must be at least one, where it is not nil.
	oneOf []string
	// cellLines bounds the lines of a cell, maxCellLines where 0.
	cellLines int
}

// isHeader says that a line is a header with all that must be there.
func (s csvSchema) isHeader(line string) bool {
	cells, _, err := newCSVReader(strings.NewReader(line)).next()
	if err != nil {
		return false
	}
	var names []string
	for _, c := range cells {
		names = append(names, columnName(string(c)))
	}
	return s.missing(names) == ""
}

// missing is what a header with these columns lacks, "" for nothing.
func (s csvSchema) missing(names []string) string {
	for _, must := range s.required {
		if !slices.Contains(names, must) {
			return fmt.Sprintf("no column %q", must)
		}
	}
	if s.oneOf != nil && !slices.ContainsFunc(s.oneOf, func(n string) bool { return slices.Contains(names, n) }) {
		return "no column of " + strings.Join(s.oneOf, ", ")
	}
	return ""
}

// columnName is the published name that a header cell stands for.
func columnName(cell string) string { return strings.TrimSpace(cell) }

// csvLayout is the columns of one file: what each is by its published name,
// "" for a column that the format does not define, and as the file calls it.
type csvLayout struct {
	fields, names []string
}

// least names the columns that there must be.
func (s csvSchema) least() string {
	if s.oneOf != nil {
		return "one of " + strings.Join(s.oneOf, ", ")
	}
	return strings.Join(s.required, ", ")
}

// layout reads a header row; the error says what is wrong with it.
func (s csvSchema) layout(cells []string) (csvLayout, error) {
	var l csvLayout
	for _, cell := range cells {
		name := columnName(cell)
		if !utf8.ValidString(cell) {
			return l, fmt.Errorf("column %q is not valid UTF-8", cell)
		}
		if slices.Contains(l.fields, name) && name != "" || slices.Contains(l.names, cell) {
			return l, fmt.Errorf("column %q occurs twice in the header", name)
		}
		if !slices.Contains(s.known, name) {
			name = ""
		}
		l.fields = append(l.fields, name)
		l.names = append(l.names, cell)
	}
	if what := s.missing(l.fields); what != "" {
		return l, fmt.Errorf("%s in the header", what)
	}
	return l, nil
}

// check tells a row of the wrong width, or of no text.
func (l csvLayout) check(src *Source, cells [][]byte, text []byte) error {
	if len(cells) != len(l.fields) {
		f := src.Fault("", nil, "as many cells as the header has")
		f.Found = fmt.Sprintf("%d cells for %d columns", len(cells), len(l.fields))
		return f
	}
	if !utf8.Valid(text) {
		return src.Fault("", text, "valid UTF-8")
	}
	return nil
}

// appendHeader writes the header row.
func (l csvLayout) appendHeader(dst []byte) []byte {
	for i, name := range l.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCell(dst, []byte(name))
	}
	return append(dst, '\n')
}

// csvTable reads the CSV files of one trace.
type csvTable struct {
	schema csvSchema
	// columns are those of all files, in the order of their first appearance.
	columns []string
}

// csvDecoder reads a row, whose cells are valid during the call, into r.
type csvDecoder func(layout csvLayout, cells [][]byte, text []byte, r *record.Request) error

// read reads one file: its header, then its rows.
func (t *csvTable) read(src *Source, decode csvDecoder, emit func(*record.Request) error) error {
	rows := newCSVReader(src.in)
	rows.cellLines = cmp.Or(t.schema.cellLines, maxCellLines)
	layout, err := t.header(src, rows)
	if err != nil {
		return err
	}
	var r record.Request
	for {
		cells, text, err := rows.next()
		src.Line, src.Offset = rows.line, rows.offset
		if err != nil && text == nil {
			return src.endOfLines(rows.lines, err)
		}
		resetRequest(&r)
		r.Row = src.Row()
		if err != nil {
			err = src.faultOf("", text, err)
		} else {
			err = decode(layout, cells, text, &r)
		}
		if err != nil {
			if err = src.Reject(err); err != nil {
				return err
			}
			continue
		}
		if err := emit(&r); err != nil {
			return err
		}
	}
}

// faultOf is Fault with a cause.
func (s *Source) faultOf(field string, found []byte, cause error) *SyntaxError {
	f := s.Fault(field, found, "")
	f.Err = cause
	return f
}

// header reads the header. Lines before it, which are none, are bad rows.
func (t *csvTable) header(src *Source, rows *csvReader) (csvLayout, error) {
	var first error
	for range headLines {
		layout, err := t.headerRow(src, rows)
		if err == nil && layout.fields == nil && first != nil {
			return layout, first // no further line
		}
		var bad *SyntaxError
		if !errors.As(err, &bad) {
			return layout, err
		}
		src.Row()
		if rejected := src.Reject(err); rejected != nil {
			return layout, rejected
		}
		if first == nil {
			first = err
		}
	}
	return csvLayout{}, first
}

func (t *csvTable) headerRow(src *Source, rows *csvReader) (csvLayout, error) {
	cells, text, err := rows.next()
	src.Line, src.Offset = rows.line, rows.offset
	if errors.Is(err, io.EOF) {
		return csvLayout{}, nil // no header and no rows
	}
	if err != nil {
		if text == nil {
			return csvLayout{}, src.endOfLines(rows.lines, err)
		}
		return csvLayout{}, src.faultOf("", text, err)
	}
	var names []string
	for _, c := range cells {
		names = append(names, string(c))
	}
	layout, err := t.schema.layout(names)
	if err != nil {
		f := src.Fault("", text, "a header with at least "+t.schema.least())
		f.Err = err
		return layout, f
	}
	for i, n := range names {
		known := func(c string) bool { return c == n || layout.fields[i] != "" && columnName(c) == layout.fields[i] }
		if !slices.ContainsFunc(t.columns, known) {
			t.columns = append(t.columns, n)
		}
	}
	return layout, nil
}
