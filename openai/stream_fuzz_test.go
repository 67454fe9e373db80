package openai

import (
	"slices"
	"testing"
)

var pieces = []string{
	chatChunk,
	`{"choices":[]}`,
	`{"choices":null,"usage":null,"error":null}`,
	`{"choices":[{"index":1,"text":" \u00e9\"","finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"content":"","reasoning_content":"","reasoning":"r"}}]}`,
	`{"choices":[{"delta":null,"message":{"content":["x"]}}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"f","arguments":"{}"}}],"function_call":null}}]}`,
	`{"choices":[],"usage":{"prompt_tokens":17,"total_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}`,
	`{"usage":{"prompt_tokens":1e1,"completion_tokens":-1,"total_tokens":01}}`,
	`{"usage":{"prompt_tokens":3.0,"completion_tokens":null,"prompt_tokens_details":null}}`,
	`{"usage":{"prompt_tokens":1,"prompt_tokens":2},"usage":{}}`,
	`{"error":{"message":"m","code":1},"choices":[{}]}`,
	`{"error":"","object":"error"}`,
	`{"ob\u006aect":"error","x":[true,false,null,-0.5e+3,{"a":[]}]}`,
	`{"choices":[{"index":99999999999}]} `,
	`{"choices":[{"text":"x","token_ids":[1,2, 3]},{"token_ids":[]},{"token_ids":null}]}`,
	`{"type":"response.output_text.delta","delta":"é","output_index":1,"logprobs":[]}`,
	`{"delta":"x","type":"response.reasoning_text.delta"}`, `{"type":"response.output_text.delta","delta":null}`,
	`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}`,
	`{"type":"response.output_text.delta","choices":[],"delta":"x"}`, `{"type":"transcript.text.delta","delta":"x"}`,
	`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","name":"f","arguments":""}}`,
	responseDone, `{"type":"response.failed","response":{"status":"failed","error":{"code":"x","message":"m"}}}`,
	`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`,
	`{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`,
	`{"type":"error","message":"m","code":"c"}`, `{"type":1,"delta":2}`, `{"type":"","token":null}`,
	`{"token":{"text":"a","special":false},"generated_text":null,"details":null}`,
	`{"token":{"text":"a"},"generated_text":"a","details":{"finish_reason":"length","generated_tokens":1,"input_length":2}}`,
	`[{"generated_text":"x"}]`, `[[{"generated_text":"x"}]]`, `{"generated_text":""}`, `{"error":"x","error_type":"y"}`,
	`{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":1}}`, `{"data":[{"embedding":[]}]}`, `{"data":{}}`,
	`{"results":[{"index":0,"relevance_score":0.5}]}`, `{"results":[]}`, `{"text":"x","usage":{"type":"duration","seconds":1}}`,
	`{"choices":[],"metrics":{"queue_time_ms":1.5,"time_to_first_token_ms":2,"generation_time_ms":null},"timings":null}`,
	`{"choices":[],"timings":{"prompt_ms":1e3,"predicted_ms":-1}}`,
	`{"usage":{"input_tokens":1,"output_tokens":2,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":1}}}`,
	`{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":1,"multimodal_tokens":{"image":3,"audio":1}}}}`,
	`{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"audio_tokens":0,"image_tokens":2}}}`,
	`{"choices":[1]}`, `{"choices":{}}`, `[]`, `nul`, `{"a":1,}`, `{"a":"` + "\x01" + `"}`, `{"a":"\x"}`, `{"a":1}{`,
}

// The fast scan may give up, but what it accepts must be what encoding/json
// makes of it.
func checkFast(t *testing.T, data []byte) (fast bool) {
	t.Helper()
	var quick, slow Piece
	if !quick.parseFast(data) {
		return false
	}
	if err := slow.parseSlow(data); err != nil {
		t.Fatalf("%q: fast accepts, slow: %v", data, err)
	}
	same := quick.Shape == slow.Shape && quick.Over == slow.Over && quick.Times == slow.Times && quick.HasChoices == slow.HasChoices && quick.HasUsage == slow.HasUsage && quick.Usage == slow.Usage &&
		quick.HasError == slow.HasError && quick.Error == slow.Error && slices.EqualFunc(quick.Parts, slow.Parts, samePart)
	if !same {
		t.Fatalf("%q: fast %+v, slow %+v", data, quick, slow)
	}
	return true
}

func samePart(a, b Part) bool {
	return a.Index == b.Index && a.Tokens == b.Tokens && string(a.Content) == string(b.Content) && string(a.Reasoning) == string(b.Reasoning) &&
		string(a.Refusal) == string(b.Refusal) && string(a.FinishReason) == string(b.FinishReason) && slices.Equal(a.Tools, b.Tools)
}

func TestPieceFastIsExact(t *testing.T) {
	for _, p := range pieces {
		checkFast(t, []byte(p))
	}
	if !checkFast(t, []byte(chatChunk)) {
		t.Error("the fast scan does not take the usual chunk")
	}
}

func FuzzPiece(f *testing.F) {
	for _, p := range pieces {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkFast(t, data)
		s := NewStream()
		s.Capture = true
		s.Feed(Event{Data: data})
		s.Verdict(nil)
	})
}

func BenchmarkPiece(b *testing.B) {
	data := []byte(chatChunk)
	b.Run("fast", func(b *testing.B) {
		var c Piece
		b.ReportAllocs()
		for b.Loop() {
			_ = c.Parse(data)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		var c Piece
		b.ReportAllocs()
		for b.Loop() {
			_ = c.parseSlow(data)
		}
	})
}
