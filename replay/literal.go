package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

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

// The members that limit an answer's length: the second is the chat API's
// newer name for the first, which wins where a body has both.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// bodyLimit is the limit that a body sets to the length of its answer, Unknown
// where it sets none.
func bodyLimit(body []byte) int64 {
	list, _, err := spans(body)
	if err != nil {
		return record.Unknown // which rendering will tell
	}
	limit := record.Unknown
	for _, s := range list {
		if s.key != maxCompletionTokens && (s.key != maxTokens || has(list, maxCompletionTokens)) {
			continue
		}
		if n, err := strconv.ParseInt(string(body[s.start:s.end]), 10, 64); err == nil && n > 0 {
			limit = n
		}
	}
	return limit
}

// lengthKeys are the members that set a length in a body: those it has, else
// max_tokens.
func lengthKeys(list []span) []string {
	switch {
	case !has(list, maxCompletionTokens):
		return []string{maxTokens}
	case has(list, maxTokens):
		return []string{maxTokens, maxCompletionTokens}
	}
	return []string{maxCompletionTokens}
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
