package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"retrace/openai"
)

func text(s string) openai.Prompt        { return openai.Prompt{Text: s} }
func tokens(ids ...uint32) openai.Prompt { return openai.Prompt{Tokens: ids, IsTokens: true} }
func params(set func(*openai.Params)) openai.Params {
	p := openai.Params{MaxTokens: openai.Unset, N: 1, Sampling: openai.DefaultSampling(), Thinking: openai.Thinking{Budget: openai.Unset}}
	if set != nil {
		set(&p)
	}
	return p
}

func TestParseCompletion(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       openai.CompletionRequest
	}{
		{"nothing", `{}`, openai.CompletionRequest{Params: params(nil)}},
		{"text", `{"prompt":"a b"}`, openai.CompletionRequest{Params: params(nil), Prompts: []openai.Prompt{text("a b")}}},
		{"escapes", `{"prompt":"\u00e9\n\"\ud83d\ude00"}`, openai.CompletionRequest{Params: params(nil), Prompts: []openai.Prompt{text("é\n\"😀")}}},
		{"texts", ` { "prompt" : [ "a" , "" ] } `, openai.CompletionRequest{Params: params(nil), Prompts: []openai.Prompt{text("a"), text("")}}},
		{"tokens", `{"prompt":[0, 1 ,4294967295]}`, openai.CompletionRequest{Params: params(nil), Prompts: []openai.Prompt{tokens(0, 1, math.MaxUint32)}}},
		{"token lists", `{"prompt":[[1,2],[3]]}`, openai.CompletionRequest{Params: params(nil), Prompts: []openai.Prompt{tokens(1, 2), tokens(3)}}},
		{"empty lists", `{"prompt":[[],[ ],[1]]}`, openai.CompletionRequest{Params: params(nil), Prompts: []openai.Prompt{tokens(), tokens(), tokens(1)}}},
		{"empty list", `{"prompt":[ ]}`, openai.CompletionRequest{Params: params(nil)}},
		{"null prompt", `{"prompt":null}`, openai.CompletionRequest{Params: params(nil)}},
		{"last of two keys", `{"prompt":"a","prompt":[1],"n":2,"n":3}`, openai.CompletionRequest{
			Params: params(func(p *openai.Params) { p.N = 3 }), Prompts: []openai.Prompt{tokens(1)}}},
		{"unknown fields", `{"a":{"b":[1,{"c":null}]},"prompt":"x","logit_bias":{"1":-1.5e+3},"t":true}`,
			openai.CompletionRequest{Params: params(nil), Prompts: []openai.Prompt{text("x")}}},
		{"all fields", `{"model":"m","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true,"x":1},"max_tokens":7,
			"min_tokens":3,"ignore_eos":true,"n":2,"stop":["a","","b"],"cache_salt":"s","return_token_ids":true}`,
			openai.CompletionRequest{Params: openai.Params{Model: "m", Stream: true, IncludeUsage: true, ContinuousUsage: true, MaxTokens: 7,
				MinTokens: 3, IgnoreEOS: true, N: 2, Stop: []string{"a", "b"}, CacheSalt: "s", ReturnTokenIDs: true,
				Sampling: openai.DefaultSampling(), Thinking: openai.Thinking{Budget: openai.Unset}}}},
		{"all null", `{"model":null,"stream":null,"stream_options":null,"max_tokens":null,"min_tokens":null,"ignore_eos":null,"n":null,
			"stop":null,"cache_salt":null,"return_token_ids":null}`, openai.CompletionRequest{Params: params(nil)}},
		{"one stop", `{"stop":"\n"}`, openai.CompletionRequest{Params: params(func(p *openai.Params) { p.Stop = []string{"\n"} })}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got openai.CompletionRequest
			if err := openai.ParseCompletion([]byte(c.body), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("want − got +:\n%s", d)
			}
		})
	}
}

func TestParseCompletionErrors(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"empty", ``, `json at byte 0: found the end of the body, expected a JSON value`},
		{"array", `[]`, `field body at byte 0: found [], expected an object`},
		{"trailing", `{} x`, `json at byte 3: found x, expected the end of the body`},
		{"open", `{"model":"m"`, `json at byte 12: found the end of the body, expected ',' or '}'`},
		{"trailing comma", `{"model":"m",}`, `json at byte 13: found }, expected a string`},
		{"broken unknown", `{"x":01}`, `json at byte 6: found 1}, expected ',' or '}'`},
		{"negative token", `{"prompt":[5,-1]}`, `field prompt[1] at byte 13: found -1, expected a token id, an integer from 0 to 4294967295`},
		{"token too large", `{"prompt":[4294967296]}`, `field prompt[0] at byte 11: found 4294967296, expected a token id`},
		{"huge token", `{"prompt":[99999999999999999999]}`, `field prompt[0] at byte 11: found 99999999999999999999, expected a token id`},
		{"fraction", `{"prompt":[1.5]}`, `field prompt[0] at byte 11: found 1.5, expected a token id`},
		{"mixed", `{"prompt":[1,"a"]}`, `field prompt[1] at byte 13: found "a", expected a token id`},
		{"mixed texts", `{"prompt":["a",1]}`, `field prompt[1] at byte 15: found 1, expected a string`},
		{"mixed lists", `{"prompt":[[1],2]}`, `field prompt[1] at byte 15: found 2, expected an array of token ids`},
		{"leading zero", `{"prompt":[1,02]}`, `json at byte 14: found 2]}, expected ',' or ']'`},
		{"no comma", `{"prompt":[1 2]}`, `found 2]}, expected ',' or ']'`},
		{"open tokens", `{"prompt":[1,`, `json at byte 13: found the end of the body, expected a JSON value`},
		{"prompt object", `{"prompt":{}}`, `field prompt at byte 10: found {}, expected a string, an array of strings`},
		{"max_tokens text", `{"max_tokens":"7"}`, `field max_tokens at byte 14: found "7", expected an integer`},
		{"max_tokens fraction", `{"max_tokens":7.5}`, `field max_tokens at byte 14: found 7.5, expected an integer of at least 0`},
		{"max_tokens negative", `{"max_tokens":-1}`, `field max_tokens at byte 14: found -1, expected an integer of at least 0`},
		{"stream number", `{"stream":1}`, `field stream at byte 10: found 1, expected true or false`},
		{"stop number", `{"stop":[1]}`, `field stop at byte 9: found 1, expected a string`},
		{"control character", "{\"model\":\"a\nb\"}", `json at byte 11: found`},
		{"bad escape", `{"model":"\x"}`, `json at byte 10: found \x"}, expected an escape of JSON`},
		{"long value is cut", `{"stream":"` + strings.Repeat("é", 100) + `"}`, `…, expected true or false`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r openai.CompletionRequest
			err := openai.ParseCompletion([]byte(c.body), &r)
			var re *openai.RequestError
			if !errors.As(err, &re) {
				t.Fatalf("got %v, want a *RequestError", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %s\nwant …%s…", err, c.want)
			}
		})
	}
}

func TestDepthIsBounded(t *testing.T) {
	deep := `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	var r openai.CompletionRequest
	err := openai.ParseCompletion([]byte(deep), &r)
	if err == nil || !strings.Contains(err.Error(), "nesting of at most 512 levels") {
		t.Errorf("100,000 brackets: %v", err)
	}
}

func TestParseChat(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       openai.ChatRequest
	}{
		{"string content", `{"messages":[{"role":"user","content":"hi"}]}`,
			openai.ChatRequest{Params: params(nil), Messages: []openai.Message{{Role: "user", Content: "hi"}}}},
		{"parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}},{"text":"b","type":"text"}]}]}`,
			openai.ChatRequest{Params: params(nil), Messages: []openai.Message{{Role: "user", Content: "a\nb", Parts: 1,
				Media: []openai.Media{{At: 1, Ref: []byte("u")}}}}}},
		{"tool call answer", `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}],"tools":[{"type":"function"}]}`,
			openai.ChatRequest{Params: params(nil), Messages: []openai.Message{{Role: "assistant", ToolCalls: []byte(`[{"id":"1"}]`)}}, Tools: []byte(`[{"type":"function"}]`)}},
		{"max_tokens", `{"max_tokens":5}`, openai.ChatRequest{Params: params(func(p *openai.Params) { p.MaxTokens = 5 })}},
		{"max_completion_tokens first", `{"max_completion_tokens":9,"max_tokens":5}`,
			openai.ChatRequest{Params: params(func(p *openai.Params) { p.MaxTokens = 9 })}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got openai.ChatRequest
			if err := openai.ParseChat([]byte(c.body), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("want − got +:\n%s", d)
			}
		})
	}
	var r openai.ChatRequest
	err := openai.ParseChat([]byte(`{"messages":[{"role":"user"},{"role":1}]}`), &r)
	if err == nil || !strings.Contains(err.Error(), "field messages[1].role at byte 37: found 1, expected a string") {
		t.Errorf("a number as role: %v", err)
	}
}

// A request parsed into used memory is the same as one parsed into new memory.
func TestParseReuses(t *testing.T) {
	var used openai.CompletionRequest
	for _, body := range []string{`{"prompt":[[1,2,3],[4]],"stop":"x","n":4}`, `{"prompt":[[9]]}`, `{"prompt":"t"}`, `{"prompt":[7,8]}`} {
		var fresh openai.CompletionRequest
		if err := openai.ParseCompletion([]byte(body), &fresh); err != nil {
			t.Fatal(err)
		}
		if err := openai.ParseCompletion([]byte(body), &used); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(fresh, used); d != "" {
			t.Errorf("%s: fresh − used +:\n%s", body, d)
		}
	}
}

// Any token ids, in any spacing, come back.
func TestTokensRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfN(rapid.Uint32(), 1, 50).Draw(rt, "ids")
		space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r "})
		var b strings.Builder
		b.WriteString(`{"prompt":[`)
		for i, id := range ids {
			if i > 0 {
				b.WriteString("," + space.Draw(rt, "after comma"))
			}
			fmt.Fprintf(&b, "%d%s", id, space.Draw(rt, "after id"))
		}
		b.WriteString(`]}`)
		var r openai.CompletionRequest
		if err := openai.ParseCompletion([]byte(b.String()), &r); err != nil {
			rt.Fatal(err)
		}
		if len(r.Prompts) != 1 || !reflect.DeepEqual(r.Prompts[0].Tokens, ids) {
			rt.Fatalf("%v came back as %v", ids, r.Prompts)
		}
	})
}

// checkAgainstJSON holds a parser's verdict to encoding/json's: it accepts no
// text that is not a JSON object, and blames the JSON only where it is broken.
func checkAgainstJSON(t *testing.T, body []byte, err error) map[string]json.RawMessage {
	t.Helper()
	var object map[string]json.RawMessage
	jsonErr := json.Unmarshal(body, &object)
	valid := jsonErr == nil && object != nil
	if err == nil && !valid {
		t.Fatalf("accepted %q, which encoding/json refuses: %v", body, jsonErr)
	}
	var re *openai.RequestError
	if err != nil && !errors.As(err, &re) {
		t.Fatalf("error %v is no *RequestError", err)
	}
	if valid && err != nil && re.Field == "" && !strings.HasPrefix(re.Expected, "nesting") {
		t.Fatalf("%q is JSON, but: %v", body, err)
	}
	return object
}

func FuzzCompletionRequest(f *testing.F) {
	for _, s := range []string{`{"prompt":"a","max_tokens":1}`, `{"prompt":[1,2,3],"stream":true}`, `{"prompt":[[1],[2]],"stop":["\u0041"]}`,
		`{"prompt":["a","b"],"n":null}`, `{"prompt":[],"x":[{"y":-1.0e-5}]}`, `{"prompt":[01]}`, "{\"model\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r openai.CompletionRequest
		err := openai.ParseCompletion(body, &r)
		object := checkAgainstJSON(t, body, err)
		if err != nil {
			return
		}
		var model *string
		if json.Unmarshal(object["model"], &model) == nil && model != nil && *model != r.Model {
			t.Fatalf("model %q, encoding/json reads %q", r.Model, *model)
		}
		var ids []uint32
		raw := object["prompt"]
		if len(r.Prompts) == 1 && r.Prompts[0].IsTokens && raw[1] != '[' && json.Unmarshal(raw, &ids) == nil && !reflect.DeepEqual(ids, r.Prompts[0].Tokens) {
			t.Fatalf("tokens %v, encoding/json reads %v", r.Prompts[0].Tokens, ids)
		}
		if r.N < 0 || r.MinTokens < 0 || r.MaxTokens < openai.Unset {
			t.Fatalf("impossible numbers: %+v", r.Params)
		}
	})
}

func FuzzChatRequest(f *testing.F) {
	for _, s := range []string{`{"messages":[{"role":"user","content":"hi"}]}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"tools":[]}`,
		`{"messages":null,"max_completion_tokens":3}`, `{"messages":[{}],"stream_options":{"include_usage":true}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r openai.ChatRequest
		err := openai.ParseChat(body, &r)
		object := checkAgainstJSON(t, body, err)
		var messages []struct{ Role *string }
		if err != nil || json.Unmarshal(object["messages"], &messages) != nil {
			return
		}
		if len(messages) != len(r.Messages) {
			t.Fatalf("%d messages, encoding/json reads %d", len(r.Messages), len(messages))
		}
	})
}

func BenchmarkParseTokens(b *testing.B) {
	body := []byte(`{"model":"m","stream":true,"max_tokens":16,"prompt":[1`)
	for i := range 9000 {
		body = strconv.AppendInt(append(body, ','), int64(1000+i*7919%31000), 10)
	}
	body = append(body, "]}"...)
	var r openai.CompletionRequest
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := openai.ParseCompletion(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}
