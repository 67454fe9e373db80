package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	dec := json.NewDecoder(bytes.NewReader(body))
	open, err := dec.Token()
	if err != nil {
		return nil, 0, err
	}
	if open != json.Delim('{') {
		return nil, 0, errors.New("found no object")
	}
	var raw json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, 0, err
		}
		name, _ := key.(string)
		if err := dec.Decode(&raw); err != nil {
			return nil, 0, err
		}
		end := int(dec.InputOffset())
		list = append(list, span{name, end - len(raw), end})
	}
	if _, err := dec.Token(); err != nil {
		return nil, 0, err
	}
	last = int(dec.InputOffset()) - 1
	if rest := bytes.TrimSpace(body[last+1:]); len(rest) > 0 {
		return nil, 0, fmt.Errorf("found %d bytes behind the object", len(rest))
	}
	return list, last, nil
}

// editMembers appends body to dst with its members set as given; all else
// stays byte for byte. A nil value makes an existing member null, and adds none.
func editMembers(dst, body []byte, set []member) ([]byte, error) {
	list, last, err := spans(body)
	if err != nil {
		return dst, fmt.Errorf("edit body: %w", err)
	}
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
	return append(dst, body[last:]...), nil
}

// parseExtra reads the object of --extra. Values keep their bytes.
func parseExtra(extra []byte) ([]member, error) {
	if len(extra) == 0 {
		return nil, nil
	}
	list, _, err := spans(extra)
	if err != nil {
		return nil, fmt.Errorf("parse extra fields: %w", err)
	}
	var members []member
	for _, s := range list {
		for _, m := range members {
			if m.key == s.key {
				return nil, fmt.Errorf("parse extra fields: field %q: found twice", s.key)
			}
		}
		members = append(members, member{s.key, extra[s.start:s.end]})
	}
	return members, nil
}
