package formats

import (
	"io"
	"time"

	"retrace/record"
)

// azureExporter writes Azure rows.
type azureExporter struct {
	csvExporter
	origin time.Duration
	clock  exportClock
}

func newAzureExporter(w io.Writer, h *record.Header) Exporter {
	same, names := h.Source == "azure", azureText
	if same && len(h.Layout) > 0 {
		names = h.Layout
	}
	return &azureExporter{csvExporter: newCSVExporter(w, azureSchema, names, azureSchema.known, same), origin: h.Origin}
}

// Write writes one row.
func (e *azureExporter) Write(r *record.Request) error {
	at := e.clock.at(r) + e.origin
	return e.row(r, func(field string) []byte { return e.cell(field, r, at) })
}

// cell is the cell of a known column.
func (e *azureExporter) cell(field string, r *record.Request, at time.Duration) []byte {
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
