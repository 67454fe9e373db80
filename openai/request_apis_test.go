package openai_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrace/openai"
)

func TestParseResponses(t *testing.T) {
	var r openai.ResponsesRequest
	body := `{"model":"m","input":[{"role":"user","content":"hi"},{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},
		{"type":"function_call_output","call_id":"c","output":"42"},{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},
		{"type":"input_image","image_url":"data:image/png;base64,QQ=="}]}],"instructions":"be brief","previous_response_id":"resp_1","store":false,
		"max_output_tokens":9,"tools":[1],"tool_choice":"auto","reasoning":{"effort":"low"},"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"null"}}}}`
	if err := openai.ParseResponses([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	want := openai.ResponsesRequest{Instructions: "be brief", Previous: "resp_1", NoStore: true,
		ChatRequest: openai.ChatRequest{Tools: []byte("[1]"), ToolChoice: []byte(`"auto"`),
			Params: params(func(p *openai.Params) {
				p.Model, p.MaxTokens, p.Thinking.Effort = "m", 9, "low"
				p.Structured = openai.Structured{Kind: openai.JSONSchema, Schema: []byte(`{"type":"null"}`)}
			}),
			Messages: []openai.Message{{Role: "user", Content: "hi"}, {Role: "assistant", ToolCalls: []byte(`"f" "{}"`)}, {Role: "tool", Content: "42"},
				{Role: "user", Content: "see", Parts: 1, Media: []openai.Media{{At: 3, Ref: []byte("data:image/png;base64,QQ=="), Inline: true}}}}}}
	if d := cmp.Diff(want, r); d != "" {
		t.Errorf("want − got +:\n%s", d)
	}
	if got := string(r.Messages[3].Media[0].Content()); got != "QQ==" {
		t.Errorf("content %q, want what follows the comma", got)
	}
}

func TestParsePooling(t *testing.T) {
	var e openai.EmbeddingRequest
	if err := openai.ParseEmbedding([]byte(`{"input":["a","b"],"encoding_format":"base64","dimensions":7}`), &e); err != nil {
		t.Fatal(err)
	}
	if !e.Base64 || e.Dimensions != 7 || len(e.Inputs) != 2 || e.Inputs[1].Text != "b" {
		t.Errorf("%+v", e)
	}
	var r openai.RerankRequest
	if err := openai.ParseRerank([]byte(`{"query":"q","documents":["a",{"text":"b","x":1}],"top_n":1,"model":"m"}`), &r); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(openai.RerankRequest{Params: params(func(p *openai.Params) { p.Model = "m" }), Query: "q", Documents: []string{"a", "b"}, TopN: 1}, r); d != "" {
		t.Errorf("want − got +:\n%s", d)
	}
	var g openai.GenerateRequest
	if err := openai.ParseGenerate([]byte(`{"inputs":"x","parameters":{"max_new_tokens":4,"details":true,"stop":["s"],"temperature":0.5},"stream":true}`), &g); err != nil {
		t.Fatal(err)
	}
	want := openai.GenerateRequest{Inputs: "x", Details: true, Params: params(func(p *openai.Params) {
		p.MaxTokens, p.Stop, p.Stream, p.Sampling.Temperature = 4, []string{"s"}, true, 0.5
	})}
	if d := cmp.Diff(want, g); d != "" {
		t.Errorf("want − got +:\n%s", d)
	}
}

func TestInvocationShape(t *testing.T) {
	for body, want := range map[string]openai.API{
		`{"messages":[]}`: openai.Chat, `{"prompt":"x"}`: openai.Completions, `{"inputs":"x"}`: openai.Invocations,
		`{"query":"q","documents":[]}`: openai.Rerank, `{"query":"q"}`: "", `{"input":"x"}`: openai.Embeddings,
		`{"input":"x","max_output_tokens":1}`: openai.Responses, `{"input":[{"role":"user"}]}`: openai.Responses, `{"prompt":null}`: "",
	} {
		if got, err := openai.InvocationShape([]byte(body)); got != want || err != nil {
			t.Errorf("%s: %q %v, want %q", body, got, err, want)
		}
	}
}

func TestStructuredErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"response_format":{"type":"xml"}}`:                           `field response_format.type at byte 19: found xml, expected text`,
		`{"response_format":{"type":"json_schema"}}`:                   "no schema",
		`{"guided_json":"{"}`:                                          "expected a JSON schema",
		`{"guided_regex":"a","structured_outputs":{"choice":["b"]}}`:   "only one kind of structured outputs",
		`{"structured_outputs":{"structural_tag":"x"}}`:                "expected one of json",
		`{"temperature":"hot"}`:                                        `field temperature at byte 15: found "hot", expected a number`,
		`{"priority":1.5}`:                                             "expected an integer",
		`{"chat_template_kwargs":{"enable_thinking":1}}`:               "expected true or false",
		`{"structured_outputs":{"regex":5}}`:                           "expected a string",
		`{"messages":[{"content":[{"type":"image_url","image_url":{]}`: "json at byte",
	} {
		var r openai.ChatRequest
		if err := openai.ParseChat([]byte(body), &r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", body, err, want)
		}
	}
}

// No parser accepts what is not a JSON object, or blames a good one's JSON.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{`{"input":"x","text":{"format":null}}`, `{"input":[{"type":"reasoning","content":[]}]}`, `{"input":[[1]],"dimensions":null}`,
		`{"query":"q","documents":["a"]}`, `{"inputs":"x","parameters":{"stop":null}}`, `{"guided_json":"\"a\"","top_k":-1}`,
		`{"input":[{"content":[{"type":"input_audio","input_audio":{"data":"QQ\u003d="}}]}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r openai.ResponsesRequest
		checkAgainstJSON(t, body, openai.ParseResponses(body, &r))
		var e openai.EmbeddingRequest
		checkAgainstJSON(t, body, openai.ParseEmbedding(body, &e))
		var k openai.RerankRequest
		checkAgainstJSON(t, body, openai.ParseRerank(body, &k))
		var g openai.GenerateRequest
		checkAgainstJSON(t, body, openai.ParseGenerate(body, &g))
		_, err := openai.InvocationShape(body)
		checkAgainstJSON(t, body, err)
		for _, m := range r.Messages {
			for _, one := range m.Media {
				if one.At > len(m.Content) {
					t.Fatalf("a medium stands at %d of %d bytes", one.At, len(m.Content))
				}
			}
		}
	})
}
