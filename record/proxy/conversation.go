package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"

	"retrace/openai"
)

// digest is what a conversation is known by.
type digest [16]byte

// digestOf is the digest of a list of texts.
func digestOf(parts ...string) digest {
	h := sha256.New()
	var head []byte
	for _, part := range parts {
		head = binary.AppendUvarint(head[:0], uint64(len(part)))
		_, _ = h.Write(head) // a hash never fails
		_, _ = io.WriteString(h, part)
	}
	return digest(h.Sum(nil)[:16])
}

// after is the digest of a conversation that one more message follows. Space
// around a text does not count: clients trim what they keep of an answer.
func after(before digest, m *openai.Message, calls []byte) digest {
	parts := []string{string(before[:]), m.Role, strings.TrimSpace(m.Content), string(calls)}
	for i := range m.Media {
		parts = append(parts, string(m.Media[i].Content()))
	}
	return digestOf(parts...)
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
