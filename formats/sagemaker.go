package formats

import (
	"encoding/base64"
	"regexp"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
)

func init() {
	register(&Format{
		Name: "sagemaker", Title: "Amazon SageMaker Data Capture",
		Files: "JSON Lines, or hour folders",
		// Times are dates, so no unit applies.
		TimeFields: []string{pathInferenceTime},
		Carries: FieldID | FieldArrival | FieldInput | FieldOutput | FieldBody | FieldModel |
			FieldObserved,
		Detect:      detectSageMaker,
		NewImporter: func(ImportConfig) Importer { return newSageMakerImporter() },
		NewExporter: newSageMakerExporter,
	})
}

// Names of fields of a capture row.
const (
	fieldCapture       = "captureData"
	fieldInput         = "endpointInput"
	fieldOutput        = "endpointOutput"
	fieldMetadata      = "eventMetadata"
	fieldInferenceTime = "inferenceTime"
	pathInferenceTime  = fieldMetadata + "." + fieldInferenceTime
)

func detectSageMaker(h *Head) Match {
	if h.Has(fieldCapture) {
		return Sure
	}
	return No
}

// captureNote is what every reader of a capture has to know.
const captureNote = "a capture may be a sample (its percentage is not in the file) and stops when the disk fills up: " +
	"gaps are not idle time, and rates may be too low; inferenceTime may be arrival or completion"

// sageMakerImporter reads capture files.
type sageMakerImporter struct {
	src *Source
	// variant is the endpoint and variant of the file, by its path.
	variant string
	// seen are hashes of the event ids so far, to notice one that comes twice.
	seen map[uint64]struct{}
	// timed counts the times, fractions says that one is no whole second.
	timed     int64
	fractions bool
}

func newSageMakerImporter() *sageMakerImporter {
	return &sageMakerImporter{seen: map[uint64]struct{}{}}
}

// Describe says that times are dates, and that what they mark is not documented.
func (m *sageMakerImporter) Describe(h *record.Header) {
	h.Wall = true
	h.Unit = 0
	h.TimeBasis = "unknown"
	if m.timed > 1 && !m.fractions && h.Quantum == 0 {
		h.Quantum = time.Second
	}
}

// Read reads one file line by line.
func (m *sageMakerImporter) Read(src *Source, emit func(*record.Request) error) error {
	if m.src == nil {
		src.Warn(captureNote)
	}
	m.src, m.variant = src, captureVariant(src.Name)
	return src.EachLine(m.decode, emit)
}

var capturePath = regexp.MustCompile(`([^/]+/[^/]+)/\d{4}/\d{2}/\d{2}/\d{2}/[^/]+$`)

// captureVariant is "endpoint/variant" of a file that lies in hour folders, ""
// of any other.
func captureVariant(path string) string {
	if m := capturePath.FindStringSubmatch(strings.ReplaceAll(path, `\`, "/")); m != nil {
		return m[1]
	}
	return ""
}

// decode reads one row.
func (m *sageMakerImporter) decode(line []byte, r *record.Request) error {
	row, err := ParseObject(line)
	if err != nil {
		return m.src.jsonFault(err)
	}
	d := captureRow{m: m, r: r, row: row}
	if err := d.metadata(); err != nil {
		return err
	}
	if err := d.capture(); err != nil {
		return err
	}
	for _, f := range row {
		switch f.Key {
		case fieldCapture, fieldMetadata, "eventVersion":
		default:
			m.src.Unknown(f.Key)
		}
	}
	r.Kind = m.variant
	r.Extra = AppendObject(nil, d.row)
	return nil
}

// captureRow takes one row apart: what the model holds goes out of row, the
// rest of which is kept.
type captureRow struct {
	m   *sageMakerImporter
	r   *record.Request
	row []Member
}

// metadata takes the id and the time of the event.
func (d *captureRow) metadata() error {
	src := d.m.src
	at := indexOf(d.row, fieldMetadata)
	if at < 0 {
		return src.faultOf(pathInferenceTime, nil, ErrNoTime)
	}
	meta, err := ParseObject(d.row[at].Raw)
	if err != nil {
		return src.Fault(fieldMetadata, d.row[at].Raw, "an object")
	}
	if raw, ok := Find(meta, "eventId"); ok && raw[0] == '"' {
		d.r.ID, _ = DecodeString(raw)
		d.noteID()
	}
	i := indexOf(meta, fieldInferenceTime)
	if i < 0 || isNull(meta[i].Raw) {
		return src.faultOf(pathInferenceTime, nil, ErrNoTime)
	}
	raw := meta[i].Raw
	text := ""
	if raw[0] == '"' {
		text, _ = DecodeString(raw)
	}
	when, ok := parseWallTime(text)
	if !ok {
		return src.Fault(pathInferenceTime, raw, "a date and time from 1970 to 2262, such as 2025-02-03T04:05:06Z")
	}
	d.r.Arrival = when
	d.m.timed++
	d.m.fractions = d.m.fractions || when%time.Second != 0
	if rendered := AppendString(nil, formatWallTime(when)); !EqualValue(raw, rendered) {
		d.r.Exceptions = append(d.r.Exceptions, record.Exception{Field: pathInferenceTime, Raw: append([]byte{}, raw...)})
	}
	meta = append(meta[:i], meta[i+1:]...)
	d.row[at].Raw = AppendObject(nil, meta)
	return nil
}

func (d *captureRow) noteID() {
	id := xxhash.Sum64String(d.r.ID)
	if _, twice := d.m.seen[id]; twice {
		d.m.src.Warn("eventId occurs more than once: the same events may have been captured twice; all rows were kept")
	}
	d.m.seen[id] = struct{}{}
}

// capture takes the two sides.
func (d *captureRow) capture() error {
	src := d.m.src
	at := indexOf(d.row, fieldCapture)
	if at < 0 {
		return src.Fault(fieldCapture, []byte("none"), "the captured sides")
	}
	sides, err := ParseObject(d.row[at].Raw)
	if err != nil {
		return src.Fault(fieldCapture, d.row[at].Raw, "an object")
	}
	in := indexOf(sides, fieldInput)
	if in < 0 || isNull(sides[in].Raw) {
		fault := src.Fault(fieldCapture+"."+fieldInput, nil, "")
		fault.Err, fault.Skip = errNoInput, true
		return fault
	}
	if err := d.input(&sides[in]); err != nil {
		return err
	}
	if out := indexOf(sides, fieldOutput); out >= 0 && !isNull(sides[out].Raw) {
		if err := d.output(sides[out]); err != nil {
			return err
		}
	}
	d.row[at].Raw = AppendObject(nil, sides)
	return nil
}

// input takes the request's body; where an export can make the side's data of
// it again, the data goes out of the row.
func (d *captureRow) input(side *Member) error {
	members, data, err := d.side(*side)
	if err != nil || data == nil {
		return err
	}
	facts := readInputBody(data)
	r := d.r
	r.InputTokens, r.OutputTokens, r.Model = facts.input, facts.wanted, facts.model
	if facts.api == "" {
		return nil
	}
	r.API, r.Body = facts.api, data
	at := indexOf(members, "data")
	encoding, _ := Find(members, "encoding")
	if EqualValue(members[at].Raw, encodeData(data, jsonText(encoding))) {
		members = append(members[:at], members[at+1:]...)
	}
	side.Raw = AppendObject(nil, members)
	return nil
}

// output takes what the answer tells.
func (d *captureRow) output(side Member) error {
	_, data, err := d.side(side)
	if err != nil || data == nil {
		return err
	}
	facts := readOutputBody(data)
	r := d.r
	if facts.input != record.Unknown {
		r.InputTokens = facts.input
	}
	r.Observed.InputTokens, r.Observed.OutputTokens, r.Observed.Failed = facts.input, facts.output, facts.failed
	return nil
}

// side gives a side's members and its data, decoded by its own encoding; nil
// where it has none.
func (d *captureRow) side(f Member) ([]Member, []byte, error) {
	src := d.m.src
	name := fieldCapture + "." + f.Key
	members, err := ParseObject(f.Raw)
	if err != nil {
		return nil, nil, src.Fault(name, f.Raw, "an object")
	}
	raw, ok := Find(members, "data")
	if !ok || isNull(raw) {
		return members, nil, nil
	}
	if raw[0] != '"' {
		return nil, nil, src.Fault(name+".data", raw, "a string")
	}
	text, _ := DecodeString(raw)
	encoding, _ := Find(members, "encoding")
	switch kind := jsonText(encoding); {
	case isBase64(kind):
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			f := src.Fault(name+".data", []byte(text), "Base64, as its encoding says")
			f.Err = err
			return nil, nil, f
		}
		return members, data, nil
	case kind != "JSON" && kind != "CSV":
		src.Warn("data whose encoding is none of JSON, CSV and BASE64 was taken as text")
	}
	return members, []byte(text), nil
}

func isBase64(encoding string) bool { return strings.EqualFold(encoding, "BASE64") }

// encodeData is the data string of a body, as JSON.
func encodeData(body []byte, encoding string) []byte {
	if isBase64(encoding) {
		return AppendString(nil, base64.StdEncoding.EncodeToString(body))
	}
	return AppendString(nil, string(body))
}

// wallLayouts are the forms of a date; the seconds may have a fraction, and a
// date without a zone is UTC, whatever the machine's own zone.
var wallLayouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04:05 Z0700",
}

// maxWallSeconds is the last whole second that a time.Duration reaches: 2262.
const maxWallSeconds = (1<<63-1)/int64(time.Second) - 1

// parseWallTime reads a date as the time since 1970.
func parseWallTime(text string) (time.Duration, bool) {
	for _, layout := range wallLayouts {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if s := t.Unix(); s < 0 || s > maxWallSeconds {
			return 0, false
		}
		return time.Duration(t.UnixNano()), true
	}
	return 0, false
}

// formatWallTime writes a time since 1970 as the captures do: in UTC, with a
// fraction of 3, 6 or 9 digits where there is one.
func formatWallTime(d time.Duration) string {
	t := time.Unix(0, int64(d)).UTC()
	switch ns := t.Nanosecond(); {
	case ns == 0:
		return t.Format("2006-01-02T15:04:05Z")
	case ns%1e6 == 0:
		return t.Format("2006-01-02T15:04:05.000Z")
	case ns%1e3 == 0:
		return t.Format("2006-01-02T15:04:05.000000Z")
	}
	return t.Format("2006-01-02T15:04:05.000000000Z")
}
