package formats

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"retrace/record"
)

// str leaves out "".
func (o *objectWriter) str(k, s string) {
	if s != "" {
		o.key(k)
		o.dst = AppendString(o.dst, strings.ToValidUTF8(s, "\uFFFD"))
	}
}

// text writes bytes as a string, in base64 under another name where they are no UTF-8.
func (o *objectWriter) text(k string, b []byte) {
	if utf8.Valid(b) {
		o.key(k)
		o.dst = AppendString(o.dst, string(b))
		return
	}
	o.key(k + "_base64")
	o.dst = AppendString(o.dst, base64.StdEncoding.EncodeToString(b))
}

// raw writes a JSON text as it stands where it can stand in a line.
func (o *objectWriter) raw(k string, b []byte) {
	switch {
	case b == nil:
	case bytes.ContainsAny(b, "\r\n") || len(bytes.TrimSpace(b)) != len(b) || !ValidValue(b):
		if utf8.Valid(b) {
			k += "_text"
		}
		o.text(k, b)
	default:
		o.key(k)
		o.dst = append(o.dst, b...)
	}
}

// decode reads a request's line.
func (j *jsonlImporter) decode(line []byte, r *record.Request) error {
	members, err := ParseObject(line)
	if err != nil {
		return j.src.jsonFault(err)
	}
	for _, m := range members {
		if err := j.field(m, r); err != nil {
			return err
		}
	}
	if r.Arrival == record.NoTime {
		return nil
	}
	at := r.Arrival + j.origin
	if (at > r.Arrival) != (j.origin > 0) && j.origin != 0 || at == record.NoTime {
		return j.src.Fault("arrival_ns", strconv.AppendInt(nil, int64(r.Arrival), 10), "an arrival within 292 years of the clock's zero")
	}
	r.Arrival = at
	return nil
}

// field takes one member of a request.
func (j *jsonlImporter) field(m Member, r *record.Request) error {
	switch m.Key {
	case "row":
		return j.num(m, &r.Row)
	case "turn":
		return j.int(m, &r.Turn)
	case "arrival_ns":
		return j.time(m, &r.Arrival)
	case "delay_ns":
		return j.time(m, &r.Delay)
	case "input_tokens":
		return j.num(m, &r.InputTokens)
	case "output_tokens":
		return j.num(m, &r.OutputTokens)
	case "blocks":
		blocks, err := j.src.BlockIDs(m)
		r.Blocks = blocks
		return err
	case "increment":
		return j.flag(m, &r.Increment)
	case "priority":
		r.Priority = new(int64)
		return j.num(m, r.Priority)
	case "media":
		return j.media(m, r)
	case "observed":
		return j.observed(m, r)
	case "exceptions":
		return j.exceptions(m, r)
	}
	if to := textField(m.Key, r); to != nil {
		return j.str(m, to)
	}
	return j.rawField(m, r)
}

func textField(key string, r *record.Request) *string {
	switch key {
	case "id":
		return &r.ID
	case "session":
		return &r.Session
	case "parent":
		return &r.Parent
	case "api":
		return &r.API
	case "model":
		return &r.Model
	case "kind":
		return &r.Kind
	}
	return nil
}

// rawField takes body and extra, each in one of its three forms.
func (j *jsonlImporter) rawField(m Member, r *record.Request) error {
	name, form, _ := strings.Cut(m.Key, "_")
	var to *[]byte
	switch name {
	case "body":
		to = &r.Body
	case "extra":
		to = &r.Extra
	}
	if to == nil || form != "" && form != "text" && form != "base64" {
		return j.src.Fault(m.Key, m.Raw, "a field of a canonical request")
	}
	if form == "" {
		*to = bytes.Clone(m.Raw)
		return nil
	}
	return j.bytes(m, form, to)
}

// bytes reads a string as bytes.
func (j *jsonlImporter) bytes(m Member, form string, to *[]byte) error {
	var s string
	if err := j.str(m, &s); err != nil {
		return err
	}
	*to = []byte(s)
	if form != "base64" {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return j.src.Fault(m.Key, m.Raw, "base64")
	}
	*to = b
	return nil
}

func (j *jsonlImporter) str(m Member, to *string) error {
	if m.Raw[0] != '"' {
		return j.src.Fault(m.Key, m.Raw, "a string")
	}
	var ok bool
	if *to, ok = DecodeString(m.Raw); !ok {
		return j.src.Fault(m.Key, m.Raw, "a string without lone surrogates")
	}
	return nil
}

func (j *jsonlImporter) num(m Member, to *int64) error {
	n, err := strconv.ParseInt(string(m.Raw), 10, 64)
	if err != nil {
		return j.src.Fault(m.Key, m.Raw, "an integer")
	}
	*to = n
	return nil
}

func (j *jsonlImporter) int(m Member, to *int) error {
	var n int64
	err := j.num(m, &n)
	*to = int(n)
	return err
}

func (j *jsonlImporter) time(m Member, to *time.Duration) error {
	var n int64
	err := j.num(m, &n)
	*to = time.Duration(n)
	return err
}

func (j *jsonlImporter) flag(m Member, to *bool) error {
	switch string(m.Raw) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return j.src.Fault(m.Key, m.Raw, "true or false")
	}
	return nil
}

// object reads a nested object member by member.
func (j *jsonlImporter) object(key string, raw []byte, field func(Member) error) error {
	members, err := ParseObject(raw)
	if err != nil {
		return j.src.Fault(key, raw, "an object")
	}
	for _, m := range members {
		if err := field(m); err != nil {
			return err
		}
	}
	return nil
}

// list reads an array of objects.
func (j *jsonlImporter) list(m Member, field func(Member) error, done func()) error {
	elems, err := ParseArray(m.Raw)
	if err != nil {
		return j.src.Fault(m.Key, m.Raw, "an array")
	}
	for _, e := range elems {
		if err := j.object(m.Key, e, field); err != nil {
			return err
		}
		done()
	}
	return nil
}

func (j *jsonlImporter) media(m Member, r *record.Request) error {
	blank := record.Media{Bytes: record.Unknown}
	one := blank
	return j.list(m, func(f Member) error {
		switch f.Key {
		case "kind":
			return j.str(f, &one.Kind)
		case "ref":
			return j.str(f, &one.Ref)
		case "bytes":
			return j.num(f, &one.Bytes)
		}
		return j.src.Fault("media."+f.Key, f.Raw, "kind, ref or bytes")
	}, func() {
		r.Media = append(r.Media, one)
		one = blank
	})
}

func (j *jsonlImporter) exceptions(m Member, r *record.Request) error {
	var one record.Exception
	return j.list(m, func(f Member) error {
		switch f.Key {
		case "field":
			return j.key(f, &one.Field)
		case "raw":
			return j.bytes(f, "", &one.Raw)
		case "raw_base64":
			return j.bytes(f, "base64", &one.Raw)
		}
		return j.src.Fault("exceptions."+f.Key, f.Raw, "field or raw")
	}, func() {
		r.Exceptions = append(r.Exceptions, one)
		one = record.Exception{}
	})
}

// key reads a string that names a field of the source.
func (j *jsonlImporter) key(m Member, to *string) error {
	if m.Raw[0] != '"' {
		return j.src.Fault(m.Key, m.Raw, "a string")
	}
	*to = decodeKey(m.Raw)
	return nil
}

func (j *jsonlImporter) observed(m Member, r *record.Request) error {
	b := &r.Observed
	return j.object(m.Key, m.Raw, func(f Member) error {
		switch f.Key {
		case "status":
			return j.int(f, &b.Status)
		case "latency_ns":
			return j.time(f, &b.Latency)
		case "input_tokens":
			return j.num(f, &b.InputTokens)
		case "output_tokens":
			return j.num(f, &b.OutputTokens)
		case "failed":
			return j.flag(f, &b.Failed)
		}
		return j.src.Fault("observed."+f.Key, f.Raw, "a field of observed")
	})
}
