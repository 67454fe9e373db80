package formats

import (
	"io"
	"strconv"
	"time"

	"retrace/record"
)

// burstExporter writes BurstGPT rows.
type burstExporter struct {
	csvExporter
	unit   time.Duration
	origin time.Duration
	clock  exportClock
}

func newBurstExporter(w io.Writer, h *record.Header) Exporter {
	e := &burstExporter{unit: time.Second}
	names := burstRelease1
	if h.Turns != "" {
		names = burstRelease3
	}
	same := h.Source == "burstgpt"
	if same && h.Unit > 0 {
		e.unit = h.Unit
	}
	if same && len(h.Layout) > 0 {
		names = h.Layout
	}
	if !h.Wall {
		e.origin = h.Origin
	}
	e.csvExporter = newCSVExporter(w, burstSchema, names, burstRelease3, same)
	return e
}

// Write writes one row.
func (e *burstExporter) Write(r *record.Request) error {
	return e.row(r, func(field string) []byte { return e.cell(field, r) })
}

// cell is the cell of a known column.
func (e *burstExporter) cell(field string, r *record.Request) []byte {
	rendered := e.render(field, r)
	if !e.same {
		return rendered
	}
	for _, x := range r.Exceptions {
		switch {
		case x.Field == field:
			return x.Raw
		case x.Field == field+plusMark && isZeros(rendered, x.Raw):
			return append(rendered, x.Raw...)
		}
	}
	return rendered
}

// render is the cell as the request's fields give it.
func (e *burstExporter) render(field string, r *record.Request) []byte {
	switch field {
	case colTime:
		return AppendTime(nil, e.clock.at(r)+e.origin, e.unit)
	case colSession:
		return []byte(r.Session)
	case colElapsed:
		if r.Observed.Latency == record.NoTime {
			return nil
		}
		return AppendTime(nil, r.Observed.Latency, time.Second)
	case colModel:
		return []byte(r.Model)
	case colRequest:
		return countCell(r.InputTokens)
	case colResponse:
		return countCell(e.response(r))
	case colTotal:
		sum := *r
		sum.OutputTokens = e.response(r)
		return countCell(burstTotal(&sum))
	}
	return []byte(e.kind(r))
}

// response is the answer's length: of another source, what it observed where
// it does not say what was wanted.
func (e *burstExporter) response(r *record.Request) int64 {
	if !e.same && r.OutputTokens == record.Unknown {
		return r.Observed.OutputTokens
	}
	return r.OutputTokens
}

// kind is the log type: conversations are what has a session.
func (e *burstExporter) kind(r *record.Request) string {
	switch {
	case e.same || r.Kind != "":
		return r.Kind
	case r.Session != "":
		return "Conversation log"
	}
	return "API log"
}

func countCell(n int64) []byte {
	if n == record.Unknown {
		return nil
	}
	return strconv.AppendInt(nil, n, 10)
}

// exportClock gives each request a time, for formats whose rows must have one:
// a turn that has a delay alone comes that long after the session's previous
// turn (which takes no time here: what it takes is not known).
type exportClock struct {
	last map[string]time.Duration
}

// at is the offset of r from the trace's origin.
func (c *exportClock) at(r *record.Request) time.Duration {
	at := r.Arrival
	if at == record.NoTime {
		at = c.last[r.Session]
		if r.Delay != record.NoTime {
			at += r.Delay
		}
	}
	if r.Session != "" {
		if c.last == nil {
			c.last = map[string]time.Duration{}
		}
		c.last[r.Session] = at
	}
	return at
}
