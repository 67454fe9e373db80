package formats

import (
	"bytes"
	"errors"
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
	rendered, err := m.render.render(r)
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
		f.Expected = v.Expected
		if !s.discreet {
			f.Found = v.Found
		}
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
	var blocks []uint64
	err := eachElement(f.Raw, func(raw []byte) error {
		id, err := ParseID(raw)
		if err != nil || !isNumber(raw) {
			return s.Fault(f.Key, raw, "integers from 0 to 2^64−1")
		}
		if blocks == nil {
			blocks = make([]uint64, 0, 1+bytes.Count(f.Raw, []byte(",")))
		}
		blocks = append(blocks, id)
		return nil
	})
	var bad *SyntaxError
	if err != nil && !errors.As(err, &bad) {
		return nil, s.Fault(f.Key, f.Raw, "an array of integers")
	}
	return blocks, err
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

// mooncakeRenderer makes rows of requests in memory that it uses again.
type mooncakeRenderer struct {
	row []Member
	buf []byte
	// unit is that of times; own says that Extra holds leftovers of a Mooncake row.
	unit time.Duration
	own  bool
}

// add appends a member whose value was appended to buf from start on.
func (m *mooncakeRenderer) add(key string, start int) {
	m.row = append(m.row, Member{key, m.buf[start:len(m.buf):len(m.buf)]})
}

func (m *mooncakeRenderer) num(key string, n int64) {
	start := len(m.buf)
	m.buf = strconv.AppendInt(m.buf, n, 10)
	m.add(key, start)
}

func (m *mooncakeRenderer) time(key string, t time.Duration) {
	if t == record.NoTime {
		return
	}
	start := len(m.buf)
	m.buf = AppendTime(m.buf, t, m.unit)
	m.add(key, start)
}

// render is the row that stands for r, whose Arrival is on the source's clock.
// It is valid until the next call.
func (m *mooncakeRenderer) render(r *record.Request) ([]Member, error) {
	m.row, m.buf = m.row[:0], m.buf[:0]
	m.time("timestamp", r.Arrival)
	var err error
	body := r.Body != nil && (m.own || isPayload(r.Body))
	if body {
		m.row, err = renderBody(m.row, r, m.own)
	} else if r.InputTokens != record.Unknown {
		m.num("input_length", r.InputTokens)
	}
	if r.OutputTokens != record.Unknown {
		m.num("output_length", r.OutputTokens)
	}
	if len(r.Blocks) > 0 && !body {
		start := len(m.buf)
		m.buf = appendIDs(m.buf, r.Blocks)
		m.add("hash_ids", start)
	}
	if r.Session != "" {
		start := len(m.buf)
		m.buf = AppendString(m.buf, r.Session)
		m.add("session_id", start)
	}
	m.time("delay", r.Delay)
	if r.Priority != nil {
		m.num("priority", *r.Priority)
	}
	if m.own && r.Extra != nil && err == nil {
		var extra []Member
		extra, err = ParseObject(r.Extra)
		m.row = append(m.row, extra...)
	}
	return m.row, err
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
