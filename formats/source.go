package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"retrace/record"
)

// maxLine bounds one line, and so what a hostile file can make us hold.
const maxLine = 128 << 20

// Source is one input file on its way through an importer: its decompressed
// bytes, the place reached, and the ledger of rows.
type Source struct {
	// Name is how messages call the file.
	Name string
	// Line (from 1) and Offset (of its first byte, in the decompressed file)
	// are the place of the current row; an importer that does not use Lines
	// sets them itself before it calls Row, Fault or Reject.
	Line   int64
	Offset int64

	path   string
	files  []input // of the whole import
	in     io.Reader
	ledger *ledger
	// discreet keeps what stands in rows out of errors: it may be anybody's text.
	discreet bool
}

// Reader gives the decompressed bytes, a byte order mark removed, for formats
// that are not line by line. Use either Reader or Lines, once.
func (s *Source) Reader() io.Reader {
	br := bufio.NewReaderSize(s.in, 64<<10)
	if mark, _ := br.Peek(3); bytes.Equal(mark, bom) {
		_, _ = br.Discard(3)
	}
	return br
}

var bom = []byte("\xef\xbb\xbf")

// Row counts a row as read and gives its number, from 0, over all files.
func (s *Source) Row() int64 {
	n := s.ledger.read
	s.ledger.read++
	return n
}

// Fault makes the error of the current row: field ("" for the whole row), the
// value found and what was expected.
func (s *Source) Fault(field string, found []byte, expected string) *SyntaxError {
	if s.discreet {
		found = nil
	}
	return &SyntaxError{
		File: s.Name, Line: s.Line, Offset: s.Offset,
		Field: field, Found: string(found), Expected: expected,
	}
}

// Reject takes the error of a row that was counted by Row. Under --bad-lines
// fail it gives the error back, which ends the import; under skip it counts it
// by reason and gives nil, as always where the error says Skip. Errors that are no *SyntaxError always come back.
func (s *Source) Reject(err error) error {
	var bad *SyntaxError
	if !errors.As(err, &bad) || s.ledger.policy != Skip && !bad.Skip {
		return err
	}
	s.ledger.skip(bad)
	return nil
}

// Unknown notes a field that the format does not define, to be listed once.
func (s *Source) Unknown(field string) { s.ledger.unknown[field]++ }

// Warn notes a sentence, told once, with the number of rows it holds for.
func (s *Source) Warn(sentence string) { s.ledger.warn(sentence) }

// EachLine is the loop of a JSON Lines importer: it counts each line that is
// not blank as a row, has it decoded and hands the request to emit. decode gets
// the line without its end; the slice is valid during the call only. r is
// NewRequest with Row set. Errors go through Reject.
func (s *Source) EachLine(decode func(line []byte, r *record.Request) error, emit func(*record.Request) error) error {
	return s.lines(rowDecoder(decode), nil, emit)
}

type rowDecoder func(line []byte, r *record.Request) error

// lines is EachLine for files whose first line is not a row: head, where it is
// not nil, gets it.
func (s *Source) lines(decode rowDecoder, head func(line []byte) error, emit func(*record.Request) error) error {
	lines := newLineReader(s.in)
	var r record.Request
	for {
		line, err := lines.next()
		if err != nil {
			return s.endOfLines(lines, err)
		}
		if line = trimLine(line); len(line) == 0 {
			continue
		}
		s.Line, s.Offset = lines.line, lines.offset
		if head != nil {
			if err := head(line); err != nil {
				return err
			}
			head = nil
			continue
		}
		if err := s.row(line, &r, decode); err != nil {
			if err == errSkipped {
				continue
			}
			return err
		}
		if err := emit(&r); err != nil {
			return err
		}
	}
}

// errSkipped says that a row was bad and counted.
var errSkipped = errors.New("row skipped")

func (s *Source) row(line []byte, r *record.Request, decode rowDecoder) error {
	resetRequest(r)
	r.Row = s.Row()
	err := decode(line, r)
	if err == nil {
		return nil
	}
	if err = s.Reject(err); err == nil {
		return errSkipped
	}
	return err
}

// endOfLines judges why no further line came: nil at the end of the file.
func (s *Source) endOfLines(lines *lineReader, err error) error {
	if err == io.EOF {
		return nil
	}
	s.Line, s.Offset = lines.line, lines.offset
	return s.cut(err)
}

// cut is what becomes of a file that cannot be read to its end: an error under
// fail; under skip a loss, which ends this file alone.
func (s *Source) cut(err error) error {
	err = fmt.Errorf("read %s: after line %d (byte %d): %w", s.Name, s.Line, s.Offset, err)
	if s.ledger.policy != Skip {
		return err
	}
	s.ledger.losses = append(s.ledger.losses, err.Error())
	return nil
}

// trimLine removes the white space around a row: blanks, tabs, carriage returns.
func trimLine(line []byte) []byte {
	for len(line) > 0 && isLineSpace(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	for len(line) > 0 && isLineSpace(line[0]) {
		line = line[1:]
	}
	return line
}

func isLineSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// lineReader splits a stream into lines in one buffer that grows to the
// longest line.
type lineReader struct {
	in     io.Reader
	buf    []byte
	at     int // start of the unread part of buf
	scan   int // up to here it holds no line feed
	line   int64
	offset int64 // of the line given last
	base   int64 // of buf[0]
	err    error
}

const lineBuffer = 128 << 10

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: in, buf: make([]byte, 0, lineBuffer)}
}

// next gives the next line without its line feed, or io.EOF. The slice is
// valid until the next call. A byte order mark before the first line is cut.
func (l *lineReader) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scan:], '\n'); i >= 0 {
			return l.take(l.scan+i, 1), nil
		}
		l.scan = len(l.buf)
		if l.err != nil {
			if l.err == io.EOF && l.at < len(l.buf) {
				return l.take(len(l.buf), 0), nil
			}
			return nil, l.err
		}
		if len(l.buf)-l.at > maxLine {
			return nil, fmt.Errorf("line %d is longer than %d MiB", l.line+1, maxLine>>20)
		}
		l.fill()
	}
}

// take cuts the line that ends before end; skip bytes follow it.
func (l *lineReader) take(end, skip int) []byte {
	line := l.buf[l.at:end]
	l.offset = l.base + int64(l.at)
	if l.line == 0 && bytes.HasPrefix(line, bom) {
		line = line[len(bom):]
		l.offset += int64(len(bom))
	}
	l.line++
	l.at = end + skip
	l.scan = l.at
	return line
}

func (l *lineReader) fill() {
	if l.at > 0 {
		n := copy(l.buf, l.buf[l.at:])
		l.base += int64(l.at)
		l.buf, l.at, l.scan = l.buf[:n], 0, n
	}
	if len(l.buf) == cap(l.buf) {
		l.buf = slices.Grow(l.buf, min(cap(l.buf), maxLine+lineBuffer-len(l.buf)))
	}
	for range 100 {
		n, err := l.in.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if err != nil || n > 0 {
			l.err = err
			return
		}
	}
	l.err = io.ErrNoProgress
}
