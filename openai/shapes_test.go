package openai

import (
	"testing"
	"time"
)

const responseDone = `{"type":"response.completed","sequence_number":9,"response":{"object":"response","status":"completed","output":[],` +
	`"usage":{"input_tokens":42,"input_tokens_details":{"cached_tokens":32},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":47}}}`

func typed(kind, rest string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "}\n\n"
}

var (
	created   = typed("response.created", `,"response":{"object":"response","status":"in_progress","output":[],"usage":null}`)
	itemText  = typed("response.output_item.added", `,"output_index":0,"item":{"type":"message","role":"assistant","content":[]}`)
	textDelta = typed("response.output_text.delta", `,"output_index":0,"content_index":0,"delta":"A","logprobs":[]`)
	completed = "event: response.completed\ndata: " + responseDone + "\n\n"
	token     = `{"index":1,"token":{"id":7,"text":"A","logprob":-1,"special":false},"generated_text":null,"details":null}`
	lastToken = `{"token":{"id":2,"text":"B","special":false},"generated_text":"AB","details":{"finish_reason":"length","generated_tokens":2,"input_length":4}}`
)

func data(s string) string { return "data: " + s + "\n\n" }

var shapeCases = []struct {
	api API
	streamCase
}{
	{Responses, streamCase{name: "text", body: created + itemText + textDelta + textDelta +
		typed("response.output_text.done", `,"text":"AA"`) + completed,
		outputs: "0 0 -1|0 0 -1", usage: Usage{42, 5, 47, 32, 2, Unknown}, finish: "stop", text: "AA"}},
	{Responses, streamCase{name: "reasoning, then text, then DONE", body: created + typed("response.reasoning_text.delta", `,"delta":"hm"`) +
		typed("response.reasoning_summary_text.delta", `,"delta":"hm"`) + textDelta + completed + done,
		outputs: "0 1 -1|0 1 -1|0 0 -1", usage: Usage{42, 5, 47, 32, 2, Unknown}, finish: "stop", text: "A"}},
	{Responses, streamCase{name: "S14 tool call: the name first", body: created +
		typed("response.output_item.added", `,"output_index":1,"item":{"type":"function_call","name":"f","arguments":""}`) +
		typed("response.function_call_arguments.delta", `,"output_index":1,"delta":"{\"a\":"`) +
		typed("response.function_call_arguments.delta", `,"output_index":1,"delta":"1}"`) + completed,
		outputs: "0 2 -1|0 2 -1|0 2 -1", usage: Usage{42, 5, 47, 32, 2, Unknown}, finish: "stop"}},
	{Responses, streamCase{name: "no terminal event", body: created + textDelta, outputs: "0 0 -1", verdict: Truncated,
		message: "without response.completed", usage: NoUsage(), text: "A"}},
	{Responses, streamCase{name: "DONE without a terminal event", body: created + textDelta + done, outputs: "0 0 -1", verdict: Truncated,
		message: "without response.completed", usage: NoUsage(), text: "A"}},
	{Responses, streamCase{name: "incomplete", body: created + textDelta +
		typed("response.incomplete", `,"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":3,"output_tokens":1}}`),
		outputs: "0 0 -1", usage: Usage{3, 1, Unknown, Unknown, Unknown, Unknown}, finish: "max_output_tokens", text: "A"}},
	{Responses, streamCase{name: "failed", body: created + textDelta +
		typed("response.failed", `,"response":{"status":"failed","error":{"code":"server_error","message":"engine died"}}`),
		outputs: "0 0 -1", verdict: StreamError, message: "engine died (code server_error)", usage: NoUsage(), text: "A"}},
	{Responses, streamCase{name: "failed without a reason", body: created + typed("response.failed", `,"response":null`),
		verdict: StreamError, message: "response.failed", usage: NoUsage()}},
	{Responses, streamCase{name: "error event", body: created + typed("error", `,"code":"x","message":"no room","param":null`),
		verdict: StreamError, message: "no room", usage: NoUsage()}},
	{Responses, streamCase{name: "error event without its type", body: created + data(`{"type":"error","message":"no room"}`),
		verdict: StreamError, message: "no room", usage: NoUsage()}},
	{Responses, streamCase{name: "a chat stream", body: a + stop + done, verdict: BadResponse, message: "found a completion", usage: NoUsage()}},
	{Chat, streamCase{name: "a response stream", body: created + textDelta + completed, verdict: BadResponse, message: "found a response", usage: NoUsage()}},
	{Chat, streamCase{name: "embeddings", body: data(`{"data":[{"embedding":[1]}]}`), verdict: BadResponse, message: "found embeddings", usage: NoUsage()}},
	{Transcriptions, streamCase{name: "events", body: data(`{"type":"transcript.text.delta","delta":"A"}`) +
		data(`{"type":"transcript.text.done","text":"A","usage":{"type":"tokens","input_tokens":14,"output_tokens":1,"total_tokens":15}}`),
		outputs: "0 0 -1", usage: Usage{14, 1, 15, Unknown, Unknown, Unknown}, text: "A"}},
	{Transcriptions, streamCase{name: "events cut", body: data(`{"type":"transcript.text.delta","delta":"A"}`),
		outputs: "0 0 -1", verdict: Truncated, usage: NoUsage(), text: "A"}},
	{Transcriptions, streamCase{name: "vLLM's chunks", body: data(`{"object":"transcription.chunk","choices":[{"delta":{"content":"A"}}]}`) +
		data(`{"object":"transcription.chunk","choices":[{"delta":{"content":""},"finish_reason":"stop","stop_reason":null}]}`) + done,
		outputs: "0 0 -1", usage: NoUsage(), finish: "stop", text: "A"}},
	{InvocationsStream, streamCase{name: "TGI", body: data(token) + data(lastToken), outputs: "0 0 1|0 0 1",
		usage: Usage{4, 2, Unknown, Unknown, Unknown, Unknown}, finish: "length", text: "AB"}},
	{InvocationsStream, streamCase{name: "TGI cut", body: data(token), outputs: "0 0 1", verdict: Truncated, usage: NoUsage(), text: "A"}},
	{InvocationsStream, streamCase{name: "TGI error", body: data(token) + data(`{"error":"Request failed","error_type":"generation"}`),
		outputs: "0 0 1", verdict: StreamError, message: "Request failed", usage: NoUsage(), text: "A"}},
	{Invocations, streamCase{name: "a chat stream", body: a + stop + done, outputs: "0 0 -1", usage: NoUsage(), finish: "stop", text: "A"}},
}

func TestStreamShapes(t *testing.T) {
	for _, c := range shapeCases {
		t.Run(string(c.api)+" "+c.name, func(t *testing.T) { c.split(t, c.api) })
	}
}

// Whole answers: what each API's must be made of.
func TestWholeAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		api     API
		body    string
		verdict Verdict
		usage   Usage
		text    string
	}{
		{"response", Responses, `{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},` +
			`{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","name":"f","arguments":"{}"}],` +
			`"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`, Whole, Usage{3, 2, 5, Unknown, Unknown, Unknown}, "hi"},
		{"response that failed", Responses, `{"object":"response","status":"failed","error":{"message":"no"}}`, StreamError, NoUsage(), ""},
		{"response that failed silently", Responses, `{"object":"response","status":"failed","error":null}`, StreamError, NoUsage(), ""},
		{"response in the background", Responses, `{"object":"response","status":"queued","output":[]}`, Truncated, NoUsage(), ""},
		{"embeddings", Embeddings, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,1]},{"embedding":"AAAAPw=="}],"usage":{"prompt_tokens":4,"total_tokens":4}}`,
			Whole, Usage{4, Unknown, 4, Unknown, Unknown, Unknown}, ""},
		{"no embeddings", Embeddings, `{"object":"list","data":[]}`, BadResponse, NoUsage(), ""},
		{"an empty embedding", Embeddings, `{"data":[{"embedding":[1]},{"embedding":[]}]}`, BadResponse, NoUsage(), ""},
		{"data of another kind", Embeddings, `{"object":"list","data":[{"id":"model"}]}`, BadResponse, NoUsage(), ""},
		{"ranking", Rerank, `{"id":"r","model":"m","usage":{"prompt_tokens":9,"total_tokens":9},"results":[{"index":1,"document":{"text":"x"},"relevance_score":0.9}]}`,
			Whole, Usage{9, Unknown, 9, Unknown, Unknown, Unknown}, ""},
		{"ranking of nothing", Rerank, `{"results":[]}`, BadResponse, NoUsage(), ""},
		{"embeddings for a ranking", Rerank, `{"data":[{"embedding":[1]}]}`, BadResponse, NoUsage(), ""},
		{"error", Rerank, `{"error":{"message":"no"}}`, StreamError, NoUsage(), ""},
		{"transcript", Transcriptions, `{"text":"hi","usage":{"type":"duration","seconds":2}}`, Whole, NoUsage(), "hi"},
		{"verbose transcript", Transcriptions, `{"task":"transcribe","duration":1.5,"text":"hi","segments":[]}`, Whole, NoUsage(), "hi"},
		{"silence", Transcriptions, `{"text":""}`, Whole, NoUsage(), ""},
		{"TGI", Invocations, `[{"generated_text":"hi","details":{"finish_reason":"stop","generated_tokens":1,"prefill":[]}}]`,
			Whole, Usage{Unknown, 1, Unknown, Unknown, Unknown, Unknown}, "hi"},
		{"LMI", Invocations, `{"generated_text":"hi"}`, Whole, NoUsage(), "hi"},
		{"embeddings of a container", Invocations, `{"data":[{"embedding":[1]}]}`, Whole, NoUsage(), ""},
		{"something else", Invocations, `{"predictions":[1]}`, BadResponse, NoUsage(), ""},
	} {
		s := NewStream()
		s.API, s.Capture = c.api, true
		s.FeedJSON([]byte(c.body))
		got, message := s.Verdict(nil)
		if got != c.verdict || string(s.Text()) != c.text {
			t.Errorf("%s: got %d %q, text %q; want %d, %q", c.name, got, message, s.Text(), c.verdict, c.text)
		}
		if s.Usage != c.usage && (c.usage != NoUsage() || s.Usage.Prompt != Unknown) {
			t.Errorf("%s: usage %v, want %v", c.name, s.Usage, c.usage)
		}
	}
}

// What a server tells of its own times: vLLM in the chunk of the usage,
// llama.cpp in the last chunk, the responses API within the response.
func TestServerTimes(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		body string
		want ServerTimes
	}{
		{a + stop + data(`{"choices":[],"usage":{"prompt_tokens":9},"metrics":{"time_to_first_token_ms":2.5,"generation_time_ms":40,"queue_time_ms":1,"mean_itl_ms":4}}`) + done,
			ServerTimes{ms, 2500 * time.Microsecond, 40 * ms}},
		{a + data(`{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"timings":{"prompt_n":8,"prompt_ms":43,"predicted_n":2,"predicted_ms":20.5}}`) + done,
			ServerTimes{Untold, 43 * ms, 20500 * time.Microsecond}},
		{textDelta + data(`{"type":"response.completed","response":{"status":"completed","metrics":{"queue_time_ms":3,"generation_time_ms":null,"time_to_first_token_ms":"x"}}}`),
			ServerTimes{3 * ms, Untold, Untold}},
		{a + data(`{"choices":[],"metrics":{"queue_time_ms":-1,"generation_time_ms":1e300}}`) + done, NoTimes()},
		{a + done, NoTimes()},
	} {
		s, _, _ := runStream(c.body, "")
		if s.Times != c.want {
			t.Errorf("%s: got %v, want %v", c.body, s.Times, c.want)
		}
	}
}

// Media tokens are those of vLLM's object or of a count for each modality.
func TestMediaTokens(t *testing.T) {
	for details, want := range map[string]int64{
		`{"cached_tokens":1,"multimodal_tokens":{"image":300,"audio":25}}`: 325,
		`{"image_tokens":300,"audio_tokens":0}`:                            300,
		`{"audio_tokens":0}`:                                               0,
		`{"multimodal_tokens":null}`:                                       Unknown,
		`{"cached_tokens":1}`:                                              Unknown,
	} {
		s, _, _ := runStream(a+data(`{"choices":[],"usage":{"prompt_tokens":400,"prompt_tokens_details":`+details+`}}`)+done, "")
		if s.Usage.Media != want {
			t.Errorf("%s: got %d, want %d", details, s.Usage.Media, want)
		}
	}
}
