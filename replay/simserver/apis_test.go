package simserver

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"retrace/openai"
)

// instantConfig is a server of which nothing takes time.
func instantConfig() Config {
	cfg := DefaultConfig()
	cfg.PrefillTokensPerSecond, cfg.DecodeStep = 0, 0
	return cfg
}

// said is what a chat's answer says.
type said struct {
	Model   string
	Choices []struct {
		Message struct {
			Content   string
			Reasoning string
			ToolCalls []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Finish string `json:"finish_reason"`
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Output  int `json:"completion_tokens"`
		Details struct {
			Cached int                 `json:"cached_tokens"`
			Media  struct{ Total int } `json:"multimodal_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func chat(t *testing.T, c *http.Client, s *Server, body string) said {
	t.Helper()
	resp, text := post(t, c, s.URL()+"/v1/chat/completions", body)
	var a said
	if err := json.Unmarshal([]byte(text), &a); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", body, resp.Status, text)
	}
	return a
}

// Adapters and media have blocks of their own; what stands before a medium is
// shared (cases H09 and H10). 100 words and 8 head tokens are 6 full blocks and
// 12 tokens; an image of 20 tokens begins in the seventh block.
func TestBlocksOfTheirOwn(t *testing.T) {
	cfg := instantConfig()
	cfg.Adapters, cfg.ImageTokens = []string{"a1", "a2"}, 20
	s, client := started(t, cfg)
	words := strings.Repeat("w ", 100)
	ask := func(model, image, salt string) int {
		body := fmt.Sprintf(`{"model":%q,"cache_salt":%q,"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":%q}`, model, salt, words)
		if image != "" {
			body += fmt.Sprintf(`,{"type":"image_url","image_url":{"url":%q}}`, image)
		}
		return chat(t, client, s, body+`,{"type":"text","text":"and so on and on and on"}]}]}`).Usage.Details.Cached
	}
	for _, c := range []struct {
		model, image, salt string
		want               int
	}{
		{"", "", "", 0}, {"", "", "", 112}, // 108+7 tokens: 7 full blocks
		{"a1", "", "", 0}, {"a1", "", "", 112}, {"a2", "", "", 0}, {"sim", "", "", 112},
		{"", "data:image/png;base64,AAAA", "", 96}, // the text's blocks, not the image's
		{"", "data:image/png;base64,AAAA", "", 128},
		{"", "data:image/png;base64,BBBB", "", 96},
		{"", "http://x/AAAA", "", 96}, {"", "", "s", 0}, {"", "", "s", 112},
	} {
		if got := ask(c.model, c.image, c.salt); got != c.want {
			t.Errorf("model %q, image %q, salt %q: %d cached, want %d", c.model, c.image, c.salt, got, c.want)
		}
	}
}

// Media count by their kind, however they are given.
func TestMediaTokens(t *testing.T) {
	s, client := started(t, instantConfig())
	sound := base64.StdEncoding.EncodeToString(wav(16_000, 3))
	for _, c := range []struct {
		part string
		want int
	}{
		{`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`, 256},
		{`{"type":"image_url","image_url":"file:///a.png"}`, 256},
		{`{"type":"input_image","file_id":"f-1"}`, 256},
		{`{"type":"video_url","video_url":{"url":"data:video/mp4;base64,AAAA"}}`, 1024},
		{`{"type":"input_audio","input_audio":{"format":"wav","data":"` + sound + `"}}`, 75},
		{`{"type":"audio_url","audio_url":{"url":"data:audio/wav;base64,` + sound + `"}}`, 75},
		{`{"type":"audio_url","audio_url":{"url":"http://x/y.wav"}}`, 250},
		{`{"type":"file","file":{"file_id":"f-2"}}`, 256},
	} {
		a := chat(t, client, s, `{"max_tokens":1,"messages":[{"role":"user","content":[`+c.part+`]}]}`)
		if a.Usage.Details.Media.Total != c.want || a.Usage.Prompt != c.want+8 {
			t.Errorf("%.60s: %d of %d tokens, want %d of %d", c.part, a.Usage.Details.Media.Total, a.Usage.Prompt, c.want, c.want+8)
		}
	}
}

// wav is a silent WAV file of 16-bit mono.
func wav(rate, seconds uint32) []byte {
	n := 2 * rate * seconds
	b := binary.LittleEndian.AppendUint32([]byte("RIFF"), 36+n)
	b = binary.LittleEndian.AppendUint32(append(b, "WAVEfmt "...), 16)
	b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, 1), 1)
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, rate), 2*rate)
	b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, 2), 16)
	b = binary.LittleEndian.AppendUint32(append(b, "data"...), n)
	return append(b, make([]byte, n)...)
}

// Structured answers conform, by every way to ask for them, for many choices.
func TestStructuredConforms(t *testing.T) {
	s, client := started(t, instantConfig())
	const schema = `{"type":"object","properties":{"a":{"enum":[1,2]},"b":{"type":"array","items":{"$ref":"#/$defs/x"},"minItems":2},` +
		`"c":{"anyOf":[{"type":"null"},{"type":"string","pattern":"^[a-c]{3}-\\d+$"}]}},"required":["a","b","z"],"$defs":{"x":{"type":"number","exclusiveMinimum":5,"maximum":6}}}`
	quoted, _ := json.Marshal(schema)
	matches := func(p string) func(string) bool { return regexp.MustCompile(p).MatchString }
	valid := conforms(t, schema)
	for _, c := range []struct {
		name, fields string
		ok           func(string) bool
	}{
		{"json_schema", `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + schema + `}}`, valid},
		{"json_object", `"response_format":{"type":"json_object"}`, conforms(t, `{"type":"object"}`)},
		{"structured_outputs.json", `"structured_outputs":{"json":` + schema + `}`, valid},
		{"guided_json", `"guided_json":` + string(quoted), valid},
		{"filled", `"guided_json":` + schema + `,"ignore_eos":true,"max_tokens":300`, func(text string) bool { return valid(text) && len(text) > 300 }},
		{"regex", `"structured_outputs":{"regex":"\\w+@\\w+\\.com\\n?"}`, matches(`^\w+@\w+\.com\n?$`)},
		{"guided_regex", `"guided_regex":"(a|b){2,3}[^a-z]"`, matches(`^(a|b){2,3}[^a-z]$`)},
		{"choice", `"structured_outputs":{"choice":["yes","no"]}`, matches(`^(yes|no)$`)},
		{"guided_choice", `"guided_choice":["one two three"]`, matches(`^one two three$`)},
		{"gbnf", `"structured_outputs":{"grammar":"root ::= \"select \" col (\", \" col)* # list\ncol ::= [a-c]{2} | \"(\" root \")\""}`, matches(`^select [a-c(]`)},
		{"lark", `"guided_grammar":"start: NUM (\"+\" NUM)~2 [\"!\"]\nNUM: /[0-9]{3}/"`, matches(`^\d{3}\+\d{3}\+\d{3}!?$`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := chat(t, client, s, `{"n":8,"messages":[{"role":"user","content":"x"}],`+c.fields+`}`)
			for _, one := range a.Choices {
				if !c.ok(one.Message.Content) || one.Finish != "stop" && c.name != "filled" {
					t.Errorf("%q (%s) does not conform", one.Message.Content, one.Finish)
				}
			}
		})
	}
	if a := chat(t, client, s, `{"max_tokens":2,"messages":[{"role":"user","content":"x"}],"guided_choice":["a long choice"]}`); a.Choices[0].Message.Content != "a long c" ||
		a.Choices[0].Finish != "length" {
		t.Errorf("cut after two pieces of four bytes: %+v", a.Choices)
	}
}

// conforms says by the validator whether a text is JSON of a schema.
func conforms(t *testing.T, schema string) func(string) bool {
	t.Helper()
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("s", doc); err != nil {
		t.Fatal(err)
	}
	sch := c.MustCompile("s")
	return func(text string) bool {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		return err == nil && sch.Validate(v) == nil
	}
}

// Tools are called when they must be, or when a user asks in so many words.
func TestTools(t *testing.T) {
	s, client := started(t, instantConfig())
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}},{"type":"function","function":{"name":"g"}}]`
	for _, c := range []struct{ text, choice, want string }{
		{"x", `"required"`, "f"}, {"x", `"auto"`, ""}, {"x", `"none"`, ""}, {"please call g", `"auto"`, "g"}, {"please call g", `"none"`, ""},
		{"x", `{"type":"function","function":{"name":"g"}}`, "g"}, {"x", `null`, ""},
	} {
		a := chat(t, client, s, `{`+tools+`,"tool_choice":`+c.choice+`,"messages":[{"role":"user","content":"`+c.text+`"}]}`)
		got := ""
		for _, call := range a.Choices[0].Message.ToolCalls {
			got = call.Function.Name
			if !json.Valid([]byte(call.Function.Arguments)) || a.Choices[0].Finish != "tool_calls" {
				t.Errorf("%+v", a.Choices[0])
			}
		}
		if got != c.want {
			t.Errorf("%q with %s: called %q, want %q", c.text, c.choice, got, c.want)
		}
	}
}

// A response goes on from the one before: its conversation is the prompt.
func TestPreviousResponse(t *testing.T) {
	s, client := started(t, instantConfig())
	type answer struct {
		ID     string
		Status string
		Usage  struct {
			Input int `json:"input_tokens"`
		}
	}
	ask := func(body string) (a answer, status int) {
		resp, text := post(t, client, s.URL()+"/v1/responses", body)
		_ = json.Unmarshal([]byte(text), &a)
		return a, resp.StatusCode
	}
	one, _ := ask(`{"input":"a b c","max_output_tokens":5,"instructions":"be brief"}`)
	two, status := ask(`{"input":"d","max_output_tokens":5,"store":false,"previous_response_id":"` + one.ID + `"}`)
	if one.Usage.Input != 8+2+3 || two.Usage.Input != 8+3+5+1 || status != 200 || one.Status != "incomplete" {
		t.Errorf("%+v, then %+v (%d)", one, two, status)
	}
	for _, id := range []string{two.ID, "resp_x"} {
		if _, status := ask(`{"input":"d","previous_response_id":"` + id + `"}`); status != 404 {
			t.Errorf("response %s that is not stored: status %d", id, status)
		}
	}
}

// The store forgets the oldest beyond its bounds.
func TestStoreIsBounded(t *testing.T) {
	g := &generation{}
	s := &Server{}
	for i := range maxResponses + 10 {
		g.id, g.history = fmt.Sprint(i), []openai.Message{{Role: "user", Content: strings.Repeat("x", 128<<10)}}
		s.keep(g, nil, nil)
	}
	if n := len(s.responses.byID); n > 64<<20/(128<<10) || n != len(s.responses.line) || s.responses.bytes > maxResponseBytes {
		t.Errorf("%d responses of %d bytes", n, s.responses.bytes)
	}
	if s.responses.get("0") != nil || s.responses.get(g.id) == nil {
		t.Error("the wrong ones were forgotten")
	}
}

// form posts a transcription.
func form(t *testing.T, client *http.Client, url string, fields map[string]string, file []byte) (int, string) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range fields {
		_ = w.WriteField(name, value)
	}
	if file != nil {
		f, _ := w.CreateFormFile("file", "a.wav")
		_, _ = f.Write(file)
	}
	w.Close()
	resp, err := client.Post(url+"/v1/audio/transcriptions", w.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// 2.5 words a second: 4 seconds are 10 words.
func TestTranscriptions(t *testing.T) {
	cfg := instantConfig()
	cfg.Adapters = []string{"a"}
	s, client := started(t, cfg)
	sound := wav(8000, 4)
	for _, c := range []struct {
		fields map[string]string
		file   []byte
		status int
		want   string
	}{
		{nil, sound, 200, `^\{"text":"(\w+ ){9}\w+","usage":\{"type":"duration","seconds":4\}\}$`},
		{map[string]string{"response_format": "text", "model": "sim"}, sound, 200, `^(\w+ ){9}\w+\n$`},
		{map[string]string{"response_format": "verbose_json", "language": "de"}, sound, 200, `^\{"duration":"4","language":"de","text":.*"tokens":\[(\d+,){9}\d+\]`},
		{map[string]string{"stream": "true", "stream_include_usage": "true", "max_completion_tokens": "2"}, sound, 200,
			`(?s)^data: \{"id":"trsc-.*"delta":\{"content":.*"finish_reason":"length".*"choices":\[\],"usage":\{"prompt_tokens":100,"total_tokens":102,.*data: \[DONE\]\n\n$`},
		{map[string]string{"response_format": "srt"}, sound, 400, "Currently only support response_format"},
		{map[string]string{"response_format": "verbose_json", "stream": "1"}, sound, 400, "verbose_json format doesn't support streaming"},
		{map[string]string{"temperature": "-1"}, sound, 400, `temperature must be non-negative, got -1\.0\.`},
		{map[string]string{"temperature": "hot"}, sound, 400, `expected a number`},
		{map[string]string{"stream_include_usage": "true"}, sound, 400, "Stream options can only"},
		{map[string]string{"model": "a"}, sound, 400, "LoRA"}, {map[string]string{"model": "b"}, sound, 404, "does not exist"},
		{nil, nil, 400, "file: Field required"},
	} {
		status, body := form(t, client, s.URL(), c.fields, c.file)
		if status != c.status || !regexp.MustCompile(c.want).MatchString(body) {
			t.Errorf("%v: %d %s", c.fields, status, body)
		}
	}
	resp, body := post(t, client, s.URL()+"/v1/audio/transcriptions", "{}")
	if resp.StatusCode != 415 {
		t.Errorf("JSON instead of a form: %s %s", resp.Status, body)
	}
}
