package replay

import (
	"strings"
	"testing"

	"retrace/openai"
	"retrace/record"
)

// What --extra says of streaming is what the body is made for: a server refuses
// stream_options beside "stream": false.
func TestExtraStream(t *testing.T) {
	for _, c := range []struct{ api, source, extra, want string }{
		{"chat", `{"stream":true}`, `{"stream":false}`, `{"stream":false}`},
		{"chat", `{"stream":false}`, `{"stream":true}`, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{"chat", `{}`, `{"stream":null}`, `{"stream":null}`},
		{"embeddings", `{}`, `{"stream":true}`, `{"stream":true}`},
	} {
		b, err := newBodies(&Config{Extra: []byte(c.extra), Requests: RequestConfig{Stream: StreamOwn}}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		j := &job{api: openai.API(c.api), source: []byte(c.source), output: record.Unknown}
		got, err := b.append(nil, j)
		if err != nil || string(got) != c.want || j.streams != strings.Contains(c.want, "stream_options") {
			t.Errorf("%s with %s: got %s, streams %v, %v; want %s", c.source, c.extra, got, j.streams, err, c.want)
		}
	}
}

func TestExtraConflicts(t *testing.T) {
	for _, c := range []struct {
		api    openai.API
		prompt PromptMode
		extra  string
		set    func(*RequestConfig)
		want   string // a part of the error, "" for none
	}{
		{openai.Completions, Tokens, `{"prompt":"x"}`, nil, `"prompt"`},
		{openai.Completions, Tokens, `{"messages":[]}`, nil, ""},
		{openai.Chat, Text, `{"messages":[]}`, nil, `"messages"`},
		{openai.Responses, Text, `{"input":"x"}`, nil, `"input"`},
		{openai.Embeddings, Tokens, `{"input":"x"}`, nil, `"input"`},
		{openai.Rerank, Text, `{"documents":[]}`, nil, `"documents"`},
		{openai.Rerank, Text, `{"top_n":1}`, nil, ""},
		{openai.Invocations, Text, `{"inputs":"x"}`, nil, `"inputs"`},
		{openai.InvocationsStream, Text, `{"inputs":"x"}`, nil, `"inputs"`},
		{openai.Chat, Literal, `{"messages":[]}`, nil, ""},
		{openai.Chat, Literal, `{"model":"m"}`, nil, ""},
		{openai.Chat, Text, `{"model":"m"}`, func(r *RequestConfig) { r.LoRA = []string{"a"} }, "adapters"},
		{openai.Chat, Literal, `{"model":"m"}`, func(r *RequestConfig) { r.ModelFromTrace = true }, "from the trace"},
		{openai.Chat, Literal, `{"a":1,"a":2}`, nil, "twice"},
		{openai.Chat, Literal, `[1]`, nil, "an object"},
	} {
		cfg := Config{URLs: []string{"http://127.0.0.1:1"}, API: c.api, Prompt: c.prompt, Extra: []byte(c.extra)}
		if c.set != nil {
			c.set(&cfg.Requests)
		}
		err := cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %s: %v, want %q", c.api, c.prompt, c.extra, err, c.want)
		}
	}
}
