package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"retrace/openai"
	"retrace/record"
)

// talk is where a session's conversation stands after one of its turns: what the
// turn's recorded messages were, and what the server has said so far. It does
// not change once it is made.
type talk struct {
	count int    // messages of the recorded body
	last  uint64 // hash of the last of them
	said  []said
}

// said is one answer of the server, and the message whose place it takes.
type said struct {
	index int
	text  []byte
}

// message is one of a chat body.
type chatMessage struct {
	start, end int  // of the object
	from, to   int  // of its content
	spoken     bool // by the assistant, in plain text
}

var errNoMessages = errors.New("found no messages")

// messages finds those of a chat body.
func messages(body []byte) ([]chatMessage, error) {
	list, _, err := spans(body)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(s span) bool { return s.key == "messages" })
	if i < 0 {
		return nil, errNoMessages
	}
	base := list[i].start
	dec := json.NewDecoder(bytes.NewReader(body[base:list[i].end]))
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return nil, errNoMessages
	}
	var found []chatMessage
	var raw json.RawMessage
	for dec.More() {
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		end := base + int(dec.InputOffset())
		m := chatMessage{start: end - len(raw), end: end}
		if err := m.look(raw); err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

// look finds the content in the message, whose bytes are raw.
func (m *chatMessage) look(raw []byte) error {
	fields, _, err := spans(raw)
	if err != nil {
		return err
	}
	assistant, text, tools := false, false, false
	for _, f := range fields {
		switch value := raw[f.start:f.end]; f.key {
		case "role":
			assistant = string(value) == `"assistant"`
		case "content":
			m.from, m.to = m.start+f.start, m.start+f.end
			text = value[0] == '"'
		case "tool_calls", "function_call":
			tools = string(value) != "null" && string(value) != "[]"
		}
	}
	m.spoken = assistant && text && !tools
	return nil
}

// converse prepares a turn whose parent's talk is before, nil for none: the
// answers so far take their places in its body. fits is false where the body does
// not go on from the parent's; it stays as recorded then.
func (j *job) converse(before *talk) (fits bool) {
	list, err := messages(j.source)
	if err != nil || len(list) == 0 {
		return before == nil || len(before.said) == 0 // rendering tells what is wrong
	}
	tail := list[len(list)-1]
	j.talk = &talk{count: len(list), last: xxhash.Sum64(j.source[tail.start:tail.end])}
	if before == nil || len(before.said) == 0 {
		return true
	}
	if !before.leadsTo(j.source, list) {
		return false
	}
	body := make([]byte, 0, len(j.source))
	at := 0
	for _, s := range before.said {
		m := list[s.index]
		body = append(append(body, j.source[at:m.from]...), openai.AppendQuoted(nil, string(s.text))...)
		at = m.to
	}
	j.source = append(body, j.source[at:]...)
	j.talk.said = before.said
	return true
}

// leadsTo says whether the messages of body go on from t's: the last of them
// stands at its place, and the answers' places are the assistant's.
func (t *talk) leadsTo(body []byte, list []chatMessage) bool {
	if len(list) < t.count || xxhash.Sum64(body[list[t.count-1].start:list[t.count-1].end]) != t.last {
		return false
	}
	for _, s := range t.said {
		if s.index >= len(list) || !list[s.index].spoken {
			return false
		}
	}
	return true
}

// after is the talk after j's answer.
func (j *job) after() *talk {
	if j.talk == nil || j.res.State != record.Completed || len(j.res.Output) == 0 {
		return j.talk
	}
	t := *j.talk
	t.said = append(slices.Clip(t.said), said{t.count, j.res.Output})
	return &t
}
