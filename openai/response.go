package openai

import (
	"strconv"
	"unicode/utf8"
)

// Chunk is what one event of a stream, or one choice of a whole answer, says.
type Chunk struct {
	// Index is the choice's number.
	Index int
	// Text is the text, new or whole; of a chat's event it counts where the two
	// below are empty.
	Text []byte
	// Reasoning is the reasoning of a chat, Tools are its tool calls: in an
	// event their next pieces.
	Reasoning []byte
	Tools     []Call
	// Finish is the finish_reason, "" for null; Stop the stop string that
	// ended the answer, "" for null.
	Finish string
	Stop   string
	// PromptIDs and TokenIDs are the ids of the prompt and of Text; nil for null.
	PromptIDs []uint32
	TokenIDs  []uint32
	// Usage, where not nil, is put into the event (continuous_usage_stats).
	Usage *Usage
}

// Call is a call of a tool, or in an event the next piece of one.
type Call struct {
	// Index is the call's number.
	Index int
	// ID and Name are "" in all pieces but the first.
	ID, Name string
	// Arguments are JSON, or the next piece of it.
	Arguments []byte
}

// Tail is what an answer says at its end.
type Tail struct {
	// Usage is the whole usage.
	Usage Usage
	// Fingerprint is the system_fingerprint.
	Fingerprint string
	// Times, where not nil, are vLLM's per-request metrics.
	Times *ServerTimes
}

// ResponseWriter renders the answers of one request as vLLM does, byte for
// byte where a recording of it was at hand. It is immutable; its methods
// append to the caller's buffer.
type ResponseWriter struct {
	chat  bool
	event []byte // `data: {"id":…,"choices":[`
	whole []byte // `{"id":…,"choices":[`
}

// NewResponseWriter makes the writer of one response. id is the whole id
// (cmpl-… or chatcmpl-…), created its time in seconds since 1970.
func NewResponseWriter(api API, id, model string, created int64) *ResponseWriter {
	w := &ResponseWriter{chat: api == Chat}
	head := func(dst []byte, object string) []byte {
		dst = AppendQuoted(append(dst, `{"id":`...), id)
		dst = AppendQuoted(append(dst, `,"object":`...), object)
		dst = strconv.AppendInt(append(dst, `,"created":`...), created, 10)
		dst = AppendQuoted(append(dst, `,"model":`...), model)
		return append(dst, `,"choices":[`...)
	}
	buf := make([]byte, 0, 2*(len(id)+len(model))+192)
	if w.chat {
		buf = head(append(buf, "data: "...), "chat.completion.chunk")
		w.event, buf = buf, buf[len(buf):]
		w.whole = head(buf, "chat.completion")
		return w
	}
	buf = head(append(buf, "data: "...), "text_completion")
	w.event, w.whole = buf, buf[len("data: "):]
	return w
}

// AppendRole appends the event that opens a choice of a chat stream: a role
// and no text, and of the chunk its index, the prompt's ids and the usage.
func (w *ResponseWriter) AppendRole(dst []byte, c *Chunk) []byte {
	dst = append(append(dst, w.event...), `{"index":`...)
	dst = strconv.AppendInt(dst, int64(c.Index), 10)
	dst = append(dst, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":`...)
	dst = appendIDs(dst, c.PromptIDs)
	return endEvent(appendUsage(dst, c.Usage))
}

// AppendChunk appends one event of a stream.
func (w *ResponseWriter) AppendChunk(dst []byte, c *Chunk) []byte {
	dst = append(append(dst, w.event...), `{"index":`...)
	dst = strconv.AppendInt(dst, int64(c.Index), 10)
	if w.chat {
		dst = appendDelta(append(dst, `,"delta":{`...), c)
	} else {
		dst = appendQuotedBytes(append(dst, `,"text":`...), c.Text)
	}
	dst = appendNullable(append(dst, `,"logprobs":null,"finish_reason":`...), c.Finish)
	if !w.chat || c.Finish != "" {
		dst = appendNullable(append(dst, `,"stop_reason":`...), c.Stop)
	}
	if !w.chat {
		dst = appendIDs(append(dst, `,"prompt_token_ids":`...), c.PromptIDs)
	}
	dst = appendIDs(append(dst, `,"token_ids":`...), c.TokenIDs)
	dst = append(dst, `}]`...)
	return endEvent(appendUsage(dst, c.Usage))
}

// AppendUsage appends the event that ends a stream with include_usage: no
// choices and the whole usage.
func (w *ResponseWriter) AppendUsage(dst []byte, t *Tail) []byte {
	dst = append(append(dst, w.event...), ']')
	dst = appendUsage(dst, &t.Usage)
	dst = appendTimes(dst, t)
	dst = AppendQuoted(append(dst, `,"system_fingerprint":`...), t.Fingerprint)
	return endEvent(dst)
}

// AppendDone appends the event that ends every stream.
func AppendDone(dst []byte) []byte { return append(dst, "data: [DONE]\n\n"...) }

// AppendAnswer appends the whole answer of a request that does not stream.
func (w *ResponseWriter) AppendAnswer(dst []byte, choices []Chunk, t *Tail) []byte {
	dst = append(dst, w.whole...)
	for i := range choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.appendChoice(dst, &choices[i])
	}
	dst = AppendQuoted(append(dst, `],"service_tier":null,"system_fingerprint":`...), t.Fingerprint)
	dst = appendTimes(appendUsage(dst, &t.Usage), t)
	if w.chat && len(choices) > 0 {
		dst = appendIDs(append(dst, `,"prompt_logprobs":null,"prompt_token_ids":`...), choices[0].PromptIDs)
	}
	return append(dst, `,"kv_transfer_params":null}`...)
}

func (w *ResponseWriter) appendChoice(dst []byte, c *Chunk) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	if w.chat {
		dst = appendMessage(append(dst, `,"message":{"role":"assistant","content":`...), c)
	} else {
		dst = appendQuotedBytes(append(dst, `,"text":`...), c.Text)
	}
	dst = appendNullable(append(dst, `,"logprobs":null,"finish_reason":`...), c.Finish)
	dst = appendNullable(append(dst, `,"stop_reason":`...), c.Stop)
	dst = appendIDs(append(dst, `,"token_ids":`...), c.TokenIDs)
	if !w.chat {
		dst = append(dst, `,"prompt_logprobs":null`...)
		dst = appendIDs(append(dst, `,"prompt_token_ids":`...), c.PromptIDs)
	}
	return append(dst, '}')
}

// AppendError appends an error object as vLLM words it: {"error":{…}}.
func AppendError(dst []byte, kind, message string, code int) []byte {
	dst = AppendQuoted(append(dst, `{"error":{"message":`...), message)
	dst = AppendQuoted(append(dst, `,"type":`...), kind)
	dst = strconv.AppendInt(append(dst, `,"param":null,"code":`...), int64(code), 10)
	return append(dst, "}}"...)
}

func endEvent(dst []byte) []byte { return append(dst, "}\n\n"...) }

// appendUsage appends the usage field; details only where known.
func appendUsage(dst []byte, u *Usage) []byte {
	if u == nil {
		return dst
	}
	dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), u.Prompt, 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), u.Total, 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), u.Completion, 10)
	if u.Cached != Unknown {
		dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), u.Cached, 10)
		dst = append(appendMedia(dst, u), '}')
	}
	if u.Reasoning != Unknown {
		dst = strconv.AppendInt(append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...), u.Reasoning, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendMedia appends the tokens of media to a prompt's details.
func appendMedia(dst []byte, u *Usage) []byte {
	if u.Media == Unknown {
		return dst
	}
	dst = strconv.AppendInt(append(dst, `,"multimodal_tokens":{"total":`...), u.Media, 10)
	return append(dst, '}')
}

func appendIDs(dst []byte, ids []uint32) []byte {
	if ids == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(id), 10)
	}
	return append(dst, ']')
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return AppendQuoted(dst, s)
}

// AppendQuoted appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return append(appendEscaped(dst, s[i:]), '"')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

func appendQuotedBytes(dst, s []byte) []byte {
	dst = append(dst, '"')
	for i, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return append(appendEscaped(dst, string(s[i:])), '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

func appendEscaped(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
