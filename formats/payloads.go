package formats

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"retrace/openai"
	"retrace/record"
)

func init() {
	register(&Format{
		Name: "payloads", Title: "whole request bodies, one a line, timed or not",
		Files: "JSON Lines", Unit: time.Millisecond, Turns: TurnsFull,
		TimeFields:  []string{fieldTimestamp, fieldDelay},
		Carries:     FieldID | FieldArrival | FieldDelay | FieldSession | FieldTurn | FieldBody | FieldOutput | FieldModel,
		Loses:       payloadsLose,
		LeavesOut:   payloadsLeaveOut,
		Detect:      detectPayloads,
		NewImporter: func(c ImportConfig) Importer { return &payloadsImporter{unit: c.Unit} },
		NewExporter: newPayloadsExporter,
	})
}

// Fields of a row that wraps a body; url and custom_id are those of OpenAI's
// batches.
const (
	fieldTimestamp = "timestamp"
	fieldDelay     = "delay"
	fieldSessionID = "session_id"
	fieldAPI       = "api"
	fieldURL       = "url"
	fieldCustomID  = "custom_id"
	fieldBody      = "body"
)

// bareMark is the mark of a row that is a body and nothing else.
const bareMark = "#bare"

// untimedNote is told where rows have no time of their own.
const untimedNote = "rows without a time arrive with the row before them, the first at 0: --arrival gives them other times"

// requestOnly are members that only the body of a request has, and that no row
// of another format has beside its own fields.
var requestOnly = []string{
	"model", "stream", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed",
	"stream_options", "response_format", "tool_choice", "max_output_tokens", "instructions", "encoding_format", "dimensions",
}

// foreignFields are fields of other formats' rows: a row that has one of them
// is no bare body, whatever else it has.
var foreignFields = []string{
	fieldTimestamp, fieldDelay, "input_length", "output_length", "hash_ids", "text_input", "payload",
	"chat_id", "captureData", "retrace", "arrival_ns",
}

func detectPayloads(h *Head) Match {
	match := No
	for _, row := range h.Rows {
		if wraps(row) {
			return Sure
		}
		match = max(match, bare(row))
	}
	return match
}

func hasAny(row []Member, keys []string) bool {
	return slices.ContainsFunc(row, func(m Member) bool { return slices.Contains(keys, m.Key) })
}

// wraps says whether a row holds a body beside fields of its own. Of a row that
// is cut before its body the keys decide.
func wraps(row []Member) bool {
	raw, ok := Find(row, fieldBody)
	return ok && (raw == nil || isObject(raw)) && !hasAny(row, []string{"row", "retrace", "arrival_ns", "captureData"})
}

// bare says whether a row is itself the body of a request.
func bare(row []Member) Match {
	has := func(key string) bool { return indexOf(row, key) >= 0 }
	switch {
	case hasAny(row, foreignFields):
	case has("query") && has("documents"), has("inputs") && has("parameters"):
		return Sure
	case has("messages"): // alone they are a Mooncake row
		if hasAny(row, requestOnly) {
			return Sure
		}
	case has("prompt"), has("input"), has("inputs"), has("file"):
		if hasAny(row, requestOnly) {
			return Sure
		}
		if len(row) == 1 {
			return Maybe
		}
	}
	return No
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// payloadsImporter reads rows of bodies.
type payloadsImporter struct {
	unit   time.Duration
	src    *Source
	last   time.Duration
	delays bool
	row    payloadsRow
}

// Describe says what a delay means, where there was one.
func (p *payloadsImporter) Describe(h *record.Header) {
	h.TimeBasis = "arrival"
	if p.delays {
		h.DelayMeaning = delayMeaning
	}
}

// Read reads one file line by line.
func (p *payloadsImporter) Read(src *Source, emit func(*record.Request) error) error {
	p.src, p.last = src, 0
	return src.EachLine(p.decode, emit)
}

func (p *payloadsImporter) decode(line []byte, r *record.Request) error {
	members, err := ParseObject(line)
	if err != nil {
		return p.src.jsonFault(err)
	}
	if !wraps(members) {
		if raw, found := Find(members, fieldBody); found && readInputBody(line).api == "" {
			return p.src.Fault(fieldBody, raw, "the request's body, a JSON object")
		}
		p.untimed(r)
		r.Exceptions = append(r.Exceptions, record.Exception{Field: bareMark})
		return p.body(line, "", r)
	}
	return p.wrapped(members, r)
}

// untimed gives a row without a time that of the row before it.
func (p *payloadsImporter) untimed(r *record.Request) {
	p.src.Warn(untimedNote)
	r.Arrival = p.last
}

// wrapped reads a row that holds a body beside fields of its own.
func (p *payloadsImporter) wrapped(members []Member, r *record.Request) error {
	var extra []Member
	var api openai.API
	for _, m := range members {
		var err error
		switch m.Key {
		case fieldTimestamp:
			err = p.time(m, &r.Arrival)
		case fieldDelay:
			err = p.time(m, &r.Delay)
		case fieldSessionID:
			err = p.text(m, &r.Session)
		case fieldCustomID:
			err = p.text(m, &r.ID)
		case fieldAPI:
			api, err = p.api(m)
		case fieldURL:
			api, err = p.endpoint(m, api)
			extra = append(extra, m)
		case fieldBody:
		default:
			if m.Key != "method" {
				p.src.Unknown(m.Key)
			}
			extra = append(extra, m)
		}
		if err != nil {
			return err
		}
	}
	if len(extra) > 0 {
		r.Extra = AppendObject(nil, extra)
	}
	if r.Delay != record.NoTime {
		p.delays = true
	}
	if r.Arrival != record.NoTime {
		p.last = r.Arrival
	} else if r.Delay == record.NoTime {
		p.untimed(r)
	}
	body, _ := Find(members, fieldBody)
	if err := p.body(body, api, r); err != nil {
		return err
	}
	r.Exceptions = append(r.Exceptions, Reconcile(members, p.row.render(r, p.unit, true), EqualValue)...)
	return nil
}

func (p *payloadsImporter) time(m Member, to *time.Duration) error {
	if isNull(m.Raw) {
		return nil
	}
	t, err := p.src.Time(m, p.unit)
	if err == nil {
		*to = t
	}
	return err
}

func (p *payloadsImporter) text(m Member, to *string) error {
	switch {
	case isNull(m.Raw):
	case m.Raw[0] == '"':
		*to, _ = DecodeString(m.Raw)
	case isNumber(m.Raw):
		*to = string(m.Raw)
	default:
		return p.src.Fault(m.Key, m.Raw, "a string")
	}
	return nil
}

func (p *payloadsImporter) api(m Member) (openai.API, error) {
	if isNull(m.Raw) {
		return "", nil
	}
	api, err := openai.ParseAPI(jsonText(m.Raw))
	if err != nil {
		f := p.src.Fault(m.Key, m.Raw, "the name of an API")
		f.Err = err
		return "", f
	}
	return api, nil
}

// endpoint is the API of a URL or a path, where no other field names one.
func (p *payloadsImporter) endpoint(m Member, named openai.API) (openai.API, error) {
	if named != "" {
		return named, nil
	}
	if api := apiOfPath(jsonText(m.Raw)); api != "" {
		return api, nil
	}
	return "", p.src.Fault(m.Key, m.Raw, "the path of an API, such as /v1/chat/completions")
}

// apiOfPath is the API of a URL or a path, "" of any other.
func apiOfPath(path string) openai.API {
	for _, api := range openai.APIs() {
		if strings.HasSuffix(path, api.Path()) {
			return api
		}
	}
	return ""
}

// body takes the body itself, byte for byte.
func (p *payloadsImporter) body(raw []byte, api openai.API, r *record.Request) error {
	facts := readInputBody(raw)
	if api == "" {
		if api = openai.API(facts.api); api == "" {
			return p.src.Fault(fieldBody, raw, "messages, prompt, input, query with documents, inputs or file")
		}
	}
	r.API, r.Body, r.Model = string(api), bytes.Clone(raw), facts.model
	r.InputTokens, r.OutputTokens = facts.input, facts.wanted
	return nil
}
