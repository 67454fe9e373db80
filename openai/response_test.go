package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"retrace/openai"
)

func usageOf(prompt, completion, cached int64) *openai.Usage {
	u := openai.NoUsage()
	u.Prompt, u.Completion, u.Total, u.Cached = prompt, completion, prompt+completion, cached
	return &u
}

// The recording of a real server is written again, byte for byte.
func TestStreamBytesOfRealServer(t *testing.T) {
	sample, err := os.ReadFile("../../shared/data/vllm/sse_sample.txt")
	if os.IsNotExist(err) {
		t.Skip("shared test data sse_sample.txt is not here")
	} else if err != nil {
		t.Fatal(err)
	}
	_, want, ok := bytes.Cut(bytes.ReplaceAll(sample, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	if !ok {
		t.Fatal("the sample has no head")
	}
	w := openai.NewResponseWriter(openai.Completions, "cmpl-baaa5d9e379e5091", "tiny", 1796060542)
	var got []byte
	for i, text := range []string{" JB", "nc", " JB"} {
		c := openai.Chunk{Text: []byte(text), Usage: usageOf(17, int64(i+1), openai.Unknown)}
		if i == 2 {
			c.Finish = "length"
		}
		got = w.AppendChunk(got, &c)
	}
	got = w.AppendUsage(got, &openai.Tail{Usage: *usageOf(17, 3, 0), Fingerprint: "vllm-0.32.0-a1743bc5"})
	got = openai.AppendDone(got)
	if d := cmp.Diff(strings.TrimSpace(string(want)), strings.TrimSpace(string(got))); d != "" {
		t.Errorf("sample − written +:\n%s", d)
	}
}

func TestChatStreamBytes(t *testing.T) {
	w := openai.NewResponseWriter(openai.Chat, "chatcmpl-1", "m", 5)
	head := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m","choices":[`
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"role", w.AppendRole(nil, &openai.Chunk{Index: 1, PromptIDs: []uint32{7, 8}, Usage: usageOf(2, 0, openai.Unknown)}),
			`{"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[7,8],` +
				`"usage":{"prompt_tokens":2,"total_tokens":2,"completion_tokens":0}}`},
		{"content", w.AppendChunk(nil, &openai.Chunk{Text: []byte("a\"b")}),
			`{"index":0,"delta":{"content":"a\"b"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`},
		{"last", w.AppendChunk(nil, &openai.Chunk{Text: []byte("é"), Finish: "stop", Stop: "\n", TokenIDs: []uint32{3}}),
			`{"index":0,"delta":{"content":"é"},"logprobs":null,"finish_reason":"stop","stop_reason":"\n","token_ids":[3]}]}`},
		{"usage", w.AppendUsage(nil, &openai.Tail{Usage: *usageOf(2, 1, 0), Fingerprint: "f"}),
			`],"usage":{"prompt_tokens":2,"total_tokens":3,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}},"system_fingerprint":"f"}`},
	} {
		if want := head + c.want + "\n\n"; string(c.got) != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, want)
		}
	}
}

// What is written is read back by
// encoding/json: every whole answer is one JSON object.
func TestAnswersAreJSON(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		api := rapid.SampledFrom([]openai.API{openai.Completions, openai.Chat}).Draw(rt, "api")
		texts := rapid.SliceOfN(rapid.String(), 1, 4).Draw(rt, "texts")
		id := rapid.String().Draw(rt, "id")
		w := openai.NewResponseWriter(api, id, "model", 1)
		choices := make([]openai.Chunk, len(texts))
		for i, s := range texts {
			choices[i] = openai.Chunk{Index: i, Text: []byte(s), Finish: "stop"}
		}
		body := w.AppendAnswer(nil, choices, &openai.Tail{Usage: *usageOf(1, 2, 3), Fingerprint: "fp"})
		var a struct {
			ID      string
			Choices []struct {
				Index   int
				Text    string
				Message struct{ Content string }
			}
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(body, &a); err != nil {
			rt.Fatalf("%s: %v", body, err)
		}
		if a.ID != id || len(a.Choices) != len(texts) || a.Usage.Details.Cached != 3 {
			rt.Fatalf("read back %+v from %s", a, body)
		}
		for i, c := range a.Choices {
			if c.Index != i || c.Text+c.Message.Content != texts[i] {
				rt.Fatalf("choice %d read back as %+v, want text %q", i, c, texts[i])
			}
		}
	})
}

// A quoted string is read back by encoding/json as the same string, invalid
// UTF-8 as U+FFFD.
func TestAppendQuoted(t *testing.T) {
	for _, s := range []string{"", "plain", `"\`, "\x00\x1f\n\r\t\x7f", "é😀\u2028", "a\xffb\xc3"} {
		var back string
		quoted := openai.AppendQuoted(nil, s)
		if err := json.Unmarshal(quoted, &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q: quoted %s, back %q, %v", s, quoted, back, err)
		}
	}
}

func TestAppendError(t *testing.T) {
	got := openai.AppendError(nil, "NotFoundError", `The model "x" does not exist.`, 404)
	want := `{"error":{"message":"The model \"x\" does not exist.","type":"NotFoundError","param":null,"code":404}}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func BenchmarkAppendChunk(b *testing.B) {
	w := openai.NewResponseWriter(openai.Completions, "cmpl-0000000000000001", "sim", 1796060542)
	var buf []byte
	c := openai.Chunk{Text: []byte(" deda")}
	b.ReportAllocs()
	for b.Loop() {
		buf = w.AppendChunk(buf[:0], &c)
	}
}

func ExampleParseCompletion() {
	var r openai.CompletionRequest
	err := openai.ParseCompletion([]byte(`{"model":"m","prompt":[1,2,3],"max_tokens":"many"}`), &r)
	fmt.Println(err)
	err = openai.ParseCompletion([]byte(`{"model":"m","prompt":[1,2,3],"max_tokens":5}`), &r)
	fmt.Println(r.Prompts[0].Tokens, r.MaxTokens, err)
	// Output:
	// parse request: field max_tokens at byte 43: found "many", expected an integer
	// [1 2 3] 5 <nil>
}

func ExampleResponseWriter() {
	w := openai.NewResponseWriter(openai.Chat, "chatcmpl-1", "m", 1796060542)
	fmt.Printf("%s", openai.AppendDone(w.AppendChunk(nil, &openai.Chunk{Text: []byte("hi"), Finish: "stop"})))
	// Output:
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796060542,"model":"m","choices":[{"index":0,"delta":{"content":"hi"},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}]}
	//
	// data: [DONE]
}
