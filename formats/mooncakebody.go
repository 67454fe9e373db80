package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"retrace/record"
)

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
		if _, err := ParseObject(d.payload); err != nil {
			return d.m.src.Fault("payload", d.payload, "an object: a whole request body")
		}
		r.API = bodyAPI(d.payload)
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

// bodyAPI tells the API of a whole request body by its fields; one that has
// none of those is taken for a completion's.
func bodyAPI(body []byte) string {
	if api := bodyShape(body, jsonObject(body)); api != "" {
		return api
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
