package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxEvent is the largest event, in bytes, that an EventReader takes
// where its maker names no other.
const DefaultMaxEvent = 16 << 20

// firstBuffer is what a reader starts with, in bytes: thousands may wait.
const firstBuffer = 1 << 10

// ErrEventTooLarge says that an event (or one line of it) passed the reader's
// limit; the stream can not be read on.
var ErrEventTooLarge = errors.New("event too large")

// Event is one server-sent event. Its slices are valid until the next call of
// EventReader.Next.
type Event struct {
	// Type is the "event" field, empty for the default type ("message").
	Type []byte
	// Data is the "data" fields, joined by one newline each.
	Data []byte
	// ID is the last "id" field of the stream so far.
	ID []byte
	// Cut says that the stream ended before the blank line that ends an event:
	// the rules say to drop it, but servers do close right after their last
	// line, so the caller decides whether what came is whole.
	Cut bool
}

// EventReader splits a byte stream into server-sent events by the rules of the
// WHATWG's HTML standard, §9.2.6, on raw bytes: lines end with CR, LF or CRLF,
// one space after the colon is dropped, lines that start with a colon are
// comments, unknown fields are ignored, "retry" is (nothing here reconnects),
// and a byte order mark at the start is skipped. An event is delivered as soon
// as its last byte is there; where that byte is a CR, nothing waits for an LF.
// In steady state it allocates nothing.
type EventReader struct {
	src io.Reader
	max int

	buf     []byte
	r, w    int
	scanned int // bytes from r on that hold no line end
	err     error

	started bool // past the byte order mark
	skipLF  bool // the last line ended with CR

	data, kind, id []byte
	hasData        bool

	known, foreign bool // there were lines of the format, others

	lines  bool  // JSON lines, no server-sent events
	values int64 // given so far, of JSON lines
}

// NewEventReader reads events from src. An event longer than limit bytes is
// ErrEventTooLarge; 0 means DefaultMaxEvent.
func NewEventReader(src io.Reader, limit int) *EventReader {
	if limit <= 0 {
		limit = DefaultMaxEvent
	}
	return &EventReader{src: src, max: limit}
}

// Reset makes the reader start over with src, keeping its buffers and limit.
func (e *EventReader) Reset(src io.Reader) {
	*e = EventReader{
		src: src, max: e.max, buf: e.buf[:cap(e.buf)],
		data: e.data[:0], kind: e.kind[:0], id: e.id[:0],
	}
}

// ResetLines makes the reader start over with src, which sends JSON values, an
// event each, that end at a line's end: JSON Lines. A value may go over several
// lines.
func (e *EventReader) ResetLines(src io.Reader) {
	e.Reset(src)
	e.lines, e.known = true, true
}

// Single says that the stream is of JSON values and has given one so far: it
// may have been no stream at all.
func (e *EventReader) Single() bool { return e.lines && e.values == 1 }

// Size is the memory in bytes that the reader's buffers take.
func (e *EventReader) Size() int { return cap(e.buf) + cap(e.data) + cap(e.kind) + cap(e.id) }

// Next is the next event. At the end of the stream it is io.EOF, or the error
// that the source gave; an event that was under way then comes first, with Cut
// set.
func (e *EventReader) Next() (Event, error) {
	e.data, e.kind, e.hasData = e.data[:0], e.kind[:0], false
	if e.lines {
		return e.nextValue()
	}
	for {
		line, err := e.line()
		if err != nil {
			if e.hasData {
				return e.event(true), nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if e.hasData {
				return e.event(false), nil
			}
			e.kind = e.kind[:0]
			continue
		}
		if err := e.field(line); err != nil {
			return Event{}, err
		}
	}
}

// nextValue is the next JSON value: lines up to one at whose end no bracket is
// open.
func (e *EventReader) nextValue() (Event, error) {
	for open := 0; ; {
		line, err := e.line()
		switch {
		case err != nil && len(e.data) > 0:
			e.values++
			return e.event(true), nil
		case err != nil:
			return Event{}, err
		case len(bytes.TrimSpace(line)) == 0 && len(e.data) == 0:
			continue
		case len(e.data)+len(line)+1 > e.max:
			return Event{}, e.tooLarge()
		}
		e.data = append(e.data, line...)
		if open += openBrackets(line); open <= 0 {
			e.values++
			return e.event(false), nil
		}
		e.data = append(e.data, '\n')
	}
}

// openBrackets is how many more brackets a line of JSON opens than it closes;
// strings do not go over lines.
func openBrackets(line []byte) (open int) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case quoted:
		case c == '{' || c == '[':
			open++
		case c == '}' || c == ']':
			open--
		}
	}
	return open
}

func (e *EventReader) event(cut bool) Event {
	return Event{Type: e.kind, Data: e.data, ID: e.id, Cut: cut}
}

// Foreign says that lines came, but none that server-sent events are made of:
// the stream is something else.
func (e *EventReader) Foreign() bool { return e.foreign && !e.known }

func (e *EventReader) field(line []byte) error {
	name, value, found := bytes.Cut(line, colon)
	if found && len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if len(e.data)+len(value)+1 > e.max {
			return e.tooLarge()
		}
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.data, e.hasData = append(e.data, value...), true
	case "event":
		e.kind = append(e.kind[:0], value...)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.id = append(e.id[:0], value...)
		}
	case "retry", "":
	default:
		if found || !startsField(line) {
			e.foreign = true
		}
		return nil
	}
	e.known = true
	return nil
}

// startsField says whether a line that its stream's end cut may have become a
// field.
func startsField(line []byte) bool {
	for _, name := range [...]string{"data", "event", "id", "retry"} {
		if len(line) < len(name) && string(line) == name[:len(line)] {
			return true
		}
	}
	return false
}

var (
	colon = []byte{':'}
	bom   = []byte{0xEF, 0xBB, 0xBF}
)

// line is the next line without its end. A last line that the stream's end cut
// is given too, once.
func (e *EventReader) line() ([]byte, error) {
	if !e.started {
		e.skipBOM()
	}
	for {
		if e.skipLF && e.r < e.w {
			if e.buf[e.r] == '\n' {
				e.r++
			}
			e.skipLF = false
		}
		if n := lineEnd(e.buf[e.r+e.scanned : e.w]); n >= 0 {
			end := e.r + e.scanned + n
			line := e.buf[e.r:end]
			e.skipLF = e.buf[end] == '\r'
			e.r, e.scanned = end+1, 0
			return line, nil
		}
		e.scanned = e.w - e.r
		if e.err != nil {
			if e.scanned > 0 {
				line := e.buf[e.r:e.w]
				e.r, e.scanned = e.w, 0
				return line, nil
			}
			return nil, e.err
		}
		e.fill()
	}
}

func (e *EventReader) skipBOM() {
	for e.w-e.r < len(bom) && e.err == nil && bytes.HasPrefix(bom, e.buf[e.r:e.w]) {
		e.fill()
	}
	if bytes.HasPrefix(e.buf[e.r:e.w], bom) {
		e.r += len(bom)
	}
	e.started = true
}

// lineEnd is the index of the first CR or LF in b, or -1.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n >= 0 {
		b = b[:n]
	}
	if c := bytes.IndexByte(b, '\r'); c >= 0 {
		return c
	}
	return n
}

// fill reads once; an error of the source is kept for when the buffer is used up.
func (e *EventReader) fill() {
	if e.r > 0 {
		e.w = copy(e.buf, e.buf[e.r:e.w])
		e.r = 0
	}
	if e.w == len(e.buf) {
		if e.w >= e.max {
			_ = e.tooLarge() // kept in e.err
			return
		}
		e.buf = append(e.buf[:e.w], make([]byte, max(firstBuffer, e.w))...)
	}
	for range 100 {
		var n int
		n, e.err = e.src.Read(e.buf[e.w:])
		e.w += n
		if n > 0 || e.err != nil {
			return
		}
	}
	e.err = io.ErrNoProgress
}

func (e *EventReader) tooLarge() error {
	e.r, e.w, e.scanned = 0, 0, 0
	e.hasData = false
	e.err = fmt.Errorf("read event: %w: more than %d bytes", ErrEventTooLarge, e.max)
	return e.err
}
