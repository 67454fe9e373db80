package formats

import (
	"slices"
	"time"

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
	if slices.ContainsFunc(h.Lines, burstSchema.isHeader) {
		return Sure
	}
	return No
}

var burstRequired = []string{colTime, colRequest, colResponse}

var burstSchema = csvSchema{known: burstRelease3, required: burstRequired}

// burstImporter reads BurstGPT files.
type burstImporter struct {
	config ImportConfig
	table  csvTable
	words  map[string]string
	buf    []byte
}

func newBurstImporter(c ImportConfig) *burstImporter {
	return &burstImporter{config: c, table: csvTable{schema: burstSchema}, words: map[string]string{}}
}

// Describe keeps the layout, so that an export has it again.
func (b *burstImporter) Describe(h *record.Header) {
	h.TimeBasis = "arrival"
	h.Layout = b.table.columns
}

// Read reads one file: its header, then its rows.
func (b *burstImporter) Read(src *Source, emit func(*record.Request) error) error {
	row := burstRow{b: b, src: src}
	return b.table.read(src, func(layout csvLayout, cells [][]byte, text []byte, r *record.Request) error {
		row.layout = layout
		return row.decode(cells, text, r)
	}, emit)
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
