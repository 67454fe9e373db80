package openai

import (
	"strconv"
	"time"
)

// appendDelta appends the inside of a chat event's delta and its brace: text,
// reasoning or pieces of tool calls.
func appendDelta(dst []byte, c *Chunk) []byte {
	switch {
	case len(c.Reasoning) > 0:
		dst = appendQuotedBytes(append(dst, `"reasoning":`...), c.Reasoning)
	case len(c.Tools) > 0:
		dst = appendCalls(append(dst, `"tool_calls":`...), c.Tools)
	default:
		dst = appendQuotedBytes(append(dst, `"content":`...), c.Text)
	}
	return append(dst, '}')
}

// appendCalls appends tool calls, or the next pieces of them.
func appendCalls(dst []byte, calls []Call) []byte {
	dst = append(dst, '[')
	for i := range calls {
		c := &calls[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		if c.Name != "" {
			dst = append(AppendQuoted(append(dst, `"id":`...), c.ID), `,"type":"function",`...)
		}
		dst = strconv.AppendInt(append(dst, `"index":`...), int64(c.Index), 10)
		dst = append(dst, `,"function":{`...)
		if c.Name != "" {
			dst = append(AppendQuoted(append(dst, `"name":`...), c.Name), ',')
		}
		dst = append(appendQuotedBytes(append(dst, `"arguments":`...), c.Arguments), "}}"...)
	}
	return append(dst, ']')
}

// appendMessage appends a whole message from its content on, and its brace.
func appendMessage(dst []byte, c *Chunk) []byte {
	if len(c.Tools) > 0 && len(c.Text) == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = appendQuotedBytes(dst, c.Text)
	}
	dst = appendCalls(append(dst, `,"refusal":null,"tool_calls":`...), c.Tools)
	dst = append(dst, `,"reasoning":`...)
	if len(c.Reasoning) == 0 {
		return append(dst, "null}"...)
	}
	return append(appendQuotedBytes(dst, c.Reasoning), '}')
}

// appendTimes appends vLLM's per-request metrics, in milliseconds: the time
// from being scheduled to the first token, from there to the last, the mean of
// the gaps between tokens, and tokens over the time since being scheduled.
func appendTimes(dst []byte, t *Tail) []byte {
	if t.Times == nil {
		return dst
	}
	ms := func(dst []byte, name string, d float64) []byte {
		return strconv.AppendFloat(append(append(append(dst, '"'), name...), `":`...), d, 'f', -1, 64)
	}
	millis := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	first, decode, n := millis(t.Times.Prefill), millis(t.Times.Decode), float64(t.Usage.Completion)
	dst = ms(append(dst, `,"metrics":{`...), "time_to_first_token_ms", first)
	dst = ms(append(dst, ','), "generation_time_ms", decode)
	dst = ms(append(dst, ','), "queue_time_ms", millis(t.Times.Queue))
	if n > 1 {
		dst = ms(append(dst, ','), "mean_itl_ms", decode/(n-1))
	} else {
		dst = append(dst, `,"mean_itl_ms":null`...)
	}
	if first+decode > 0 {
		dst = ms(append(dst, ','), "tokens_per_second", n*1000/(first+decode))
	} else {
		dst = append(dst, `,"tokens_per_second":null`...)
	}
	return append(dst, '}')
}
