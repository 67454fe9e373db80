package openai

import "strconv"

// ResponsesRequest is the body of POST /v1/responses.
type ResponsesRequest struct {
	// ChatRequest has the messages that instructions and input amount to, the
	// tools, and the shared fields; MaxTokens is max_output_tokens.
	ChatRequest
	// Instructions stand before all messages, "" without.
	Instructions string
	// Previous is the previous_response_id, "" without.
	Previous string
	// NoStore is store: false.
	NoStore bool
}

// ParseResponses reads the body of a responses request into r, under the rules
// of ParseCompletion.
func ParseResponses(body []byte, r *ResponsesRequest) error {
	messages := r.Messages[:0]
	*r = ResponsesRequest{ChatRequest: ChatRequest{Params: newParams()}}
	return parseObject(body, func(s *scanner, key string) (err error) {
		switch key {
		case "input":
			r.Messages, err = parseInput(s, messages)
		case "instructions":
			r.Instructions, err = s.text(key)
		case "previous_response_id":
			r.Previous, err = s.text(key)
		case "store":
			if s.peek() == 'n' {
				return s.skip()
			}
			store, err := s.boolean(key)
			r.NoStore = !store
			return err
		case "max_output_tokens":
			r.MaxTokens, err = s.integer(key)
		case "tools":
			r.Tools, err = s.raw(key)
		case "tool_choice":
			r.ToolChoice, err = s.raw(key)
		case "text":
			err = r.textConfig(s)
		default:
			err = r.field(s, key)
		}
		return err
	})
}

// textConfig reads text: {"format": {"type": …, "schema": …}}.
func (r *ResponsesRequest) textConfig(s *scanner) error {
	if s.peek() == 'n' {
		return s.skip()
	}
	return s.object("text", func(key string) error {
		if key == "format" {
			return r.Structured.responseFormat(s)
		}
		return s.skip()
	})
}

// parseInput reads a responses request's input: a text, or a list of items.
func parseInput(s *scanner, dst []Message) ([]Message, error) {
	switch s.peek() {
	case 'n':
		return nil, s.skip()
	case '"':
		text, err := s.text("input")
		return append(dst, Message{Role: "user", Content: text}), err
	case '[':
	default:
		return nil, s.mismatch("input", "a string or an array of items")
	}
	err := s.array("input", func() error {
		m, err := parseItem(s, "input["+strconv.Itoa(len(dst))+"]")
		dst = append(dst, m)
		return err
	})
	return dst, err
}

// parseItem reads one item: a message, a function's call or its output, or
// reasoning.
func parseItem(s *scanner, field string) (m Message, err error) {
	kind, name := "", ""
	err = s.object(field, func(key string) (err error) {
		switch key {
		case "type":
			kind, err = s.text(field + ".type")
		case "role":
			m.Role, err = s.text(field + ".role")
		case "content":
			err = parseContent(s, field+".content", &m)
		case "name":
			name, err = s.text(field + ".name")
		case "arguments":
			m.ToolCalls, err = s.raw(key)
		case "output":
			if s.peek() == '{' {
				return s.skip()
			}
			err = parseContent(s, field+".output", &m)
		default:
			err = s.skip()
		}
		return err
	})
	switch kind {
	case "function_call":
		m.Role, m.ToolCalls = "assistant", append(append(AppendQuoted(nil, name), ' '), m.ToolCalls...)
	case "function_call_output":
		m.Role = "tool"
	case "reasoning":
		m.Role = "assistant"
	}
	return m, err
}
