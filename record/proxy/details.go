package proxy

import (
	"encoding/json"
	"fmt"
	"time"

	"retrace/openai"
	"retrace/record"
)

// details are what record.Request has no field for: the object in its Extra.
// They hold numbers, names of a known set, and pseudonyms, but no text.
type details struct {
	Stream      bool     `json:"stream,omitempty"`
	MaxTokens   *int64   `json:"max_tokens,omitempty"`
	MinTokens   int64    `json:"min_tokens,omitempty"`
	IgnoreEOS   bool     `json:"ignore_eos,omitempty"`
	N           int64    `json:"n,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int64   `json:"top_k,omitempty"`
	MinP        *float64 `json:"min_p,omitempty"`
	Presence    *float64 `json:"presence_penalty,omitempty"`
	Frequency   *float64 `json:"frequency_penalty,omitempty"`
	Repetition  *float64 `json:"repetition_penalty,omitempty"`
	Tools       bool     `json:"tools,omitempty"`
	Structured  bool     `json:"structured,omitempty"`
	Messages    int      `json:"messages,omitempty"`
	Prompts     int      `json:"prompts,omitempty"`
	User        string   `json:"user,omitempty"`
	CacheKey    string   `json:"prompt_cache_key,omitempty"`

	FirstByte   *float64 `json:"first_byte_ms,omitempty"`
	FirstOutput *float64 `json:"first_output_ms,omitempty"`
	LastOutput  *float64 `json:"last_output_ms,omitempty"`
	Outputs     int64    `json:"outputs,omitempty"`
	Cached      *int64   `json:"cached_tokens,omitempty"`
	Reasoning   *int64   `json:"reasoning_tokens,omitempty"`
	Finish      string   `json:"finish_reason,omitempty"`
	Class       string   `json:"class,omitempty"`
	Oversized   bool     `json:"oversized,omitempty"`
}

// asked fills in what the request asked for.
func (d *details) asked(f *facts) {
	d.Stream, d.MinTokens, d.IgnoreEOS = f.Stream, f.MinTokens, f.IgnoreEOS
	if f.MaxTokens != openai.Unset {
		d.MaxTokens = &f.MaxTokens
	}
	if f.N > 1 {
		d.N = f.N
	}
	s, usual := &f.Sampling, openai.DefaultSampling()
	d.Temperature = unless(s.Temperature, usual.Temperature)
	d.TopP, d.TopK, d.MinP = unless(s.TopP, usual.TopP), unless(s.TopK, usual.TopK), unless(s.MinP, usual.MinP)
	d.Presence, d.Frequency = unless(s.PresencePenalty, 0), unless(s.FrequencyPenalty, 0)
	d.Repetition = unless(s.RepetitionPenalty, usual.RepetitionPenalty)
	d.Tools = len(f.tools) > 0
	d.Structured = f.Structured.Kind != openai.Structured{}.Kind
	d.Messages = len(f.messages)
	if len(f.prompts) > 1 {
		d.Prompts = len(f.prompts)
	}
}

// unless is a value that is not the usual one.
func unless[T comparable](v, usual T) *T {
	if v == usual {
		return nil
	}
	return &v
}

// seen fills in how the exchange went.
func (d *details) seen(x *exchange) {
	since := func(t time.Duration) *float64 {
		if t == record.NoTime {
			return nil
		}
		ms := float64((t-x.arrival)/time.Microsecond) / 1000
		return &ms
	}
	d.FirstByte, d.Class, d.Oversized = since(x.firstByte), x.class, x.request.over
	a := x.answer
	if a == nil {
		return
	}
	d.FirstOutput, d.LastOutput = since(a.first), since(a.last)
	d.Outputs, d.Finish = a.stream.OutputChunks(), knownFinish(a.stream.FinishReason())
	d.Cached = unless(a.stream.Usage.Cached, openai.Unknown)
	d.Reasoning = unless(a.stream.Usage.Reasoning, openai.Unknown)
}

// knownFinish is a finish_reason of the usual ones, "other" in place of any text.
func knownFinish(reason string) string {
	switch reason {
	case "", "stop", "length", "tool_calls", "function_call", "content_filter", "abort", "error", "eos_token", "stop_sequence",
		"completed", "incomplete", "max_output_tokens", "failed", "cancelled":
		return reason
	}
	return "other"
}

// json is the object.
func (d *details) json() ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode details: %w", err)
	}
	if string(text) == "{}" {
		return nil, nil
	}
	return text, nil
}
