package openai

import "encoding/json"

// deltaChannel says what the delta of an event of the responses API, or of a
// transcription, is; ok is false for events without one.
func deltaChannel(kind string) (channel Channel, shape Shape, ok bool) {
	switch kind {
	case "response.output_text.delta":
		return Content, ShapeResponse, true
	case "response.refusal.delta":
		return Content, ShapeResponse, true
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta", "response.reasoning.delta":
		return Reasoning, ShapeResponse, true
	case "response.function_call_arguments.delta", "response.mcp_call_arguments.delta",
		"response.custom_tool_call_input.delta", "response.code_interpreter_call_code.delta":
		return ToolCall, ShapeResponse, true
	case "transcript.text.delta":
		return Content, ShapeTranscript, true
	}
	return 0, ShapeNone, false
}

// event reads a typed event. Its output is one choice's, whichever item of the
// response it belongs to, so that the gaps run through all of them.
func (c *Piece) event(kind string, top object) {
	if channel, shape, ok := deltaChannel(kind); ok {
		c.Shape = shape
		c.delta(channel, nonEmptyString(top["delta"]), indexOf(top["output_index"]))
		return
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.canceled":
		if r, ok := asObject(top["response"]); ok {
			c.response(r, false)
		}
		c.Shape, c.Over = ShapeResponse, true
		if c.failedKind(kind) && !c.HasError {
			c.Error, c.HasError = kind, true
		}
	case "response.output_item.added":
		c.Shape = ShapeResponse
		item, _ := asObject(top["item"])
		if name := Text(item["name"]); name != "" {
			c.add(Part{Tools: []ToolDelta{{Index: indexOf(top["output_index"]), Name: name}}})
		}
	case "transcript.text.done":
		c.Shape, c.Over = ShapeTranscript, true
	default:
		c.Shape = ShapeResponse
		if kind[0] == 't' {
			c.Shape = ShapeTranscript
		}
	}
}

func (c *Piece) failedKind(kind string) bool {
	return kind == "response.failed" || kind == "response.cancelled" || kind == "response.canceled"
}

// delta takes a fragment of one channel.
func (c *Piece) delta(channel Channel, text []byte, item int) {
	if text == nil {
		return
	}
	switch channel {
	case Reasoning:
		c.add(Part{Reasoning: text})
	case ToolCall:
		c.add(Part{Tools: []ToolDelta{{Index: item, Arguments: Text(text)}}})
	default:
		c.add(Part{Content: text})
	}
}

// response reads a response object. Of one that came whole, the output counts
// too; a stream's last event repeats what came before.
func (c *Piece) response(r object, whole bool) {
	c.Shape = ShapeResponse
	if u, ok := asObject(r["usage"]); ok {
		c.Usage, c.HasUsage = usageOf(u), true
	}
	c.Times = c.Times.merge(timesOf(r))
	if raw := r["error"]; !isNull(raw) {
		c.Error, c.HasError = errorOf(r)
	}
	status := Text(r["status"])
	finish := nonEmptyString(r["status"])
	switch status {
	case "completed", "":
		finish = []byte(`"stop"`)
	case "incomplete":
		details, _ := asObject(r["incomplete_details"])
		if reason := nonEmptyString(details["reason"]); reason != nil {
			finish = reason
		}
	case "failed", "cancelled":
		if whole && !c.HasError {
			c.Error, c.HasError = "response "+status, true
		}
	default: // queued, in_progress: not an answer yet
		return
	}
	if whole {
		c.Over = true
		c.items(r["output"])
	}
	c.add(Part{FinishReason: finish})
}

// items reads the output of a whole response.
func (c *Piece) items(raw []byte) {
	var items []json.RawMessage
	_ = json.Unmarshal(raw, &items) // another type holds no item
	for i, raw := range items {
		item, _ := asObject(raw)
		switch Text(item["type"]) {
		case "message":
			for _, text := range textsOf(item["content"]) {
				c.delta(Content, text, i)
			}
		case "reasoning":
			for _, field := range [...]string{"content", "summary"} {
				for _, text := range textsOf(item[field]) {
					c.delta(Reasoning, text, i)
				}
			}
		default:
			if name := Text(item["name"]); name != "" {
				c.add(Part{Tools: appendTool(nil, i, item)})
			}
		}
	}
}

// textsOf are the texts of an item's content parts.
func textsOf(raw []byte) [][]byte {
	var parts []json.RawMessage
	_ = json.Unmarshal(raw, &parts) // another type holds no part
	var texts [][]byte
	for _, raw := range parts {
		part, _ := asObject(raw)
		for _, field := range [...]string{"text", "refusal"} {
			if text := nonEmptyString(part[field]); text != nil {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
