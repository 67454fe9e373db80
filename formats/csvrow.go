package formats

import (
	"bytes"
	"errors"
	"io"
)

// Faults of a CSV row.
var (
	errOpenQuote  = errors.New("a quote is not closed")
	errStrayQuote = errors.New("a quote inside a cell")
)

// maxCellLines bounds the lines that a quoted cell may span, so that one
// stray quote costs one row and not the rest of the file.
const maxCellLines = 64

// csvReader reads the rows of a CSV file (RFC 4180). Unlike encoding/csv it
// goes on after a broken row with the very next line, keeps the line breaks of
// quoted cells as they are, and knows the place of each row.
type csvReader struct {
	lines   *lineReader
	pending []csvLine // lines taken back, read first
	buf     []byte    // of a row over several lines
	// cellLines bounds the lines that a cell may span.
	cellLines int
	cells     [][]byte
	// line and offset are the place of the row given last.
	line, offset int64
}

type csvLine struct {
	text         []byte
	line, offset int64
}

func newCSVReader(in io.Reader) *csvReader {
	return &csvReader{lines: newLineReader(in), cellLines: maxCellLines}
}

// next gives the cells of the next row, valid until the next call; blank lines
// are passed over. err is io.EOF, a failure to read, or, where row is given
// (as it stands in the file), a fault of that row alone.
func (c *csvReader) next() (cells [][]byte, row []byte, err error) {
	for {
		l, err := c.nextLine()
		if err != nil {
			return nil, nil, err
		}
		text := bytes.TrimSuffix(l.text, []byte("\r"))
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		c.line, c.offset = l.line, l.offset
		if bytes.IndexByte(text, '"') < 0 {
			return c.plain(text), text, nil
		}
		err = c.quoted(text)
		if errors.Is(err, errOpenQuote) {
			return c.several(l)
		}
		return c.cells, text, err
	}
}

func (c *csvReader) nextLine() (csvLine, error) {
	if len(c.pending) > 0 {
		l := c.pending[0]
		c.pending = c.pending[1:]
		return l, nil
	}
	text, err := c.lines.next()
	return csvLine{text, c.lines.line, c.lines.offset}, err
}

// several reads a row whose quoted cell goes on beyond its first line. Where
// no near line closes it, the first line alone is the broken row.
func (c *csvReader) several(first csvLine) (cells [][]byte, row []byte, err error) {
	var taken []csvLine
	c.buf = append(c.buf[:0], first.text...)
	head := bytes.Clone(bytes.TrimSuffix(first.text, []byte("\r")))
	quotes := bytes.Count(first.text, []byte{'"'})
	for len(taken) < c.cellLines && len(c.buf) <= maxLine {
		l, err := c.nextLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		l.text = bytes.Clone(l.text)
		taken = append(taken, l)
		c.buf = append(append(c.buf, '\n'), l.text...)
		quotes += bytes.Count(l.text, []byte{'"'})
		if quotes%2 != 0 { // some cell is still open
			continue
		}
		row := bytes.TrimSuffix(c.buf, []byte("\r"))
		if err := c.quoted(row); !errors.Is(err, errOpenQuote) {
			return c.cells, row, err
		}
	}
	c.pending = append(taken, c.pending...)
	return nil, head, errOpenQuote
}

// plain splits a row without quotes.
func (c *csvReader) plain(row []byte) [][]byte {
	c.cells = c.cells[:0]
	for {
		i := bytes.IndexByte(row, ',')
		if i < 0 {
			c.cells = append(c.cells, row)
			return c.cells
		}
		c.cells = append(c.cells, row[:i])
		row = row[i+1:]
	}
}

// quoted splits a row with quotes into c.cells.
func (c *csvReader) quoted(row []byte) error {
	c.cells = c.cells[:0]
	for {
		cell, rest, err := cutCell(row)
		if err != nil {
			return err
		}
		c.cells = append(c.cells, cell)
		if len(rest) == 0 {
			return nil
		}
		row = rest[1:]
	}
}

// cutCell cuts the first cell off a row; rest starts with the comma after it.
func cutCell(row []byte) (cell, rest []byte, err error) {
	if len(row) == 0 || row[0] != '"' {
		i := bytes.IndexByte(row, ',')
		if i < 0 {
			i = len(row)
		}
		if bytes.IndexByte(row[:i], '"') >= 0 {
			return nil, nil, errStrayQuote
		}
		return row[:i], row[i:], nil
	}
	doubled := false
	for i := 1; i < len(row); i++ {
		if row[i] != '"' {
			continue
		}
		if i+1 < len(row) && row[i+1] == '"' {
			doubled = true
			i++
			continue
		}
		if i+1 < len(row) && row[i+1] != ',' {
			return nil, nil, errStrayQuote
		}
		cell = row[1:i]
		if doubled {
			cell = bytes.ReplaceAll(cell, []byte(`""`), []byte(`"`))
		}
		return cell, row[i+1:], nil
	}
	return nil, nil, errOpenQuote
}

// appendCell writes a cell, quoted where it has to be.
func appendCell(dst, cell []byte) []byte {
	if len(cell) == 0 || !bytes.ContainsAny(cell, ",\"\r\n") && cell[0] != ' ' && cell[len(cell)-1] != ' ' {
		return append(dst, cell...)
	}
	dst = append(dst, '"')
	for _, b := range cell {
		if b == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, b)
	}
	return append(dst, '"')
}
