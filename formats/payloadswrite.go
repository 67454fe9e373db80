package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"retrace/record"
)

// payloadsLose: what stands in the body goes along with it.
func payloadsLose(r *record.Request) string {
	if r.Body != nil && !oneLine(r.Body) {
		return "the line ends within bodies"
	}
	return ""
}

// payloadsLeaveOut: a row is its body.
func payloadsLeaveOut(r *record.Request) string {
	if !isPayload(r.Body) {
		return "requests without a JSON body"
	}
	return ""
}

func oneLine(body []byte) bool { return !bytes.ContainsAny(body, "\r\n") }

// payloadsRow makes rows in memory that it uses again.
type payloadsRow struct {
	row []Member
	buf []byte
}

func (p *payloadsRow) add(key string, appendTo func([]byte) []byte) {
	start := len(p.buf)
	p.buf = appendTo(p.buf)
	p.row = append(p.row, Member{key, p.buf[start:len(p.buf):len(p.buf)]})
}

// render is the row that stands for r, whose Arrival is on the source's clock;
// own says that Extra holds leftovers of such a row. It is valid until the next
// call.
func (p *payloadsRow) render(r *record.Request, unit time.Duration, own bool) []Member {
	p.row, p.buf = p.row[:0], p.buf[:0]
	if r.ID != "" {
		p.add(fieldCustomID, func(b []byte) []byte { return AppendString(b, r.ID) })
	}
	if r.Arrival != record.NoTime {
		p.add(fieldTimestamp, func(b []byte) []byte { return AppendTime(b, r.Arrival, unit) })
	}
	if r.Delay != record.NoTime {
		p.add(fieldDelay, func(b []byte) []byte { return AppendTime(b, r.Delay, unit) })
	}
	if r.Session != "" {
		p.add(fieldSessionID, func(b []byte) []byte { return AppendString(b, r.Session) })
	}
	if r.API != "" {
		p.add(fieldAPI, func(b []byte) []byte { return AppendString(b, r.API) })
	}
	if own && r.Extra != nil {
		extra, _ := ParseObject(r.Extra) // it was made of members
		p.row = append(p.row, extra...)
	}
	p.row = append(p.row, Member{fieldBody, r.Body})
	return p.row
}

// payloadsExporter writes rows of bodies.
type payloadsExporter struct {
	w      io.Writer
	origin time.Duration
	unit   time.Duration
	// own says that the source was such rows too.
	own bool
	row payloadsRow
	buf []byte
}

func newPayloadsExporter(w io.Writer, h *record.Header) Exporter {
	e := &payloadsExporter{w: w, unit: time.Millisecond}
	if h.Source == "payloads" {
		e.own, e.origin = true, h.Origin
		if h.Unit > 0 {
			e.unit = h.Unit
		}
	}
	return e
}

// Write writes one line.
func (e *payloadsExporter) Write(r *record.Request) error {
	shifted := *r
	if r.Arrival != record.NoTime {
		shifted.Arrival += e.origin
	}
	if !oneLine(r.Body) {
		var b bytes.Buffer
		if err := json.Compact(&b, r.Body); err != nil {
			return fmt.Errorf("write request %s: read body: %w", r.Key(), err)
		}
		shifted.Body = b.Bytes()
	}
	e.buf = e.buf[:0]
	if e.own && slices.ContainsFunc(r.Exceptions, func(x record.Exception) bool { return x.Field == bareMark }) {
		e.buf = append(e.buf, shifted.Body...)
	} else {
		row := e.row.render(&shifted, e.unit, e.own)
		if e.own {
			row = Restore(row, r.Exceptions)
		}
		e.buf = AppendObject(e.buf, row)
	}
	e.buf = append(e.buf, '\n')
	_, err := e.w.Write(e.buf)
	return err
}

// Close has nothing to do: every line is written whole.
func (e *payloadsExporter) Close() error { return nil }
