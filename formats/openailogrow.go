package formats

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrace/openai"
	"retrace/record"
	"retrace/record/capture"
)

// logCell is one field of a row, of JSON or CSV.
type logCell struct {
	name string
	// known says that the format defines the name.
	known bool
	// text is a string's content, or any other value as it stands; empty for
	// null and for a field without a value. It is valid during the row only.
	text []byte
	// raw is the field as JSON, nil in CSV.
	raw  []byte
	used bool
}

// logRow takes one row apart.
type logRow struct {
	m     *logImporter
	r     *record.Request
	cells []logCell
}

var errNoRequest = errors.New("the row has no request")

// decode fills the request.
func (d *logRow) decode() error {
	for _, step := range []func() error{d.body, d.time, d.outcome} {
		if err := step(); err != nil {
			return err
		}
	}
	for i := range d.cells {
		if !d.cells[i].known && d.m.mode == capture.Full { // else nothing of it is kept
			d.m.src.Unknown(d.cells[i].name)
		}
	}
	return nil
}

// take gives the first of the named fields that has a value.
func (d *logRow) take(names []string) (logCell, bool) {
	for _, name := range names {
		for i := range d.cells {
			c := &d.cells[i]
			if c.name == name && len(bytes.TrimSpace(c.text)) > 0 {
				c.used = true
				return *c, true
			}
		}
	}
	return logCell{}, false
}

func (d *logRow) text(names []string) string {
	c, _ := d.take(names)
	return string(bytes.TrimSpace(c.text))
}

// body takes the request's body, byte for byte, and what it tells.
func (d *logRow) body() error {
	src := d.m.src
	c, ok := d.take(logBodies)
	if !ok {
		f := src.faultOf(logBodies[0], nil, errNoRequest)
		f.Skip = true
		return f
	}
	body, err := d.object(c)
	if err != nil {
		return err
	}
	facts := readInputBody(body)
	api, err := d.api()
	if err != nil {
		return err
	}
	if api == "" {
		api = openai.API(facts.api)
	}
	if api == "" {
		return src.Fault(c.name, body, "messages, prompt, input, query with documents, inputs or file")
	}
	r := d.r
	r.API, r.Body, r.Model = string(api), bytes.Clone(body), facts.model
	if r.Model == "" {
		r.Model = d.text(logModels)
	}
	r.InputTokens, r.OutputTokens = facts.input, facts.wanted
	r.ID = d.text(logIDs)
	if r.Session = d.text(logSessions); r.Session == "" {
		r.Session = bodySession(body)
	}
	return nil
}

// object is the JSON object in a cell.
func (d *logRow) object(c logCell) ([]byte, error) {
	body := bytes.TrimSpace(c.text)
	_, err := ParseObject(body)
	if err == nil {
		return body, nil
	}
	f := d.m.src.Fault(c.name, body, "a JSON object, the body of a request")
	var v *ValueError
	if errors.As(err, &v) {
		f.Err = fmt.Errorf("at its byte %d: expected %s", v.Offset, v.Expected)
	}
	return nil, f
}

// bodySession is the session that a body itself names.
func bodySession(body []byte) string {
	obj := jsonObject(body)
	for _, name := range []string{fieldSessionID, "prompt_cache_key"} {
		if s := jsonText(obj[name]); s != "" {
			return s
		}
	}
	return ""
}

// api is the API that the row names, "" where it names none.
func (d *logRow) api() (openai.API, error) {
	if c, ok := d.take([]string{fieldAPI}); ok {
		api, err := openai.ParseAPI(string(c.text))
		if err != nil {
			f := d.m.src.Fault(c.name, c.text, "the name of an API")
			f.Err = err
			return "", f
		}
		return api, nil
	}
	path, _, _ := strings.Cut(d.text(logPaths), "?")
	return apiOfPath(path), nil
}

// time takes the arrival: of a log without any times all arrive at once.
func (d *logRow) time() error {
	m := d.m
	c, ok := d.take(logTimes)
	if !m.started {
		m.started, m.timed = true, ok
	}
	switch {
	case ok && !m.timed:
		return d.badTime(c, "no time, as the first row has none: a log has a time in all rows or in none")
	case !ok && m.timed:
		return m.src.faultOf(logTimes[0], nil, ErrNoTime)
	case !ok:
		m.src.Warn(untimedNote)
		d.r.Arrival = 0
		return nil
	}
	return d.at(c)
}

// at reads the time of a row.
func (d *logRow) at(c logCell) error {
	m, text := d.m, bytes.TrimSpace(c.text)
	when, date := parseWallTime(string(text))
	if !date {
		var err error
		if !isNumber(text) {
			err = strconv.ErrSyntax
		} else {
			when, _, err = ParseTime(text, m.config.Unit)
		}
		if err != nil {
			return d.badTime(c, "a date such as 2025-02-03T04:05:06Z, or a number from 0 up ("+unitName(m.config.Unit)+"; --time-unit says otherwise)")
		}
	}
	wall := date || when >= datesFrom
	if !m.dated {
		m.dated, m.wall = true, wall
		m.src.Warn(logNote)
	}
	if wall != m.wall {
		expected := "a time from the log's start, as the first row has"
		if m.wall {
			expected = "a time since 1970, as the first row has"
		}
		return d.badTime(c, expected)
	}
	d.r.Arrival = when
	return nil
}

// badTime quotes the time whatever the mode is.
func (d *logRow) badTime(c logCell, expected string) error {
	f := d.m.src.Fault(c.name, nil, expected)
	f.Found = string(c.text)
	return f
}

// outcome takes what the row tells of the answer.
func (d *logRow) outcome() error {
	r := d.r
	facts := outputFacts{input: record.Unknown, output: record.Unknown}
	if c, ok := d.take(logResponses); ok {
		facts = readOutputBody(d.answer(c.text))
	}
	if c, ok := d.take(logStatuses); ok {
		n, err := strconv.Atoi(string(bytes.TrimSpace(c.text)))
		if err != nil || n < 100 || n > 999 {
			return d.m.src.Fault(c.name, c.text, "an HTTP status")
		}
		r.Observed.Status = n
	}
	if c, ok := d.take(logLatencies); ok {
		if !isNumber(c.text) {
			return d.m.src.Fault(c.name, c.text, "a number from 0 up (milliseconds)")
		}
		took, _, err := ParseTime(c.text, time.Millisecond)
		if err != nil {
			return d.m.src.Fault(c.name, c.text, "a number from 0 up (milliseconds)")
		}
		r.Observed.Latency = took
	}
	if facts.input != record.Unknown {
		r.InputTokens = facts.input
	}
	if facts.output != record.Unknown {
		r.OutputTokens = facts.output
	}
	r.Observed.InputTokens, r.Observed.OutputTokens = facts.input, facts.output
	r.Observed.Failed = facts.failed || r.Observed.Status >= 400
	if openai.API(r.API) == openai.Responses {
		d.m.follow(r, jsonText(jsonObject(r.Body)["previous_response_id"]), facts.id)
	}
	return nil
}

// answer is the body of the answer; in batches it stands in the body of a
// response, beside its status.
func (d *logRow) answer(text []byte) []byte {
	obj := jsonObject(text)
	body, status := obj[fieldBody], orCount(obj["status_code"], 0)
	if !isObject(body) || status < 100 || status > 999 {
		return text
	}
	d.r.Observed.Status = int(status)
	return body
}

// rest is the row's fields that the request does not hold, as JSON; nil for none.
func (d *logRow) rest() []byte {
	held := slices.Concat(logBodies, logTimes, logIDs, logSessions)
	var list []Member
	for _, c := range d.cells {
		if c.used && slices.Contains(held, c.name) || c.raw == nil && len(c.text) == 0 {
			continue
		}
		raw := c.raw
		if raw == nil {
			raw = AppendString(nil, string(c.text))
		}
		list = append(list, Member{c.name, raw})
	}
	if list == nil {
		return nil
	}
	return AppendObject(nil, list)
}
