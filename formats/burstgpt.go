package formats

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"retrace/record"
)

// BurstGPT's columns by their published names.
const (
	colTime     = "Timestamp"
	colSession  = "Session ID"
	colElapsed  = "Elapsed time"
	colModel    = "Model"
	colRequest  = "Request tokens"
	colResponse = "Response tokens"
	colTotal    = "Total tokens"
	colKind     = "Log Type"
)

// The published column orders.
var (
	burstRelease1 = []string{colTime, colModel, colRequest, colResponse, colTotal, colKind}
	burstRelease3 = []string{colTime, colSession, colElapsed, colModel, colRequest, colResponse, colTotal, colKind}
)

func init() {
	register(&Format{
		Name: "burstgpt", Title: "BurstGPT trace, releases 1 to 3",
		Files: "CSV with a header", Unit: time.Second,
		OwnStart:   true,
		TimeFields: []string{colTime},
		// What was observed is carried where the columns have room for it,
		// which those of releases 1 and 2 have not.
		Carries:     FieldArrival | FieldInput | FieldOutput | FieldSession | FieldModel | FieldKind,
		Detect:      detectBurst,
		NewImporter: func(c ImportConfig) Importer { return newBurstImporter(c) },
		NewExporter: newBurstExporter,
	})
}

func detectBurst(h *Head) Match {
	if slices.ContainsFunc(h.Lines, isBurstHeader) {
		return Sure
	}
	return No
}

func isBurstHeader(line string) bool {
	cells, _, err := newCSVReader(strings.NewReader(line)).next()
	if err != nil {
		return false
	}
	var names []string
	for _, c := range cells {
		names = append(names, burstName(string(c)))
	}
	for _, must := range burstRequired {
		if !slices.Contains(names, must) {
			return false
		}
	}
	return true
}

var burstRequired = []string{colTime, colRequest, colResponse}

// burstName is the published name that a header cell stands for.
func burstName(cell string) string { return strings.TrimSpace(cell) }

// burstLayout is the columns of one file: what each is by its published name,
// "" for a column that the format does not define, and as the file calls it.
type burstLayout struct {
	fields, names []string
}

// newBurstLayout reads a header row; the error says what is wrong with it.
func newBurstLayout(cells []string) (burstLayout, error) {
	var l burstLayout
	for _, cell := range cells {
		name := burstName(cell)
		if !utf8.ValidString(cell) {
			return l, fmt.Errorf("column %q is not valid UTF-8", cell)
		}
		if slices.Contains(l.fields, name) && name != "" || slices.Contains(l.names, cell) {
			return l, fmt.Errorf("column %q occurs twice in the header", name)
		}
		if !slices.Contains(burstRelease3, name) {
			name = ""
		}
		l.fields = append(l.fields, name)
		l.names = append(l.names, cell)
	}
	for _, must := range burstRequired {
		if !slices.Contains(l.fields, must) {
			return l, fmt.Errorf("no column %q in the header", must)
		}
	}
	return l, nil
}

// burstImporter reads BurstGPT files.
type burstImporter struct {
	config ImportConfig
	// columns are those of all files, in the order of their first appearance.
	columns []string
	words   map[string]string
	buf     []byte
}

func newBurstImporter(c ImportConfig) *burstImporter {
	return &burstImporter{config: c, words: map[string]string{}}
}

// Describe keeps the layout, so that an export has it again.
func (b *burstImporter) Describe(h *record.Header) {
	h.TimeBasis = "arrival"
	h.Layout = b.columns
}

// Read reads one file: its header, then its rows.
func (b *burstImporter) Read(src *Source, emit func(*record.Request) error) error {
	rows := newCSVReader(src.in)
	layout, err := b.header(src, rows)
	if err != nil {
		return err
	}
	row := burstRow{b: b, src: src, layout: layout}
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
			err = row.decode(cells, text, &r)
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
func (b *burstImporter) header(src *Source, rows *csvReader) (burstLayout, error) {
	var first error
	for range headLines {
		layout, err := b.headerRow(src, rows)
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
	return burstLayout{}, first
}

func (b *burstImporter) headerRow(src *Source, rows *csvReader) (burstLayout, error) {
	cells, text, err := rows.next()
	src.Line, src.Offset = rows.line, rows.offset
	if errors.Is(err, io.EOF) {
		return burstLayout{}, nil // no header and no rows
	}
	if err != nil {
		if text == nil {
			return burstLayout{}, src.endOfLines(rows.lines, err)
		}
		return burstLayout{}, src.faultOf("", text, err)
	}
	var names []string
	for _, c := range cells {
		names = append(names, string(c))
	}
	layout, err := newBurstLayout(names)
	if err != nil {
		f := src.Fault("", text, "a header with at least "+strings.Join(burstRequired, ", "))
		f.Err = err
		return layout, f
	}
	for i, n := range names {
		known := func(c string) bool { return c == n || layout.fields[i] != "" && burstName(c) == layout.fields[i] }
		if !slices.ContainsFunc(b.columns, known) {
			b.columns = append(b.columns, n)
		}
	}
	return layout, nil
}

// maxWords bounds the table of repeated words.
const maxWords = 1024

// word is the string of a cell that holds one of few values.
func (b *burstImporter) word(cell []byte) string {
	if w, ok := b.words[string(cell)]; ok {
		return w
	}
	w := string(cell)
	if len(b.words) < maxWords {
		b.words[w] = w
	}
	return w
}
