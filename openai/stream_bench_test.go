package openai

import (
	"bytes"
	"testing"
)

// What a streamed event costs from bytes to output, in the shapes that servers
// send: events/s is on one core, and nothing is allocated.
func BenchmarkEvents(b *testing.B) {
	for _, c := range []struct {
		name  string
		api   API
		event string
		last  string
	}{
		{"chat", Chat, "data: " + chatChunk + "\n\n", done},
		{"chat-running-usage", Chat, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":[1234]}],"usage":{"prompt_tokens":17,"total_tokens":20,"completion_tokens":3}}` + "\n\n", done},
		{"completions", Completions, `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}` + "\n\n", done},
		{"responses", Responses, typed("response.output_text.delta", `,"sequence_number":12,"item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":" word","logprobs":[]`), completed},
		{"tgi", InvocationsStream, data(token), data(lastToken)},
	} {
		b.Run(c.name, func(b *testing.B) {
			const n = 1000
			body := append(bytes.Repeat([]byte(c.event), n), c.last...)
			src := bytes.NewReader(body)
			events, stream := NewEventReader(nil, 0), NewStream()
			stream.API = c.api
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			outputs := 0
			for b.Loop() {
				src.Reset(body)
				events.Reset(src)
				stream.Reset()
				for {
					ev, err := events.Next()
					if err != nil {
						break
					}
					outputs += len(stream.Feed(ev))
				}
			}
			if v, message := stream.Verdict(nil); v != Whole && v != Truncated || outputs < n {
				b.Fatal(v, message, outputs)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// In steady state an event costs no allocation (TGI's events and other rare
// shapes are read by encoding/json).
func TestEventsAllocateNothing(t *testing.T) {
	for api, event := range map[API]string{
		Chat:        "data: " + chatChunk + "\n\n",
		Completions: `data: {"choices":[{"index":0,"text":" word","token_ids":[1,2]}],"usage":{"prompt_tokens":17,"total_tokens":20,"completion_tokens":3}}` + "\n\n",
		Responses:   typed("response.output_text.delta", `,"output_index":0,"delta":" word","logprobs":[]`),
	} {
		body := bytes.Repeat([]byte(event), 200)
		src := bytes.NewReader(body)
		events, stream := NewEventReader(nil, 0), NewStream()
		stream.API = api
		count := 0
		allocs := testing.AllocsPerRun(20, func() {
			src.Reset(body)
			events.Reset(src)
			stream.Reset()
			for {
				ev, err := events.Next()
				if err != nil {
					break
				}
				count += len(stream.Feed(ev))
			}
		})
		if allocs > 1 || count < 200 {
			t.Errorf("%s: %v allocations for 200 events, %d outputs", api, allocs, count)
		}
	}
}
