package proxy

import (
	"encoding/json"
	"strings"

	"retrace/openai"
)

// after is the digest of a conversation that one more message follows. Space
// around a text does not count: clients trim what they keep of an answer.
func (t *tracker) after(before digest, m *openai.Message, calls []byte) digest {
	text := strings.TrimSpace(m.Content)
	parts := []string{string(before[:]), m.Role, text, string(calls)}
	for i := range m.Media {
		parts = append(parts, string(m.Media[i].Content()))
	}
	c := t.k.newChain(1, parts...)
	return digest(c.last[:16])
}

// calls are the names and arguments of tool calls, without their ids.
func calls(raw []byte) (all []byte) {
	var list []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &list) != nil {
		return raw
	}
	for _, call := range list {
		all = appendCall(all, call.Function.Name, call.Function.Arguments)
	}
	return all
}

func appendCall(dst []byte, name, arguments string) []byte {
	dst = openai.AppendQuoted(dst, name)
	return openai.AppendQuoted(dst, arguments)
}
