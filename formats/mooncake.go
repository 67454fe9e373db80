package formats

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"retrace/record"
)

// mooncakeBlock is the block size of the published Mooncake traces, in tokens.
const mooncakeBlock = 512

// delayMeaning is what a Mooncake dialect's delay says.
const delayMeaning = "from the end of the session's previous turn to the sending of this one"

func init() {
	register(&Format{
		Name: "mooncake", Title: "Mooncake trace and dialects (AIPerf, Dynamo, SGLang)",
		Files: "JSON Lines", BlockSize: mooncakeBlock, Unit: time.Millisecond,
		TimeFields: []string{"timestamp", "delay"},
		Carries: FieldArrival | FieldDelay | FieldInput | FieldOutput | FieldBlocks | FieldSession | FieldTurn |
			FieldIncrement | FieldBody | FieldPriority,
		Loses:       mooncakeLoses,
		LeavesOut:   mooncakeLeavesOut,
		Detect:      detectMooncake,
		NewImporter: func(c ImportConfig) Importer { return newMooncakeImporter(c) },
		NewExporter: newMooncakeExporter,
	})
}

// mooncakeLoses: a row has either lengths or a body, and its body is JSON.
func mooncakeLoses(r *record.Request) string {
	body := isPayload(r.Body)
	switch {
	case body && r.InputTokens != record.Unknown:
		return "input tokens beside a body"
	case r.Body != nil && !body:
		return "bodies that are no JSON objects"
	}
	return ""
}

// mooncakeLeavesOut: a row must say what its input is.
func mooncakeLeavesOut(r *record.Request) string {
	if r.InputTokens == record.Unknown && !isPayload(r.Body) {
		return "requests without input length or JSON body"
	}
	return ""
}

// isPayload says whether a body can be the payload of a row.
func isPayload(body []byte) bool {
	if body == nil {
		return false
	}
	_, err := ParseObject(body)
	return err == nil
}

func detectMooncake(h *Head) Match {
	if h.Has("chat_id") || h.Has("parent_chat_id") || h.Has("captureData") || h.Has("retrace") {
		return No
	}
	timed := h.Has("timestamp") || h.Has("delay")
	for _, key := range []string{"input_length", "text_input", "payload"} {
		switch {
		case h.Has(key) && timed, h.Has(key, "hash_ids"):
			return Sure
		case h.Has(key):
			return Maybe
		}
	}
	if h.Has("messages") && !h.Has(fieldBody) { // else the bodies of payloads
		if timed {
			return Sure
		}
		return Maybe
	}
	return No
}

// mooncakeImporter reads Mooncake rows.
type mooncakeImporter struct {
	config ImportConfig
	scan   mooncakeScanner
	row    plainRow
	render mooncakeRenderer
	src    *Source
	delays bool
}

func newMooncakeImporter(c ImportConfig) *mooncakeImporter {
	return &mooncakeImporter{
		config: c, scan: newMooncakeScanner(c.Unit), render: mooncakeRenderer{unit: c.Unit, own: true},
	}
}

// Describe says what a delay means, where there was one.
func (m *mooncakeImporter) Describe(h *record.Header) {
	h.TimeBasis = "arrival"
	if m.delays {
		h.DelayMeaning = delayMeaning
	}
}

// Read reads one file line by line.
func (m *mooncakeImporter) Read(src *Source, emit func(*record.Request) error) error {
	m.src = src
	return src.EachLine(m.decode, emit)
}

// recycle lets the block lists given out so far be overwritten.
func (m *mooncakeImporter) recycle() { m.scan.slab.recycle() }

func (m *mooncakeImporter) decode(line []byte, r *record.Request) error {
	row := &m.row
	if !m.scan.scan(line, row) {
		return m.decodeAny(line, r)
	}
	if row.seen&seenTime != 0 {
		r.Arrival = row.time
	}
	if row.seen&seenDelay != 0 {
		r.Delay, m.delays = row.delay, true
	}
	if row.seen&seenSession != 0 {
		r.Session = string(row.session)
	}
	r.InputTokens = row.input
	if row.seen&seenOutput != 0 {
		r.OutputTokens = row.output
	}
	if row.seen&seenBlocks != 0 {
		if !fitsBlocks(row.input, len(row.blocks), m.config.BlockSize) {
			return m.blockFault(row.input, len(row.blocks))
		}
		r.Blocks = m.scan.slab.keep(row.blocks)
	}
	r.Observed.Failed = row.input == 0 || r.OutputTokens == 0
	return nil
}

// fitsBlocks says whether n blocks are what the prompt of that length has.
func fitsBlocks(tokens int64, n, size int) bool {
	return int64(n) == (tokens+int64(size)-1)/int64(size)
}

// blockFault is the error of a row whose blocks do not fit its length.
func (m *mooncakeImporter) blockFault(tokens int64, n int) error {
	f := m.src.Fault("hash_ids", nil, "ceil(input_length / block size) ids")
	want := (tokens + int64(m.config.BlockSize) - 1) / int64(m.config.BlockSize)
	f.Found = plural(int64(n), "id") + " for " + plural(tokens, "token")
	off := plural(want-int64(n), "block") + " short"
	if want < int64(n) {
		off = plural(int64(n)-want, "block") + " too many"
	}
	f.Err = fmt.Errorf("with blocks of %d tokens that is %d ids: %s; %s",
		m.config.BlockSize, want, off, admissible(tokens, int64(n)))
	return f
}

// plural is "1 block", "2 blocks".
func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// admissible names the block sizes with which tokens need exactly n blocks.
func admissible(tokens, n int64) string {
	if n <= 0 || tokens <= 0 || n > tokens {
		return "no block size fits"
	}
	low := (tokens + n - 1) / n
	if n == 1 {
		return fmt.Sprintf("--block-size %d or more would fit", low)
	}
	high := (tokens - 1) / (n - 1)
	if low > high {
		return "no block size fits"
	}
	usual := ""
	for _, b := range []int64{512, 256, 128, 64, 32, 16} {
		if b >= low && b <= high {
			usual = fmt.Sprintf(" (%d, say)", b)
			break
		}
	}
	return fmt.Sprintf("--block-size %d–%d would fit%s", low, high, usual)
}

// mooncakeExporter writes Mooncake rows.
type mooncakeExporter struct {
	w      io.Writer
	buf    []byte
	render mooncakeRenderer
	// origin is added to arrivals.
	origin time.Duration
}

func newMooncakeExporter(w io.Writer, h *record.Header) Exporter {
	e := &mooncakeExporter{w: w, render: mooncakeRenderer{unit: time.Millisecond}}
	if h.Source == "mooncake" {
		e.render.own, e.origin = true, h.Origin
		if h.Unit > 0 {
			e.render.unit = h.Unit
		}
	}
	return e
}

// Write writes one line.
func (e *mooncakeExporter) Write(r *record.Request) error {
	shifted := *r
	if r.Arrival != record.NoTime {
		shifted.Arrival += e.origin
	}
	row, err := e.render.render(&shifted)
	if err != nil {
		return fmt.Errorf("write request %s: %w", r.Key(), err)
	}
	if e.render.own {
		row = Restore(row, r.Exceptions)
	}
	e.buf = append(AppendObject(e.buf[:0], row), '\n')
	_, err = e.w.Write(e.buf)
	return err
}

// Close has nothing to do: every line is written whole.
func (e *mooncakeExporter) Close() error { return nil }

// bodyMark is the pseudo field that says which of the source's input kinds a
// body was.
const bodyMark = "#body"

func hasValue(raw []byte) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }
