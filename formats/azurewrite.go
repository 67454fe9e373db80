package formats

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"retrace/record"
)

// azureExporter writes Azure rows.
type azureExporter struct {
	w      *bufio.Writer
	layout csvLayout
	origin time.Duration
	// same says that the source was Azure too.
	same  bool
	clock exportClock
	buf   []byte
	extra []Member
}

func newAzureExporter(w io.Writer, h *record.Header) Exporter {
	e := &azureExporter{w: bufio.NewWriter(w), origin: h.Origin, same: h.Source == "azure"}
	names := azureText
	if e.same && len(h.Layout) > 0 {
		names = h.Layout
	}
	layout, err := azureSchema.layout(names)
	if err != nil { // a header that no importer made
		layout, _ = azureSchema.layout(azureSchema.known)
	}
	e.layout = layout
	_, _ = e.w.Write(layout.appendHeader(nil)) // it fails again at the next write
	return e
}

// Write writes one row.
func (e *azureExporter) Write(r *record.Request) error {
	e.extra = nil
	if e.same && r.Extra != nil {
		var err error
		if e.extra, err = ParseObject(r.Extra); err != nil {
			return fmt.Errorf("write request %s: read its leftovers: %w", r.Key(), err)
		}
	}
	e.buf = e.buf[:0]
	at := e.clock.at(r) + e.origin
	for i := range e.layout.fields {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = appendCell(e.buf, e.cell(i, r, at))
	}
	_, err := e.w.Write(append(e.buf, '\n'))
	return err
}

// cell is the cell of column i.
func (e *azureExporter) cell(i int, r *record.Request, at time.Duration) []byte {
	field := e.layout.fields[i]
	if field == "" {
		raw, _ := Find(e.extra, e.layout.names[i])
		text, _ := DecodeString(raw)
		return []byte(text)
	}
	form := azureNaive
	if e.same {
		for _, x := range r.Exceptions {
			if x.Field == field {
				return x.Raw
			}
			if f, ok := parseAzureForm(x.Raw); ok && x.Field == azureFormField {
				form = f
			}
		}
	}
	switch field {
	case azureTime:
		return form.append(nil, at)
	case azureContext:
		return countCell(r.InputTokens)
	case azureImages:
		return countCell(int64(len(r.Media)))
	}
	if !e.same && r.OutputTokens == record.Unknown {
		return countCell(r.Observed.OutputTokens)
	}
	return countCell(r.OutputTokens)
}

// Close writes out what is buffered.
func (e *azureExporter) Close() error { return e.w.Flush() }
