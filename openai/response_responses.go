package openai

import "strconv"

// ResponsesWriter renders the answer of one responses request: a stream of
// events, or the whole response. A stream is Open, then Chunk for each piece,
// then Close; it must be used by one goroutine.
type ResponsesWriter struct {
	id, model string
	created   int64
	max       int64 // max_output_tokens, Unset without
	previous  string

	number int // of the next event
	items  [][]byte
	kind   itemKind // of the item that is open
	item   string   // its id
	call   Call     // of an open function call
	text   []byte   // its text so far
}

// itemKind is what an output item is.
type itemKind uint8

const (
	noItem itemKind = iota
	reasoningItem
	messageItem
	callItem
)

// NewResponsesWriter makes the writer of one response. id is the whole id
// (resp_…), created its time in seconds since 1970; max is max_output_tokens,
// Unset without, and previous the response before it, "" for none.
func NewResponsesWriter(id, model string, created, max int64, previous string) *ResponsesWriter {
	return &ResponsesWriter{id: id, model: model, created: created, max: max, previous: previous}
}

// Open appends the events that begin a stream.
func (w *ResponsesWriter) Open(dst []byte) []byte {
	for _, name := range []string{"response.created", "response.in_progress"} {
		dst = append(w.event(dst, name), `,"response":`...)
		dst = endEvent(w.response(dst, "in_progress", nil))
	}
	return dst
}

// event appends an event's beginning, up to its sequence_number.
func (w *ResponsesWriter) event(dst []byte, name string) []byte {
	dst = append(append(dst, "event: "...), name...)
	dst = AppendQuoted(append(dst, "\ndata: {\"type\":"...), name)
	dst = strconv.AppendInt(append(dst, `,"sequence_number":`...), int64(w.number), 10)
	w.number++
	return dst
}

// place appends the fields that say of which item an event is.
func (w *ResponsesWriter) place(dst []byte, content bool) []byte {
	dst = strconv.AppendInt(append(dst, `,"output_index":`...), int64(len(w.items)), 10)
	dst = AppendQuoted(append(dst, `,"item_id":`...), w.item)
	if content {
		dst = append(dst, `,"content_index":0`...)
	}
	return dst
}

// Chunk appends the events of one piece, and where it is the first of its kind
// those that end the item before and begin a new one.
func (w *ResponsesWriter) Chunk(dst []byte, c *Chunk) []byte {
	switch {
	case len(c.Tools) > 0:
		for i := range c.Tools {
			t := &c.Tools[i]
			if t.Name != "" {
				dst = w.begin(w.finish(dst, "completed"), callItem, t)
			}
			dst = w.delta(dst, "response.function_call_arguments.delta", t.Arguments)
		}
	case len(c.Reasoning) > 0:
		if w.kind != reasoningItem {
			dst = w.begin(w.finish(dst, "completed"), reasoningItem, nil)
		}
		dst = w.delta(dst, "response.reasoning_text.delta", c.Reasoning)
	default:
		if w.kind != messageItem {
			dst = w.begin(w.finish(dst, "completed"), messageItem, nil)
		}
		dst = w.delta(dst, "response.output_text.delta", c.Text)
	}
	return dst
}

// delta appends one piece of text; an empty one is no event.
func (w *ResponsesWriter) delta(dst []byte, name string, piece []byte) []byte {
	if len(piece) == 0 {
		return dst
	}
	w.text = append(w.text, piece...)
	dst = w.place(w.event(dst, name), w.kind != callItem)
	dst = appendQuotedBytes(append(dst, `,"delta":`...), piece)
	if w.kind == messageItem {
		dst = append(dst, `,"logprobs":[]`...)
	}
	return endEvent(dst)
}

// begin appends the events that begin an item.
func (w *ResponsesWriter) begin(dst []byte, kind itemKind, call *Call) []byte {
	prefix := map[itemKind]string{reasoningItem: "rs_", messageItem: "msg_", callItem: "fc_"}[kind]
	w.kind, w.text = kind, w.text[:0]
	w.item = prefix + w.id + "_" + strconv.Itoa(len(w.items))
	if call != nil {
		w.call = *call
	}
	dst = strconv.AppendInt(append(w.event(dst, "response.output_item.added"), `,"output_index":`...), int64(len(w.items)), 10)
	dst = endEvent(w.appendItem(append(dst, `,"item":`...), "in_progress", false))
	if kind == callItem {
		return dst
	}
	dst = w.place(w.event(dst, w.partEvent("added")), true)
	return endEvent(w.appendPart(append(dst, `,"part":`...), nil))
}

// partEvent is the name of the event of a content part.
func (w *ResponsesWriter) partEvent(what string) string {
	if w.kind == reasoningItem {
		return "response.reasoning_part." + what
	}
	return "response.content_part." + what
}

// finish appends the events that end the open item, if there is one.
func (w *ResponsesWriter) finish(dst []byte, status string) []byte {
	if w.kind == noItem {
		return dst
	}
	name, field := "response.output_text.done", `,"text":`
	switch w.kind {
	case reasoningItem:
		name = "response.reasoning_text.done"
	case callItem:
		name, field = "response.function_call_arguments.done", `,"arguments":`
	}
	dst = w.place(w.event(dst, name), w.kind != callItem)
	dst = appendQuotedBytes(append(dst, field...), w.text)
	switch w.kind {
	case messageItem:
		dst = append(dst, `,"logprobs":[]`...)
	case callItem:
		dst = AppendQuoted(append(dst, `,"name":`...), w.call.Name)
	}
	dst = endEvent(dst)
	if w.kind != callItem {
		dst = w.place(w.event(dst, w.partEvent("done")), true)
		dst = endEvent(w.appendPart(append(dst, `,"part":`...), w.text))
	}
	dst = strconv.AppendInt(append(w.event(dst, "response.output_item.done"), `,"output_index":`...), int64(len(w.items)), 10)
	item := w.appendItem(nil, status, true)
	dst = endEvent(append(append(dst, `,"item":`...), item...))
	w.items, w.kind = append(w.items, item), noItem
	return dst
}

// appendPart appends a content part of the open item.
func (w *ResponsesWriter) appendPart(dst, text []byte) []byte {
	if w.kind == reasoningItem {
		return append(appendQuotedBytes(append(dst, `{"type":"reasoning_text","text":`...), text), '}')
	}
	return append(appendQuotedBytes(append(dst, `{"type":"output_text","text":`...), text), `,"annotations":[],"logprobs":null}`...)
}

// appendItem appends the open item, with its content or without.
func (w *ResponsesWriter) appendItem(dst []byte, status string, content bool) []byte {
	kind := map[itemKind]string{reasoningItem: "reasoning", messageItem: "message", callItem: "function_call"}[w.kind]
	dst = AppendQuoted(append(dst, `{"id":`...), w.item)
	dst = AppendQuoted(append(dst, `,"type":`...), kind)
	dst = AppendQuoted(append(dst, `,"status":`...), status)
	if w.kind == callItem {
		dst = AppendQuoted(append(dst, `,"call_id":`...), w.call.ID)
		dst = AppendQuoted(append(dst, `,"name":`...), w.call.Name)
		var arguments []byte
		if content {
			arguments = w.text
		}
		return append(appendQuotedBytes(append(dst, `,"arguments":`...), arguments), '}')
	}
	if w.kind == reasoningItem {
		dst = append(dst, `,"summary":[]`...)
	} else {
		dst = append(dst, `,"role":"assistant"`...)
	}
	dst = append(dst, `,"content":[`...)
	if content {
		dst = w.appendPart(dst, w.text)
	}
	return append(dst, "]}"...)
}

// Close appends the events that end a stream. cut says that the output ended
// at its largest length.
func (w *ResponsesWriter) Close(dst []byte, u *Usage, cut bool) []byte {
	status := responseStatus(cut)
	dst = w.finish(dst, status)
	dst = append(w.event(dst, "response.completed"), `,"response":`...)
	return endEvent(w.response(dst, status, u))
}

func responseStatus(cut bool) string {
	if cut {
		return "incomplete"
	}
	return "completed"
}

// Whole appends the whole response instead of a stream: of the whole reasoning,
// text and tool calls of c.
func (w *ResponsesWriter) Whole(dst []byte, c *Chunk, u *Usage, cut bool) []byte {
	status := responseStatus(cut)
	var events []byte // what a stream would say; only the items are wanted
	if len(c.Reasoning) > 0 {
		events = w.Chunk(events[:0], &Chunk{Reasoning: c.Reasoning})
	}
	if len(c.Text) > 0 || len(c.Tools) == 0 && len(c.Reasoning) == 0 {
		events = w.Chunk(events[:0], &Chunk{Text: c.Text})
	}
	for i := range c.Tools {
		events = w.Chunk(events[:0], &Chunk{Tools: c.Tools[i : i+1]})
	}
	w.finish(events[:0], status)
	return w.response(dst, status, u)
}

// response appends a response object.
func (w *ResponsesWriter) response(dst []byte, status string, u *Usage) []byte {
	dst = AppendQuoted(append(dst, `{"id":`...), w.id)
	dst = strconv.AppendInt(append(dst, `,"object":"response","created_at":`...), w.created, 10)
	dst = AppendQuoted(append(dst, `,"status":`...), status)
	dst = append(dst, `,"background":false,"error":null,"incomplete_details":`...)
	if status == "incomplete" {
		dst = append(dst, `{"reason":"max_output_tokens"}`...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"max_output_tokens":`...)
	if w.max == Unset {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, w.max, 10)
	}
	dst = AppendQuoted(append(dst, `,"model":`...), w.model)
	dst = append(dst, `,"output":[`...)
	for i, item := range w.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, item...)
	}
	dst = appendNullable(append(dst, `],"previous_response_id":`...), w.previous)
	dst = append(dst, `,"usage":`...)
	if u == nil {
		return append(dst, "null}"...)
	}
	dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), u.Prompt, 10)
	dst = strconv.AppendInt(append(dst, `,"input_tokens_details":{"cached_tokens":`...), max(u.Cached, 0), 10)
	dst = appendMedia(dst, u)
	dst = strconv.AppendInt(append(dst, `},"output_tokens":`...), u.Completion, 10)
	dst = strconv.AppendInt(append(dst, `,"output_tokens_details":{"reasoning_tokens":`...), max(u.Reasoning, 0), 10)
	dst = strconv.AppendInt(append(dst, `},"total_tokens":`...), u.Total, 10)
	return append(dst, "}}"...)
}
