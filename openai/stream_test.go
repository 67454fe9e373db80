package openai

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// streamCase is one behaviour of a server; wants are worked out by hand.
type streamCase struct {
	name, body string
	outputs    string // "choice channel tokens" each
	verdict    Verdict
	message    string // a part of it
	usage      Usage
	finish     string
	text       string
}

func delta(index int, fields, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return fmt.Sprintf("data: {\"choices\":[{\"index\":%d,\"delta\":{%s},\"finish_reason\":%s}]}\n\n", index, fields, finish)
}

const (
	done   = "data: [DONE]\n\n"
	usage9 = `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}` + "\n\n"
)

func usageChunk(text string, completion int) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"text":%q}],"usage":{"prompt_tokens":5,"completion_tokens":%d}}`+"\n\n", text, completion)
}

var (
	a       = delta(0, `"content":"A"`, "null")
	b       = delta(0, `"content":"B"`, "null")
	stop    = delta(0, ``, "stop")
	counted = Usage{Prompt: 9, Completion: 3, Total: 12, Cached: Unknown, Reasoning: Unknown, Media: Unknown}
)

var streamCases = []streamCase{
	{name: "S01 crlf, no space", body: "data:{\"choices\":[{\"delta\":{\"content\":\"A\"}}]}\r\n\r\ndata:[DONE]\r\n\r\n",
		outputs: "0 0 -1", usage: NoUsage(), text: "A"},
	{name: "S03 two-byte letter", body: delta(0, `"content":"é"`, "null") + done, outputs: "0 0 -1", usage: NoUsage(), text: "é"},
	{name: "S04 two events", body: a + b + done, outputs: "0 0 -1|0 0 -1", usage: NoUsage(), text: "AB"},
	{name: "S06 pings", body: ": ping\n\ndata: \n\nevent: ping\ndata: \n\n" + a + stop + done,
		outputs: "0 0 -1", usage: NoUsage(), finish: "stop", text: "A"},
	{name: "S06 multi-line", body: "event: message\nid: 7\nretry: 10\ndata: {\"choices\":\ndata: [{\"text\":\"x\"}]}\n\n" + done,
		outputs: "0 0 -1", usage: NoUsage(), text: "x"},
	{name: "S07 usage last", body: a + b + stop + usage9 + done, outputs: "0 0 -1|0 0 -1", usage: counted, finish: "stop", text: "AB"},
	{name: "S08 null usage", body: `data: {"choices":[{"text":"x"}],"usage":null}` + "\n\n" + done, outputs: "0 0 -1", usage: NoUsage(), text: "x"},
	{name: "S08 usage on every chunk", body: usageChunk("a", 1) + usageChunk("b", 5) + usageChunk("c", 9) + done,
		outputs: "0 0 1|0 0 4|0 0 4", usage: Usage{5, 9, Unknown, Unknown, Unknown, Unknown}, text: "abc"},
	{name: "S08 usage now and then", body: usageChunk("a", 1) + a + usageChunk("c", 9) + usageChunk("d", 10) + done,
		outputs: "0 0 1|0 0 -1|0 0 -1|0 0 1", usage: Usage{5, 10, Unknown, Unknown, Unknown, Unknown}, text: "aAcd"},
	{name: "S08 details only last", body: usageChunk("a", 1) +
		`data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\n" + done,
		outputs: "0 0 1", usage: Usage{5, 1, Unknown, 4, 0, Unknown}, text: "a"},
	{name: "S09 error after content", body: a + a + a + `data: {"error":{"message":"engine died","code":500}}` + "\n\n" + done,
		outputs: "0 0 -1|0 0 -1|0 0 -1", verdict: StreamError, message: "engine died (code 500)", usage: NoUsage(), text: "AAA"},
	{name: "S09 error first", body: `data: {"error":{"message":"no room","type":"overloaded"}}` + "\n\n" + a + done,
		outputs: "0 0 -1", verdict: StreamError, message: "no room (type overloaded)", usage: NoUsage(), text: "A"},
	{name: "S09 plain string", body: a + `data: {"error":"boom"}` + "\n\n", outputs: "0 0 -1", verdict: StreamError, message: "boom", usage: NoUsage(), text: "A"},
	{name: "S09 event: error", body: a + "event: error\ndata: it broke\n\n", outputs: "0 0 -1", verdict: StreamError, message: "it broke", usage: NoUsage(), text: "A"},
	{name: "S09 event: error with JSON", body: "event: error\ndata: {\"message\":\"gone\"}\n\n", verdict: StreamError, message: "gone", usage: NoUsage()},
	{name: "S09 event: error with an error object", body: "event: error\ndata: {\"error\":{\"message\":\"gone\"}}\n\n", verdict: StreamError, message: "gone", usage: NoUsage()},
	{name: "S09 null error", body: `data: {"error":null,"choices":[{"text":"x","finish_reason":"stop"}]}` + "\n\n" + done,
		outputs: "0 0 -1", usage: NoUsage(), finish: "stop", text: "x"},
	{name: "error as object type", body: `data: {"object":"error","message":"too long","code":400}` + "\n\n", verdict: StreamError, message: "too long (code 400)", usage: NoUsage()},
	{name: "S11 A ends early", body: a + a + a + a, outputs: "0 0 -1|0 0 -1|0 0 -1|0 0 -1", verdict: Truncated, message: "after 4 outputs", usage: NoUsage(), text: "AAAA"},
	{name: "S11 B finish_reason, no DONE", body: a + stop, outputs: "0 0 -1", message: "no [DONE]", usage: NoUsage(), finish: "stop", text: "A"},
	{name: "DONE without the blank line", body: a + "data: [DONE]", outputs: "0 0 -1", usage: NoUsage(), text: "A"},
	{name: "cut within an event", body: a + `data: {"choices":[{"del`, outputs: "0 0 -1", verdict: Truncated, usage: NoUsage(), text: "A"},
	{name: "S12 role first", body: delta(0, `"role":"assistant","content":""`, "null") + a + done, outputs: "0 0 -1", usage: NoUsage(), text: "A"},
	{name: "S13 reasoning_content", body: delta(0, `"reasoning_content":"hm"`, "null") + a + done, outputs: "0 1 -1|0 0 -1", usage: NoUsage(), text: "A"},
	{name: "S13 reasoning only", body: delta(0, `"reasoning":"hm","content":null`, "null") + stop + done, outputs: "0 1 -1", usage: NoUsage(), finish: "stop"},
	{name: "S14 tool calls", body: delta(0, `"content":null,"tool_calls":[{"index":0,"id":"c","function":{"name":"f"}}]`, "null") +
		delta(0, `"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]`, "null") +
		delta(0, `"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]`, "null") +
		delta(0, `"tool_calls":[{"index":0,"function":{"arguments":""}}]`, "tool_calls") + done,
		outputs: "0 2 -1|0 2 -1|0 2 -1", usage: NoUsage(), finish: "tool_calls"},
	{name: "S15 token ids of each chunk", body: data(`{"choices":[{"text":"a","token_ids":[1]}]}`) + data(`{"choices":[{"text":"b c d e","token_ids":[2,3,4,5]}]}`) +
		data(`{"choices":[{"text":"f","token_ids":[6,7,8,9],"finish_reason":"length"}]}`) + done, outputs: "0 0 1|0 0 4|0 0 4", usage: NoUsage(), finish: "length", text: "ab c d ef"},
	{name: "S15 tokens of interleaved choices", body: data(`{"choices":[{"index":0,"text":"a","token_ids":[1]},{"index":1,"text":"b","token_ids":[2,3]}]}`) + done,
		outputs: "0 0 1|1 0 2", usage: NoUsage(), text: "a"},
	{name: "S17 a token without text", body: usageChunk("a", 1) + usageChunk("", 2) + usageChunk("é", 3) + done,
		outputs: "0 0 1|0 0 2", usage: Usage{5, 3, Unknown, Unknown, Unknown, Unknown}, text: "aé"},
	{name: "S17 a token id without text", body: data(`{"choices":[{"text":"a","token_ids":[1]}]}`) + data(`{"choices":[{"text":"","token_ids":[2,3]}]}`) +
		data(`{"choices":[{"text":"é","token_ids":[4]}]}`) + done, outputs: "0 0 1|0 0 3", usage: NoUsage(), text: "aé"},
	{name: "S18 two choices", body: a + delta(1, `"content":"x"`, "null") + b + delta(1, `"content":"y"`, "stop") + stop,
		outputs: "0 0 -1|1 0 -1|0 0 -1|1 0 -1", message: "no [DONE]", usage: NoUsage(), finish: "stop", text: "AB"},
	{name: "S18 one choice left open", body: a + delta(1, `"content":"y"`, "stop"), outputs: "0 0 -1|1 0 -1", verdict: Truncated, usage: NoUsage(), text: "A"},
	{name: "S18 one choice left open before DONE", body: a + delta(1, `"content":"y"`, "stop") + done, outputs: "0 0 -1|1 0 -1",
		message: "1 of 2 choices have no finish_reason", usage: NoUsage(), text: "A"},
	{name: "cut within the first event", body: `data: {"choices":[{"del`, verdict: Truncated, message: "after 0 outputs", usage: NoUsage()},
	{name: "the engine gave up", body: a + delta(0, ``, "error") + usage9 + done, outputs: "0 0 -1", verdict: StreamError,
		message: "finish_reason error", usage: counted, finish: "error", text: "A"},
	{name: "the engine aborted one of two", body: a + delta(1, ``, "abort") + stop + done, outputs: "0 0 -1", verdict: StreamError,
		message: "finish_reason abort", usage: NoUsage(), finish: "stop", text: "A"},
	{name: "counts below zero", body: a + stop + data(`{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":-3,"total_tokens":-8}}`) + done,
		outputs: "0 0 -1", usage: NoUsage(), finish: "stop", text: "A"},
	{name: "counts that no request has", body: a + stop +
		data(`{"choices":[],"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":1000000000001,"total_tokens":1e13}}`) + done,
		outputs: "0 0 -1", usage: NoUsage(), finish: "stop", text: "A"},
	{name: "the largest count", body: a + stop + data(`{"choices":[],"usage":{"prompt_tokens":1000000000000,"completion_tokens":1e12}}`) + done,
		outputs: "0 0 -1", usage: Usage{1e12, 1e12, Unknown, Unknown, Unknown, Unknown}, finish: "stop", text: "A"},
	{name: "not JSON", body: a + "data: <html>\n\n" + done, outputs: "0 0 -1", verdict: BadResponse, message: "event 2", usage: NoUsage(), text: "A"},
	{name: "JSON of another kind", body: "data: {\"hello\":1}\n\n", verdict: BadResponse, usage: NoUsage()},
	{name: "only DONE", body: done, verdict: BadResponse, usage: NoUsage()},
	{name: "nothing", body: "", verdict: Truncated, usage: NoUsage()},
	{name: "output after DONE", body: a + done + b, outputs: "0 0 -1", usage: NoUsage(), text: "A"},
}

func runStream(body string, api API) (*Stream, string, error) {
	return readStream(strings.NewReader(body), api)
}

func readStream(r io.Reader, api API) (*Stream, string, error) {
	s := NewStream()
	s.Capture, s.API = true, api
	er := NewEventReader(r, 0)
	var outs []string
	for {
		ev, err := er.Next()
		if errors.Is(err, io.EOF) {
			return s, strings.Join(outs, "|"), nil
		}
		if err != nil {
			return s, strings.Join(outs, "|"), err
		}
		for _, o := range s.Feed(ev) {
			outs = append(outs, fmt.Sprintf("%d %d %d", o.Choice, o.Channel, o.Tokens))
		}
	}
}

func (c *streamCase) check(t *testing.T, how string, api API, r io.Reader) {
	t.Helper()
	s, outs, _ := readStream(r, api)
	verdict, message := s.Verdict(nil)
	if outs != c.outputs || verdict != c.verdict || !strings.Contains(message, c.message) {
		t.Errorf("%s: outputs %q, verdict %d %q; want %q, %d %q", how, outs, verdict, message, c.outputs, c.verdict, c.message)
	}
	if s.Usage != c.usage || s.FinishReason() != c.finish || string(s.Text()) != c.text {
		t.Errorf("%s: usage %v, finish %q, text %q; want %v, %q, %q", how, s.Usage, s.FinishReason(), s.Text(), c.usage, c.finish, c.text)
	}
}

func TestStream(t *testing.T) {
	for _, c := range streamCases {
		t.Run(c.name, func(t *testing.T) {
			c.split(t, "")
			c.split(t, Chat)
		})
	}
}

// split checks the case however its bytes arrive.
func (c *streamCase) split(t *testing.T, api API) {
	t.Helper()
	c.check(t, "at once", api, strings.NewReader(c.body))
	c.check(t, "byte by byte", api, iotest.OneByteReader(strings.NewReader(c.body)))
	for i := range c.body {
		c.check(t, "split", api, io.MultiReader(strings.NewReader(c.body[:i]), strings.NewReader(c.body[i:])))
	}
}

func TestStreamToolCallsJoin(t *testing.T) {
	i := slices.IndexFunc(streamCases, func(c streamCase) bool { return c.name == "S14 tool calls" })
	s, _, _ := runStream(streamCases[i].body, "")
	want := []ToolDelta{{0, "f", `{"a":1}`}}
	if !slices.Equal(s.ToolCalls(), want) {
		t.Errorf("got %+v, want %+v", s.ToolCalls(), want)
	}
}

func TestStreamBrokenConnection(t *testing.T) {
	reset := errors.New("connection reset")
	for _, c := range []struct {
		body    string
		verdict Verdict
	}{{a, Truncated}, {a + stop, Whole}, {a + done, Whole}, {"", Truncated}} {
		s, _, err := readStream(io.MultiReader(strings.NewReader(c.body), iotest.ErrReader(reset)), Chat)
		if got, message := s.Verdict(err); got != c.verdict {
			t.Errorf("%q: got %d %q, want %d", c.body, got, message, c.verdict)
		}
	}
}

func TestStreamPlainJSON(t *testing.T) {
	for _, c := range []struct {
		body    string
		verdict Verdict
		usage   int64
	}{
		{`{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}`, Whole, 1},
		{`{"choices":[{"index":0,"text":"hi","finish_reason":null}]}`, Whole, Unknown},
		{`{"error":{"message":"no"}}`, StreamError, Unknown},
		{`{"object":"error","message":"no"}`, StreamError, Unknown},
		{`{"status":"ok"}`, BadResponse, Unknown},
		{`{"choices":"many"}`, BadResponse, Unknown},
		{`{"choices":[1]}`, BadResponse, Unknown},
		{`[1]`, BadResponse, Unknown},
		{`null`, BadResponse, Unknown},
		{`{"choices":[`, Truncated, Unknown},
		{`[{"generated_text":"x`, Truncated, Unknown},
		{`{"choices":x`, BadResponse, Unknown},
		{`tru`, Truncated, Unknown},
		{``, BadResponse, Unknown},
	} {
		s := NewStream()
		s.FeedJSON([]byte(c.body))
		if got, message := s.Verdict(nil); got != c.verdict || s.Usage.Completion != c.usage {
			t.Errorf("%s: got %d %q, usage %v; want %d", c.body, got, message, s.Usage, c.verdict)
		}
	}
}

func TestStreamReset(t *testing.T) {
	s, _, _ := runStream(a+`data: {"error":"x"}`+"\n\n"+usage9+done, "")
	s.Reset()
	if v, _ := s.Verdict(nil); v != Truncated || s.Usage != NoUsage() || s.OutputChunks() != 0 || len(s.Text()) != 0 || !s.Capture {
		t.Errorf("after Reset: %+v", s)
	}
}
