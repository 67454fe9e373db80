package replay

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"retrace/openai"
	"retrace/record"
)

// member is one member of a JSON object; value is raw JSON.
type member struct {
	key   string
	value []byte
}

// span is where a member's value stands.
type span struct {
	key        string
	start, end int
}

// spans finds the members of a JSON object, and where its last brace stands.
func spans(body []byte) (list []span, last int, err error) {
	list = make([]span, 0, 16)
	err = openai.EachMember(body, func(key string, start, end int) error {
		list = append(list, span{key, start, end})
		return nil
	})
	return list, bytes.LastIndexByte(body, '}'), err
}

// valueOf is a member's raw value, nil where there is none; of several the last.
func valueOf(body []byte, list []span, key string) (raw []byte) {
	for _, s := range list {
		if s.key == key {
			raw = body[s.start:s.end]
		}
	}
	return raw
}

// countIn is a plain integer above 0, else Unknown.
func countIn(raw []byte) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n <= 0 {
		return record.Unknown
	}
	return n
}

// lengthKeys are the members that set a length in a body: those of the form's
// that it has, else the first.
func lengthKeys(f *form, list []span) []string {
	var keys []string
	for _, key := range f.lengths {
		if has(list, key) {
			keys = append(keys, key)
		}
	}
	if keys == nil && len(f.lengths) > 0 {
		keys = f.lengths[:1]
	}
	return keys
}

func has(list []span, key string) bool {
	return slices.ContainsFunc(list, func(s span) bool { return s.key == key })
}

// editMembers appends body, which has the members of list and its last brace at
// last, to dst with its members set as given; all else stays byte for byte. A
// nil value makes an existing member null, and adds none.
func editMembers(dst, body []byte, list []span, last int, set []member) []byte {
	done := make([]bool, len(set))
	at := 0
	for _, s := range list {
		for i, m := range set {
			if m.key != s.key {
				continue
			}
			done[i] = true
			dst = append(dst, body[at:s.start]...)
			if m.value == nil {
				dst = append(dst, "null"...)
			} else {
				dst = append(dst, m.value...)
			}
			at = s.end
		}
	}
	dst = append(dst, body[at:last]...)
	comma := len(list) > 0
	for i, m := range set {
		if done[i] || m.value == nil {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		key, _ := json.Marshal(m.key) // a string always can be
		dst = append(append(append(dst, key...), ':'), m.value...)
	}
	return append(dst, body[last:]...)
}
