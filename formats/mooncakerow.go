package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"retrace/record"
)

// decodeAny reads a row of any dialect: the slow path, which finds the faults.
func (m *mooncakeImporter) decodeAny(line []byte, r *record.Request) error {
	members, err := ParseObject(line)
	if err != nil {
		return m.src.jsonFault(err)
	}
	d := mooncakeRow{m: m, r: r}
	for _, f := range members {
		if err := d.field(f); err != nil {
			return err
		}
	}
	if err := d.finish(); err != nil {
		return err
	}
	rendered, err := renderMooncake(nil, r, m.config.Unit, true)
	if err != nil {
		return err
	}
	kept := Reconcile(members, rendered, EqualValue)
	r.Exceptions = append(r.Exceptions, kept...)
	return nil
}

// jsonFault turns a *ValueError into the row's error.
func (s *Source) jsonFault(err error) error {
	f := s.Fault("", nil, "one JSON object a line")
	var v *ValueError
	if errors.As(err, &v) {
		f.Field = v.Key
		f.Offset += int64(v.Offset)
		f.Expected = ""
		f.Err = errors.New(v.Msg)
		return f
	}
	f.Err = err
	return f
}

// mooncakeRow gathers the fields of one row.
type mooncakeRow struct {
	m     *mooncakeImporter
	r     *record.Request
	extra []Member
	// The raw values of the fields that name what is sent.
	length, ids, text, messages, tools, payload, merge []byte
}

// field takes one member.
func (d *mooncakeRow) field(f Member) error {
	switch f.Key {
	case "timestamp":
		return d.time(f, &d.r.Arrival)
	case "delay":
		return d.time(f, &d.r.Delay)
	case "input_length":
		d.length = f.Raw
		return d.count(f, &d.r.InputTokens)
	case "output_length":
		return d.count(f, &d.r.OutputTokens)
	case "hash_ids":
		d.ids = f.Raw
		return d.blocks(f)
	case "session_id":
		return d.session(f)
	case "priority":
		if n, err := strconv.ParseInt(string(f.Raw), 10, 64); err == nil {
			d.r.Priority = &n
		}
	case "text_input":
		d.text = f.Raw
	case "messages":
		d.messages = f.Raw
	case "tools":
		d.tools = f.Raw
	case "payload":
		d.payload = f.Raw
	case "extra":
		d.merge = f.Raw
		d.extra = append(d.extra, f)
	case "group_id":
		d.extra = append(d.extra, f)
	default:
		d.m.src.Unknown(f.Key)
		d.extra = append(d.extra, f)
	}
	return nil
}

func (d *mooncakeRow) time(f Member, to *time.Duration) error {
	if isNull(f.Raw) {
		return nil
	}
	t, err := d.m.src.Time(f, d.m.config.Unit)
	if err == nil {
		*to = t
	}
	return err
}

// Time reads a JSON number as a time of the given unit, or says what is wrong.
func (s *Source) Time(f Member, unit time.Duration) (time.Duration, error) {
	expected := "a number from 0 up (" + unitName(unit) + ")"
	if !isNumber(f.Raw) {
		return 0, s.Fault(f.Key, f.Raw, expected)
	}
	t, _, err := ParseTime(f.Raw, unit)
	if err != nil {
		e := s.Fault(f.Key, f.Raw, expected)
		e.Err = err
		return 0, e
	}
	return t, nil
}

// Count reads a JSON number as a count of tokens, or says what is wrong.
func (s *Source) Count(f Member) (int64, error) {
	const expected = "an integer from 0 up"
	if !isNumber(f.Raw) {
		return 0, s.Fault(f.Key, f.Raw, expected)
	}
	n, err := ParseCount(f.Raw)
	if err != nil {
		e := s.Fault(f.Key, f.Raw, expected)
		e.Err = err
		return 0, e
	}
	return n, nil
}

func (d *mooncakeRow) count(f Member, to *int64) error {
	if isNull(f.Raw) {
		return nil
	}
	n, err := d.m.src.Count(f)
	if err == nil {
		*to = n
	}
	return err
}

func (d *mooncakeRow) blocks(f Member) error {
	if isNull(f.Raw) {
		return nil
	}
	blocks, err := d.m.src.BlockIDs(f)
	d.r.Blocks = blocks
	return err
}

// BlockIDs reads a JSON array of block ids, or says what is wrong. An empty
// array gives nil.
func (s *Source) BlockIDs(f Member) ([]uint64, error) {
	elems, err := ParseArray(f.Raw)
	if err != nil {
		return nil, s.Fault(f.Key, f.Raw, "an array of integers")
	}
	if len(elems) == 0 {
		return nil, nil
	}
	blocks := make([]uint64, 0, len(elems))
	for _, e := range elems {
		id, err := ParseID(e)
		if err != nil || !isNumber(e) {
			return nil, s.Fault(f.Key, e, "integers from 0 to 2^64−1")
		}
		blocks = append(blocks, id)
	}
	return blocks, nil
}

func (d *mooncakeRow) session(f Member) error {
	switch {
	case isNull(f.Raw):
	case f.Raw[0] == '"':
		d.r.Session, _ = DecodeString(f.Raw)
	case isNumber(f.Raw):
		d.r.Session = string(f.Raw)
	default:
		return d.m.src.Fault(f.Key, f.Raw, "a string")
	}
	return nil
}

func isNull(raw []byte) bool { return string(raw) == "null" }

func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

func unitName(u time.Duration) string {
	switch u {
	case time.Second:
		return "seconds"
	case time.Millisecond:
		return "milliseconds"
	case time.Microsecond:
		return "microseconds"
	}
	return "nanoseconds"
}

// finish checks the row as a whole and makes its body.
func (d *mooncakeRow) finish() error {
	if err := d.oneKind(); err != nil {
		return err
	}
	r := d.r
	r.Observed.Failed = r.InputTokens == 0 || r.OutputTokens == 0
	if r.Delay != record.NoTime {
		d.m.delays = true
	}
	if len(r.Blocks) > 0 && !fitsBlocks(r.InputTokens, len(r.Blocks), d.m.config.BlockSize) {
		return d.m.blockFault(r.InputTokens, len(r.Blocks))
	}
	if err := d.body(); err != nil {
		return err
	}
	if !hasValue(d.messages) && d.tools != nil {
		d.extra = append(d.extra, Member{"tools", d.tools})
	}
	if len(d.extra) > 0 {
		r.Extra = AppendObject(nil, d.extra)
	}
	return nil
}

// oneKind checks that the row names exactly one input.
func (d *mooncakeRow) oneKind() error {
	var kinds []string
	for _, k := range []Member{
		{"input_length", d.length}, {"text_input", d.text}, {"messages", d.messages}, {"payload", d.payload},
	} {
		if hasValue(k.Raw) {
			kinds = append(kinds, k.Key)
		}
	}
	const expected = "exactly one of input_length, text_input, messages, payload"
	switch {
	case len(kinds) == 0:
		return d.m.src.Fault("input_length", []byte("none"), expected)
	case len(kinds) > 1:
		return d.m.src.Fault(kinds[1], []byte("both "+kinds[0]+" and "+kinds[1]), expected)
	case kinds[0] != "input_length" && len(d.r.Blocks) > 0:
		return d.m.src.Fault("hash_ids", []byte("hash_ids with "+kinds[0]), "hash_ids with input_length only")
	}
	return nil
}

// renderMooncake is the row that stands for r, whose Arrival is on the source's
// clock. own says that Extra holds leftovers of a Mooncake row.
func renderMooncake(row []Member, r *record.Request, unit time.Duration, own bool) ([]Member, error) {
	add := func(key string, raw []byte) { row = append(row, Member{key, raw}) }
	if r.Arrival != record.NoTime {
		add("timestamp", AppendTime(nil, r.Arrival, unit))
	}
	var err error
	if r.Body != nil {
		row, err = renderBody(row, r, own)
	} else if r.InputTokens != record.Unknown {
		add("input_length", strconv.AppendInt(nil, r.InputTokens, 10))
	}
	if r.OutputTokens != record.Unknown {
		add("output_length", strconv.AppendInt(nil, r.OutputTokens, 10))
	}
	if len(r.Blocks) > 0 && r.Body == nil {
		add("hash_ids", appendIDs(nil, r.Blocks))
	}
	if r.Session != "" {
		add("session_id", AppendString(nil, r.Session))
	}
	if r.Delay != record.NoTime {
		add("delay", AppendTime(nil, r.Delay, unit))
	}
	if r.Priority != nil {
		add("priority", strconv.AppendInt(nil, *r.Priority, 10))
	}
	if own && r.Extra != nil && err == nil {
		var extra []Member
		extra, err = ParseObject(r.Extra)
		row = append(row, extra...)
	}
	return row, err
}

func appendIDs(dst []byte, ids []uint64) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, id, 10)
	}
	return append(dst, ']')
}

// body makes the request body of a row that carries its input itself.
func (d *mooncakeRow) body() error {
	r := d.r
	var merge []Member
	if d.merge != nil && !isNull(d.merge) {
		var err error
		if merge, err = ParseObject(d.merge); err != nil {
			return d.m.src.Fault("extra", d.merge, "an object")
		}
	}
	switch {
	case hasValue(d.payload):
		members, err := ParseObject(d.payload)
		if err != nil {
			return d.m.src.Fault("payload", d.payload, "an object: a whole request body")
		}
		r.API = bodyAPI(members)
		r.Body = bytes.Clone(d.payload)
		r.Exceptions = append(r.Exceptions, record.Exception{Field: bodyMark, Raw: []byte("payload")})
	case hasValue(d.text):
		if d.text[0] != '"' {
			return d.m.src.Fault("text_input", d.text, "a string")
		}
		r.API = "completions"
		r.Body = mergeBody([]Member{{"prompt", d.text}}, r.OutputTokens, merge)
	case hasValue(d.messages):
		if d.messages[0] != '[' {
			return d.m.src.Fault("messages", d.messages, "an array of messages")
		}
		r.API = "chat"
		fields := []Member{{"messages", d.messages}}
		if d.tools != nil && !isNull(d.tools) {
			fields = append(fields, Member{"tools", d.tools})
		}
		r.Body = mergeBody(fields, r.OutputTokens, merge)
	}
	return nil
}

// bodyAPI tells the API of a whole request body by its fields.
func bodyAPI(members []Member) string {
	switch {
	case indexOf(members, "messages") >= 0:
		return "chat"
	case indexOf(members, "input") >= 0:
		return "responses"
	}
	return "completions"
}

// mergeBody is a request body: the fields, max_tokens where the wanted length
// is known, and the row's extra object, which wins.
func mergeBody(fields []Member, output int64, merge []Member) []byte {
	if output > 0 {
		fields = append(fields, Member{"max_tokens", strconv.AppendInt(nil, output, 10)})
	}
	for _, m := range merge {
		if i := indexOf(fields, m.Key); i >= 0 {
			fields[i].Raw = m.Raw
			continue
		}
		fields = append(fields, m)
	}
	return AppendObject(nil, fields)
}

// renderBody is the way back from a body to the row's input field. A body that
// did not come from a Mooncake row goes out as a payload, whole.
func renderBody(row []Member, r *record.Request, own bool) ([]Member, error) {
	if !own || slices.ContainsFunc(r.Exceptions, func(e record.Exception) bool { return e.Field == bodyMark }) {
		return renderPayload(row, r)
	}
	members, err := ParseObject(r.Body)
	if err != nil {
		return row, fmt.Errorf("read body: %w", err)
	}
	if r.API == "completions" {
		if raw, ok := Find(members, "prompt"); ok {
			row = append(row, Member{"text_input", raw})
		}
		return row, nil
	}
	for _, key := range []string{"messages", "tools"} {
		if raw, ok := Find(members, key); ok {
			row = append(row, Member{key, raw})
		}
	}
	return row, nil
}

// renderPayload puts a whole body into one line.
func renderPayload(row []Member, r *record.Request) ([]Member, error) {
	if !ValidValue(r.Body) {
		return row, errors.New("read body: not JSON")
	}
	body := r.Body
	if bytes.ContainsAny(body, "\r\n") {
		var b bytes.Buffer
		if err := json.Compact(&b, body); err != nil {
			return row, fmt.Errorf("read body: %w", err)
		}
		body = b.Bytes()
	}
	return append(row, Member{"payload", body}), nil
}
