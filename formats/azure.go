package formats

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"retrace/record"
)

// Azure's columns by their published names.
const (
	azureTime    = "TIMESTAMP"
	azureContext = "ContextTokens"
	azureOutput  = "GeneratedTokens"
	azureImages  = "NumImages"
)

// azureText is the column order of the traces of text alone, 2023 and 2024.
var azureText = []string{azureTime, azureContext, azureOutput}

var azureSchema = csvSchema{known: []string{azureTime, azureImages, azureContext, azureOutput}, required: azureText}

func init() {
	register(&Format{
		Name: "azure", Title: "Azure LLM inference traces, 2023 to 2025",
		Files: "CSV with a header",
		// Times are dates, so no unit applies.
		TimeFields: []string{azureTime},
		Carries:    FieldArrival | FieldInput | FieldOutput | FieldMedia | FieldObserved,
		Loses:      azureLoses,
		Detect: func(h *Head) Match {
			if slices.ContainsFunc(h.Lines, azureSchema.isHeader) {
				return Sure
			}
			return No
		},
		NewImporter: func(ImportConfig) Importer { return newAzureImporter() },
		NewExporter: newAzureExporter,
	})
}

// azureLoses: of what was observed a row has lengths alone, of media their number.
func azureLoses(r *record.Request) string {
	for _, m := range r.Media {
		if m != azureImage {
			return "media beyond the number of images"
		}
	}
	seen := record.NewObserved()
	seen.Failed = r.Observed.Failed
	if r.Observed != seen {
		return "what the source observed"
	}
	return ""
}

// azureImage is an image of which nothing is known but that there was one.
var azureImage = record.Media{Kind: "image", Bytes: record.Unknown}

// maxAzureImages bounds the images of one row.
const maxAzureImages = 4096

// azureImageNote is what every reader of the multimodal trace has to know.
const azureImageNote = "the source does not say whether ContextTokens counts the tokens of images: " +
	"it is taken as the whole length of the prompt"

// azureImporter reads Azure files.
type azureImporter struct {
	table csvTable
	src   *Source
	buf   []byte
}

func newAzureImporter() *azureImporter {
	return &azureImporter{table: csvTable{schema: azureSchema}}
}

// Describe says that times are dates, and keeps the layout.
func (a *azureImporter) Describe(h *record.Header) {
	h.Wall = true
	h.Unit = 0
	h.TimeBasis = "arrival"
	h.Layout = a.table.columns
}

// Read reads one file: its header, then its rows.
func (a *azureImporter) Read(src *Source, emit func(*record.Request) error) error {
	a.src = src
	return a.table.read(src, a.decode, emit)
}

func (a *azureImporter) decode(layout csvLayout, cells [][]byte, text []byte, r *record.Request) error {
	if err := layout.check(a.src, cells, text); err != nil {
		return err
	}
	var extra []Member
	for i, cell := range cells {
		var err error
		switch field := layout.fields[i]; field {
		case azureTime:
			err = a.time(cell, r)
		case azureContext:
			r.InputTokens, err = a.count(field, cell, r)
		case azureOutput:
			r.OutputTokens, err = a.count(field, cell, r)
		case azureImages:
			err = a.images(cell, r)
		default:
			a.src.Unknown(layout.names[i])
			if len(cell) > 0 {
				extra = append(extra, Member{layout.names[i], AppendString(nil, string(cell))})
			}
		}
		if err != nil {
			return err
		}
	}
	r.Observed.Failed = r.OutputTokens == 0
	if len(extra) > 0 {
		r.Extra = AppendObject(nil, extra)
	}
	return nil
}

// time reads the date: naive ones are in UTC.
func (a *azureImporter) time(cell []byte, r *record.Request) error {
	bare := bytes.TrimSpace(cell)
	if len(bare) == 0 {
		return a.src.faultOf(azureTime, cell, ErrNoTime)
	}
	when, ok := parseWallTime(string(bare))
	if !ok {
		return a.src.Fault(azureTime, cell, "a date such as 2023-11-16 18:17:03.9799600, from 1970 to 2262")
	}
	r.Arrival = when
	form, ok := azureFormOf(cell)
	if ok {
		a.buf = form.append(a.buf[:0], when)
	}
	switch {
	case !ok || !bytes.Equal(cell, a.buf):
		keepLiteral(r, azureTime, cell)
	case form != azureNaive:
		r.Exceptions = append(r.Exceptions, record.Exception{Field: azureFormField, Raw: form.text()})
	}
	return nil
}

// count reads a number; an empty cell is an unknown one.
func (a *azureImporter) count(field string, cell []byte, r *record.Request) (int64, error) {
	if n, ok := plainCount(cell); ok {
		return n, nil
	}
	bare := bytes.TrimSpace(cell)
	if len(bare) == 0 {
		if len(cell) > 0 {
			keepLiteral(r, field, cell)
		}
		return record.Unknown, nil
	}
	n, err := ParseCount(bare)
	if err != nil {
		f := a.src.Fault(field, cell, expectCount)
		f.Err = err
		return 0, f
	}
	if !bytes.Equal(cell, strconv.AppendInt(nil, n, 10)) {
		keepLiteral(r, field, cell)
	}
	return n, nil
}

// images reads the number of images. An unknown one is kept apart from none.
func (a *azureImporter) images(cell []byte, r *record.Request) error {
	n, err := a.count(azureImages, cell, r)
	switch {
	case err != nil:
		return err
	case n > maxAzureImages:
		return a.src.Fault(azureImages, cell, "at most "+strconv.Itoa(maxAzureImages)+" images")
	case n == record.Unknown && len(cell) == 0:
		keepLiteral(r, azureImages, cell)
	case n > 0:
		a.src.Warn(azureImageNote)
		r.Media = slices.Repeat([]record.Media{azureImage}, int(n))
	}
	return nil
}

func keepLiteral(r *record.Request, field string, cell []byte) {
	r.Exceptions = append(r.Exceptions, record.Exception{Field: field, Raw: append([]byte{}, cell...)})
}

// azureFormField is the exception that tells the form of a date: unlike a kept
// literal it holds for any time.
const azureFormField = azureTime + " form"

// azureForm is how a date is spelt: what parts it from the time of day, the
// digits of its fraction, and the zone, which is UTC or left out.
type azureForm struct {
	sep    byte
	digits int
	zone   string
}

// azureNaive is the form of the traces of 2023.
var azureNaive = azureForm{' ', 7, ""}

const (
	azureDay  = len("2023-11-16")
	azureBare = len("2023-11-16 18:17:03")
)

var azureZones = []string{"", "Z", "+00:00"}

// azureFormOf tells the form of a date; ok says that it is one of those.
func azureFormOf(cell []byte) (f azureForm, ok bool) {
	if len(cell) < azureBare {
		return f, false
	}
	f.sep = cell[azureDay]
	rest := cell[azureBare:]
	if len(rest) > 1 && rest[0] == '.' {
		for rest = rest[1:]; f.digits < len(rest) && rest[f.digits] >= '0' && rest[f.digits] <= '9'; {
			f.digits++
		}
		rest = rest[f.digits:]
	}
	f.zone = string(rest)
	return f, f.valid()
}

func (f azureForm) valid() bool {
	return (f.sep == ' ' || f.sep == 'T') && f.digits <= 9 && slices.Contains(azureZones, f.zone)
}

// text is the form for its exception: " 6+00:00".
func (f azureForm) text() []byte {
	return append([]byte{f.sep, '0' + byte(f.digits)}, f.zone...)
}

// parseAzureForm reads what text has written.
func parseAzureForm(raw []byte) (f azureForm, ok bool) {
	if len(raw) < 2 || raw[1] < '0' {
		return f, false
	}
	f = azureForm{raw[0], int(raw[1] - '0'), string(raw[2:])}
	return f, f.valid()
}

// append writes a time since 1970, with more digits where it needs them.
func (f azureForm) append(dst []byte, at time.Duration) []byte {
	t := time.Unix(0, int64(at)).UTC()
	dst = t.AppendFormat(dst, time.DateOnly)
	dst = append(dst, f.sep)
	dst = t.AppendFormat(dst, time.TimeOnly)
	ns := t.Nanosecond()
	digits := 9
	for rest := ns; digits > f.digits && rest%10 == 0; rest /= 10 {
		digits--
	}
	if digits > 0 {
		fraction := strconv.AppendInt(nil, int64(1e9+ns), 10) // a one, then nine digits
		dst = append(append(dst, '.'), fraction[1:1+digits]...)
	}
	return append(dst, f.zone...)
}
