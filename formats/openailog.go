package formats

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/openai"
	"retrace/record"
	"retrace/record/capture"
)

// logBlock is the block size of a log's prompts, in tokens, where no flag says
// another.
const logBlock = 16

func init() {
	register(&Format{
		Name: logName, Title: "logs of OpenAI-style requests, the body in a column",
		Files: "JSON Lines or CSV", BlockSize: logBlock, Unit: time.Second, Turns: TurnsFull,
		TimeFields:  logTimes,
		Carries:     FieldID | FieldSession | FieldParent | FieldArrival | FieldInput | FieldOutput | FieldBlocks | FieldBody | FieldModel | FieldObserved,
		Detect:      detectLog,
		NewImporter: func(c ImportConfig) Importer { return newLogImporter(c) },
	})
}

const logName = "openai-log"

// The columns of a log by the names that they may have; of several in one row
// the first that is not empty counts.
var (
	logBodies    = []string{"request", "request_json", "request_body"}
	logResponses = []string{"response", "response_json", "response_body"}
	logTimes     = []string{"timestamp", "time", "created_at", "request_time", "start_time"}
	logIDs       = []string{"id", "request_id", fieldCustomID}
	logSessions  = []string{fieldSessionID, "conversation_id"}
	logPaths     = []string{fieldURL, "path", "endpoint"}
	logModels    = []string{"model"}
	logStatuses  = []string{"status_code", "status"}
	logLatencies = []string{"latency_ms", "duration_ms"}
)

var logSchema = csvSchema{
	known: slices.Concat(logBodies, logResponses, logTimes, logIDs, logSessions, logPaths, logModels, logStatuses, logLatencies, []string{fieldAPI}),
	oneOf: logBodies,
	// A body in a cell may be indented, a response the events of a stream.
	cellLines: 1 << 17,
}

func detectLog(h *Head) Match {
	for _, row := range h.Rows {
		if hasLogBody(row) {
			return Sure
		}
	}
	if len(h.Rows) == 0 && slices.ContainsFunc(h.Lines, logSchema.isHeader) {
		return Sure
	}
	return No
}

// hasLogBody says whether a row has a body where logs have it. Of a row that is
// cut before its body the keys decide.
func hasLogBody(row []Member) bool {
	if hasAny(row, []string{"retrace", "captureData", "hash_ids", "input_length"}) {
		return false
	}
	for _, name := range logBodies {
		raw, ok := Find(row, name)
		if ok && (raw == nil || isObject(raw) || isObject([]byte(strings.TrimSpace(jsonText(raw))))) {
			return true
		}
	}
	return false
}

// logNote is what every reader of a log has to know.
const logNote = "the time of a row may be its arrival or its end: the log does not say"

// logImporter reads logs.
type logImporter struct {
	config ImportConfig
	mode   capture.Mode
	blocks *capture.Numbering
	table  csvTable
	src    *Source
	// timed and wall are as the first row has it: a time or none, since 1970 or
	// from some start.
	started, timed, wall, dated bool
	// responses are the requests by the ids of their answers, hashed: what a
	// later one names as the one before it.
	responses map[uint64]logTurn
}

// logTurn is a request that another may follow.
type logTurn struct{ id, session string }

func newLogImporter(c ImportConfig) *logImporter {
	m := &logImporter{config: c, mode: c.Capture, table: csvTable{schema: logSchema}, responses: map[uint64]logTurn{}}
	if m.mode == "" {
		m.mode = capture.Full
	}
	if m.config.Salt.IsZero() { // nothing is hashed that leaves the process
		m.config.Salt = capture.NewSalt()
	}
	m.blocks = capture.NewNumbering(m.config.Salt, c.BlockSize)
	return m
}

// Describe tells what was kept, and what a time and a block are.
func (m *logImporter) Describe(h *record.Header) {
	h.Capture = string(m.mode)
	h.TimeBasis = "unknown"
	h.Wall = m.wall
	if m.wall {
		h.Unit = 0
	}
	if m.mode != capture.Lengths {
		m.blocks.Describe(h)
	}
}

// Read reads one file: JSON Lines where any of the first lines is an object,
// else CSV.
func (m *logImporter) Read(src *Source, emit func(*record.Request) error) error {
	src.discreet = m.mode != capture.Full
	m.src = src
	in := bufio.NewReaderSize(src.in, headSize)
	start, err := in.Peek(headSize)
	src.in = in
	if len(NewHead(start, errors.Is(err, io.EOF)).Rows) > 0 {
		return src.EachLine(m.line, emit)
	}
	return m.table.read(src, m.cells, emit)
}

// line reads a row of JSON.
func (m *logImporter) line(line []byte, r *record.Request) error {
	members, err := ParseObject(line)
	if err != nil {
		return m.broken(err)
	}
	row := make([]logCell, 0, len(members))
	for _, f := range members {
		c := logCell{name: f.Key, known: slices.Contains(logSchema.known, f.Key), raw: f.Raw, text: f.Raw}
		switch {
		case isNull(f.Raw):
			c.text = nil
		case f.Raw[0] == '"':
			text, _ := DecodeString(f.Raw)
			c.text = []byte(text)
		}
		row = append(row, c)
	}
	return m.row(row, r)
}

// broken is the error of a line that is no object. A key may be anybody's text
// too.
func (m *logImporter) broken(err error) error {
	err = m.src.jsonFault(err)
	var f *SyntaxError
	if errors.As(err, &f) && m.src.discreet && !slices.Contains(logSchema.known, f.Field) {
		f.Field = ""
	}
	return err
}

// cells reads a row of CSV.
func (m *logImporter) cells(layout csvLayout, cells [][]byte, text []byte, r *record.Request) error {
	if err := layout.check(m.src, cells, text); err != nil {
		return err
	}
	row := make([]logCell, len(cells))
	for i, cell := range cells {
		row[i] = logCell{name: layout.fields[i], known: true, text: cell}
		if row[i].name == "" {
			row[i].name, row[i].known = layout.names[i], false
		}
	}
	return m.row(row, r)
}

// row makes a request of a row.
func (m *logImporter) row(row []logCell, r *record.Request) error {
	d := logRow{m: m, r: r, cells: row}
	if err := d.decode(); err != nil {
		return err
	}
	m.capture(r)
	if m.mode == capture.Full {
		r.Extra = d.rest()
	}
	return nil
}

// capture hashes the prompt and takes out what the mode does not keep.
func (m *logImporter) capture(r *record.Request) {
	if p, ok := capture.ReadPrompt(openai.API(r.API), r.Body); ok {
		if !p.IsTokens && m.config.Encode != nil {
			p.Tokens, p.IsTokens = m.config.Encode(nil, p.Text), true
		}
		if p.IsTokens && r.InputTokens == record.Unknown {
			r.InputTokens = int64(len(p.Tokens))
		}
		m.blocks.Measure(p, r.InputTokens)
		if m.mode != capture.Lengths {
			if r.Blocks, ok = m.blocks.Append(nil, p); !ok {
				m.src.Warn("text without its tokens, in a log that begins with prompts of token ids, has no blocks: --tokenizer makes them")
			}
		}
	}
	m.mode.Strip(r, m.config.Salt)
}

// follow finds the request that r goes on from, and remembers r for those that
// go on from it.
func (m *logImporter) follow(r *record.Request, previous, response string) {
	if turn, ok := m.responses[xxhash.Sum64String(previous)]; ok && previous != "" {
		r.Parent = turn.id
		if r.Session == "" {
			r.Session = turn.session
		}
	}
	if response == "" {
		return
	}
	if r.ID == "" {
		r.ID = response
	}
	if r.Session == "" {
		r.Session = response
	}
	m.responses[xxhash.Sum64String(response)] = logTurn{r.ID, r.Session}
}
