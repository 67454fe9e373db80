package replay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"retrace/openai"
	"retrace/record"
)

// everywhere answers at every API.
func everywhere(h http.HandlerFunc) http.Handler {
	mux := answers(h).(*http.ServeMux)
	for _, api := range openai.APIs() {
		if api != openai.Completions && api != openai.Chat {
			mux.HandleFunc("POST "+api.Path(), h)
		}
	}
	return mux
}

// cutOff closes the connection within the answer.
func cutOff(start string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"+start)
		_ = c.Close()
	}
}

// named is an event of the responses API.
func named(kind, rest string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "}\n\n"
}

// frame of an AWS event stream with one header of each needed.
func awsFrame(payload string, headers ...string) string {
	var head []byte
	for i := 0; i+1 < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = append(binary.BigEndian.AppendUint16(append(head, 7), uint16(len(headers[i+1]))), headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, head...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

func awsPart(payload string) string {
	return awsFrame(payload, ":message-type", "event", ":event-type", "PayloadPart")
}

const (
	tgiToken = `{"token":{"id":7,"text":"A","special":false},"generated_text":null,"details":null}`
	tgiLast  = `{"token":{"id":2,"text":"B","special":false},"generated_text":"AB","details":{"finish_reason":"length","generated_tokens":2,"input_length":4}}`
)

var responseEnd = named("response.completed", `,"response":{"object":"response","status":"completed","usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":11}}`)

// apiCases are a body for an API, an answer to it, and what is made of that.
var apiCases = []struct {
	name, api, body string
	answer          http.HandlerFunc
	class           string // "" for completed
	streamed        bool   // has a first output
	counts          [4]int64
	text            string // a part of the sentence
}{
	{"responses", "responses", `{"input":"x"}`, scripted(step{0, named("response.created", `,"response":{"status":"in_progress"}`) +
		named("response.reasoning_text.delta", `,"delta":"hm"`) + named("response.output_text.delta", `,"delta":"A"`) + responseEnd}), "", true, [4]int64{9, 2, 4, 1}, ""},
	{"responses, cut", "responses", `{"input":"x"}`, scripted(step{0, named("response.output_text.delta", `,"delta":"A"`)}), record.ClassTruncated, true, [4]int64{-1, -1, -1, -1}, "response.completed"},
	{"responses, failed", "responses", `{"input":"x"}`, scripted(step{0, named("response.failed", `,"response":{"status":"failed","error":{"message":"engine died"}}`)}),
		record.ClassStreamError, false, [4]int64{-1, -1, -1, -1}, "engine died"},
	{"responses, whole", "responses", `{"input":"x","stream":false}`, typed("application/json", `{"object":"response","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":1}}`),
		"", false, [4]int64{3, 1, -1, -1}, ""},
	{"responses, a chat instead", "responses", `{"input":"x"}`, scripted(step{0, word + event("", "stop") + done}), record.ClassBadResponse, false, [4]int64{-1, -1, -1, -1}, "found a completion"},
	{"embeddings", "embeddings", `{"input":["a","b"]}`, typed("application/json", `{"object":"list","data":[{"index":0,"embedding":[0.5]},{"index":1,"embedding":[0.5]}],"usage":{"prompt_tokens":4,"total_tokens":4,"completion_tokens":0}}`),
		"", false, [4]int64{4, 0, -1, -1}, ""},
	{"embeddings, none", "embeddings", `{"input":"a"}`, typed("application/json", `{"object":"list","data":[]}`), record.ClassBadResponse, false, [4]int64{-1, -1, -1, -1}, "data"},
	{"embeddings, an error", "embeddings", `{"input":"a"}`, typed("application/json", `{"error":{"message":"no"}}`), record.ClassStreamError, false, [4]int64{-1, -1, -1, -1}, "no"},
	{"embeddings, cut", "embeddings", `{"input":"a"}`, cutOff(`{"data":[`), record.ClassTruncated, false, [4]int64{-1, -1, -1, -1}, ""},
	{"rerank", "rerank", `{"query":"q","documents":["a"]}`, typed("application/json", `{"results":[{"index":0,"relevance_score":0.25}],"usage":{"prompt_tokens":6,"total_tokens":6}}`),
		"", false, [4]int64{6, -1, -1, -1}, ""},
	{"rerank, HTML", "rerank", `{"query":"q","documents":["a"]}`, typed("text/html", html), record.ClassBadResponse, false, [4]int64{-1, -1, -1, -1}, "neither"},
	{"transcription", "transcriptions", `{"file":"data:audio/wav;base64,AAAA","stream":false}`, typed("application/json", `{"text":"hi","usage":{"type":"duration","seconds":1}}`), "", false, [4]int64{-1, -1, -1, -1}, ""},
	{"transcription as text", "transcriptions", `{"file":"data:audio/wav;base64,AAAA","response_format":"text","stream":false}`, typed("text/plain; charset=utf-8", "data of a speech\n"), "", false, [4]int64{-1, -1, -1, -1}, ""},
	{"transcription as subtitles", "transcriptions", `{"file":"data:audio/wav;base64,AAAA","stream":false}`, typed("text/vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\nhi\n"), "", false, [4]int64{-1, -1, -1, -1}, ""},
	{"transcription, a login page", "transcriptions", `{"file":"data:audio/wav;base64,AAAA"}`, typed("text/plain", html), record.ClassBadResponse, false, [4]int64{-1, -1, -1, -1}, "neither"},
	{"transcription streamed", "transcriptions", `{"file":"data:audio/wav;base64,AAAA"}`, scripted(step{0, "data: {\"object\":\"transcription.chunk\",\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n" + usage(8, 1) + done}),
		"", true, [4]int64{8, 1, -1, -1}, ""},
	{"TGI", "invocations", `{"inputs":"x"}`, typed("application/json", `[{"generated_text":"AB","details":{"finish_reason":"length","generated_tokens":2}}]`), "", false, [4]int64{-1, 2, -1, -1}, ""},
	{"a container's chat", "invocations", `{"messages":[],"stream":true}`, scripted(step{0, word + event("", "stop") + done}), "", true, [4]int64{-1, -1, -1, -1}, ""},
	{"TGI's events", "invocations-response-stream", `{"inputs":"x"}`, scripted(step{0, "data:" + tgiToken + "\n\ndata:" + tgiLast + "\n\n"}), "", true, [4]int64{4, 2, -1, -1}, ""},
	{"LMI's lines", "invocations-response-stream", `{"inputs":"x"}`, typed("application/jsonlines", tgiToken+"\n"+tgiLast+"\n"), "", true, [4]int64{4, 2, -1, -1}, ""},
	{"LMI's lines, cut", "invocations-response-stream", `{"inputs":"x"}`, typed("application/jsonlines", tgiToken+"\n"+tgiToken+"\n{\"tok"), record.ClassTruncated, true, [4]int64{-1, -1, -1, -1}, ""},
	{"a whole answer in its place", "invocations-response-stream", `{"inputs":"x"}`, typed("application/json", "{\n \"generated_text\": \"AB\"\n}\n"), "", false, [4]int64{-1, -1, -1, -1}, "not as a stream"},
	{"an error over several lines", "invocations-response-stream", `{"inputs":"x"}`, typed("application/json", "{\n \"error\": \"no\"\n}\n"), record.ClassStreamError, false, [4]int64{-1, -1, -1, -1}, "no"},
	{"binary frames", "invocations-response-stream", `{"inputs":"x"}`, typed("application/vnd.amazon.eventstream", awsPart(tgiToken+"\n"+tgiLast[:9])+awsPart(tgiLast[9:]+"\n")), "", true, [4]int64{4, 2, -1, -1}, ""},
	{"binary frames of events", "invocations-response-stream", `{"inputs":"x"}`, typed("", awsPart("data: "+tgiToken+"\n\n")+awsPart("data: "+tgiLast+"\n\n")), "", true, [4]int64{4, 2, -1, -1}, ""},
	{"an exception in a frame", "invocations-response-stream", `{"inputs":"x"}`, typed("", awsPart(tgiToken+"\n"+tgiToken+"\n")+awsFrame(`{"Message":"model died"}`, ":message-type", "exception", ":exception-type", "ModelStreamError")),
		record.ClassStreamError, true, [4]int64{-1, -1, -1, -1}, "model died"},
	{"an exception first", "invocations-response-stream", `{"inputs":"x"}`, typed("", awsFrame(`no`, ":message-type", "exception", ":exception-type", "InternalStreamFailure")),
		record.ClassStreamError, false, [4]int64{-1, -1, -1, -1}, "InternalStreamFailure"},
	{"a broken frame", "invocations-response-stream", `{"inputs":"x"}`, typed("", awsPart(tgiToken+"\n"+tgiToken+"\n")+strings.Replace(awsPart("x"), "x", "y", 1)), record.ClassBadResponse, true, [4]int64{-1, -1, -1, -1}, "checksum"},
	{"half a frame", "invocations-response-stream", `{"inputs":"x"}`, typed("", awsPart(tgiToken+"\n"+tgiToken+"\n")+awsPart("xxxxxxxx")[:20]), record.ClassTruncated, true, [4]int64{-1, -1, -1, -1}, ""},
}

func TestEveryAPI(t *testing.T) {
	for _, c := range apiCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record.NewRequest()
				r.Arrival, r.API, r.Body = 0, c.api, []byte(c.body)
				var asked []string
				_, results := inBubble(t, everywhere(lastBody(&asked, c.answer)), []record.Request{r}, func(cfg *Config) { cfg.Prompt = Literal })
				res := results[0]
				if len(asked) != 1 || !strings.HasPrefix(asked[0], openai.API(c.api).Path()+" ") {
					t.Errorf("asked %q", asked)
				}
				state := record.Completed
				if c.class != "" {
					state = record.Failed
				}
				if res.State != state || res.Class != c.class || !strings.Contains(res.Error, c.text) {
					t.Errorf("%v %s %q; want %v %s %q", res.State, res.Class, res.Error, state, c.class, c.text)
				}
				if state == record.Completed && c.text == "" && res.Error != "" && !strings.Contains(res.Error, "[DONE]") {
					t.Errorf("note %q", res.Error)
				}
				if got := [4]int64{res.PromptTokens, res.CompletionTokens, res.CachedTokens, res.ReasoningTokens}; got != c.counts {
					t.Errorf("counts %v, want %v", got, c.counts)
				}
				if (res.FirstOutput != record.NoTime) != c.streamed || state == record.Completed && (res.LastOutput == record.NoTime || res.End < res.LastOutput) {
					t.Errorf("first output %v, last %v, end %v", res.FirstOutput, res.LastOutput, res.End)
				}
			})
		})
	}
}

// Generated requests of every API that has some.
func TestGeneratedBodies(t *testing.T) {
	r := record.NewRequest()
	r.Arrival, r.InputTokens, r.OutputTokens, r.Blocks = 0, 40, 7, []uint64{1, 2, 3}
	priority := int64(-2)
	r.Priority = &priority
	for _, c := range []struct {
		api    openai.API
		change func(*Config)
		has    string // separated by " and "
		lacks  string
	}{
		{openai.Responses, nil, `"input":" and "max_output_tokens":7 and "stream":true and "priority":-2`, "stream_options"},
		{openai.Responses, func(c *Config) { c.IgnoreEOS = true }, `"ignore_eos":true`, "min_tokens"},
		{openai.Embeddings, nil, `"input":[ and "model":"mock"`, "stream"},
		{openai.Embeddings, func(c *Config) { c.Prompt = Text; c.IgnoreEOS = true }, `"input":"`, "max_tokens"},
		{openai.Rerank, func(c *Config) { c.Requests.RerankDocuments = 3 }, `"query":" and "documents":["`, "_tokens"},
		{openai.Invocations, nil, `"inputs":" and "parameters":{"max_new_tokens":7,"details":true} and "stream":false`, "model"},
		{openai.InvocationsStream, nil, `"inputs":" and "stream":true`, "stream_options"},
		{openai.Completions, func(c *Config) { c.Requests.Stream = StreamNever }, `"stream":false and "priority":-2`, "stream_options"},
		{openai.Chat, func(c *Config) { c.Requests.LoRA = []string{"ada"} }, `"model":"ada"`, "mock"},
	} {
		t.Run(string(c.api), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				inBubble(t, everywhere(lastBody(&asked, scripted(step{0, word + done}))), []record.Request{r}, func(cfg *Config) {
					cfg.API, cfg.Header.BlockSize = c.api, 16
					if c.change != nil {
						c.change(cfg)
					}
				})
				path, body, _ := strings.Cut(asked[len(asked)-1], " ")
				if path != c.api.Path() || !json.Valid([]byte(body)) {
					t.Fatalf("asked %s %s", path, body)
				}
				for _, s := range strings.Split(c.has, " and ") {
					if !strings.Contains(body, s) {
						t.Errorf("body %s lacks %s", body, s)
					}
				}
				if strings.Contains(body, c.lacks) {
					t.Errorf("body %s has %s", body, c.lacks)
				}
			})
		})
	}
}

// A rerank request has as many tokens as its prompt where the query is read
// with each document.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		tokens, documents, query int
		docs                     []int
	}{
		{100, 1, 16, []int{84}}, {100, 3, 16, []int{18, 17, 17}}, {10, 3, 1, []int{3, 2, 2}}, {7, 9, 1, []int{2, 1, 1}},
		{2, 5, 1, []int{1}}, {1, 1, 1, []int{1}}, {0, 1, 1, []int{1}},
	} {
		query, docs := split(c.tokens, c.documents)
		if query != c.query || !slices.Equal(docs, c.docs) {
			t.Errorf("%d tokens, %d documents: query %d, documents %v", c.tokens, c.documents, query, docs)
		}
	}
}

// Whether a body asks for a stream.
func TestStreamMode(t *testing.T) {
	for _, c := range []struct {
		api, body string
		mode      StreamMode
		want      string // of "stream" and "stream_options"
	}{
		{"chat", `{}`, StreamOwn, "true usage"}, {"chat", `{"stream":false}`, StreamOwn, "false"}, {"chat", `{"stream":true}`, StreamOwn, "true usage"},
		{"chat", `{"stream":null}`, StreamOwn, "true usage"}, {"chat", `{"stream":false}`, StreamAlways, "true usage"},
		{"chat", `{}`, StreamNever, ""}, {"chat", `{"stream":true,"stream_options":{"include_usage":true}}`, StreamNever, "false"},
		{"chat", `{"stream_options":{"continuous_usage_stats":true}}`, StreamOwn, "true continuous usage"},
		{"responses", `{}`, StreamOwn, "true"}, {"embeddings", `{}`, StreamAlways, ""},
		{"invocations", `{"inputs":"x"}`, StreamOwn, ""}, {"invocations", `{"prompt":"x","stream":true}`, StreamOwn, "true usage"},
		{"invocations", `{"prompt":"x"}`, StreamAlways, "true usage"}, {"invocations-response-stream", `{"inputs":"x"}`, StreamOwn, "true"},
	} {
		cfg := Config{API: openai.Completions, Requests: RequestConfig{Stream: c.mode}}
		b := &bodies{cfg: &cfg}
		got, err := b.append(nil, &job{api: openai.API(c.api), source: []byte(c.body), output: record.Unknown})
		var sent struct {
			Stream  *bool
			Options *struct {
				Usage bool `json:"include_usage"`
				Each  bool `json:"continuous_usage_stats"`
			} `json:"stream_options"`
		}
		if err := json.Unmarshal(got, &sent); err != nil {
			t.Fatal(err)
		}
		text := ""
		if sent.Stream != nil {
			text = fmt.Sprint(*sent.Stream)
		}
		if sent.Options != nil && sent.Options.Each {
			text += " continuous"
		}
		if sent.Options != nil && sent.Options.Usage {
			text += " usage"
		}
		if err != nil || text != c.want {
			t.Errorf("%s %s %s: %q in %s, %v; want %q", c.api, c.body, c.mode, text, got, err, c.want)
		}
	}
}

// A trace's own limits and parameters: nested ones too.
// Servers refuse to stream transcripts of some formats.
func TestStreamOfTranscripts(t *testing.T) {
	for _, c := range []struct {
		body string
		mode StreamMode
		want bool
	}{
		{`{"file":"data:,x"}`, StreamOwn, true}, {`{"file":"data:,x","response_format":"text"}`, StreamOwn, true},
		{`{"file":"data:,x","response_format":"verbose_json"}`, StreamOwn, false}, {`{"file":"data:,x","response_format":"srt"}`, StreamOwn, false},
		{`{"file":"data:,x","response_format":"vtt"}`, StreamOwn, false}, {`{"file":"data:,x","response_format":"vtt","stream":true}`, StreamOwn, true},
		{`{"file":"data:,x","response_format":"vtt"}`, StreamAlways, true},
	} {
		cfg := Config{Requests: RequestConfig{Stream: c.mode}}
		j := &job{api: openai.Transcriptions, source: []byte(c.body), output: record.Unknown}
		sent, err := (&bodies{cfg: &cfg}).append(nil, j)
		if err != nil || j.streams != c.want || bytes.Contains(sent, []byte(`name="stream"`)) != c.want {
			t.Errorf("%s %s: streams %v, %v in %s; want %v", c.body, c.mode, j.streams, err, sent, c.want)
		}
	}
}

func TestInvocationLimits(t *testing.T) {
	body := []byte(`{"inputs":"x", "parameters": {"max_new_tokens":9,"top_p":0.50}}`)
	if n := bodyLimit(openai.Invocations, body); n != 9 {
		t.Errorf("limit %d", n)
	}
	if n := bodyLimit(openai.Responses, []byte(`{"input":"x","max_output_tokens":4}`)); n != 4 {
		t.Errorf("limit %d", n)
	}
	cfg := Config{MaxOutputTokens: 3, Requests: RequestConfig{Stream: StreamOwn}}
	b := &bodies{cfg: &cfg}
	got, err := b.append(nil, &job{api: openai.Invocations, source: body, output: 3})
	if want := `{"inputs":"x", "parameters": {"max_new_tokens":3,"top_p":0.50}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// R25: a server without priority scheduling names no field, but the word.
func TestPriorityIsLearnt(t *testing.T) {
	asked := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if asked++; bytes.Contains(b, []byte(`"priority"`)) {
			status(400, `{"error":{"message":"Got priority 1 but Priority scheduling is not enabled."}}`)(w, r)
			return
		}
		scripted(step{0, word + done})(w, r)
	})
	reqs := every(100*ms, 2)
	one := int64(1)
	reqs[0].Priority, reqs[1].Priority = &one, &one
	out, results := over(t, url, reqs, func(c *Config) { c.MaxConcurrency = 1 })
	if out.Completed != 2 || asked != 3 || results[0].Attempts != 2 || len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "priority") {
		t.Errorf("%+v, asked %d", out, asked)
	}
}

func TestMentions(t *testing.T) {
	for message, want := range map[string]bool{
		"unknown field priority": true, "Priority scheduling is not enabled": true, `{"loc":["body","priority"]}`: true,
		"prioritysystem": false, "low_priority": false, "": false, "xpriority priority": true,
	} {
		if mentions(message, "priority") != want {
			t.Errorf("%q: want %v", message, want)
		}
	}
}

// Adapters are drawn by the seed and the session alone.
func TestLoRA(t *testing.T) {
	names := []string{"a", "b", "c"}
	b := &bodies{cfg: &Config{Requests: RequestConfig{LoRA: names}}}
	draw := func(seed int64) (list []string, counts map[string]int) {
		counts = map[string]int{}
		for i := range 300 {
			r := record.NewRequest()
			r.Row, r.Session = int64(i), fmt.Sprint("s", i/2)
			list = append(list, b.chooseModel(&r, seed))
			counts[list[i]]++
		}
		return list, counts
	}
	list, counts := draw(0)
	again, _ := draw(0)
	other, _ := draw(1)
	if !reflect.DeepEqual(list, again) || reflect.DeepEqual(list, other) || len(counts) != 3 {
		t.Errorf("%v", counts)
	}
	for i := 0; i < len(list); i += 2 {
		if list[i] != list[i+1] {
			t.Errorf("session %d asks for %s and %s", i/2, list[i], list[i+1])
		}
	}
}

func TestModelFromTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reqs := every(ms, 3)
		reqs[0].API, reqs[0].Body, reqs[0].Model = "chat", []byte(`{"model":"own","messages":[]}`), "own"
		reqs[1].API, reqs[1].Body, reqs[1].Model = "chat", []byte(`{"messages":[]}`), "row"
		reqs[2].API, reqs[2].Body = "chat", []byte(`{"messages":[]}`)
		var asked []string
		_, results := inBubble(t, answers(lastBody(&asked, scripted(step{0, word + done}))), reqs, func(c *Config) {
			c.Prompt, c.Requests.ModelFromTrace = Literal, true
		})
		slices.Sort(asked)
		for i, want := range []string{"own", "row", "mock"} {
			if !strings.Contains(strings.Join(asked, "\n"), `"model":"`+want+`"`) || results[i].Model != want {
				t.Errorf("request %d: asked %q, model %s; want %s", i, asked, results[i].Model, want)
			}
		}
	})
}

// The form of a transcription: RFC 7578, the same bytes every time.
func TestForm(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.wav"), []byte("RIFF"), 0o600); err != nil {
		t.Fatal(err)
	}
	media, err := openMediaDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer media.close()
	b := &bodies{media: media}
	for _, c := range []struct{ body, name, kind, content string }{
		{`{"model":"w","file":"data:audio/wav;base64,UklGRg==","temperature":0.0,"language":null,"timestamp_granularities":["word","segment"],"stream":true}`, "audio.wav", "audio/wav", "RIFF"},
		{`{"model":"w","file":"a.wav","temperature":0.0,"timestamp_granularities[]":["word","segment"],"stream":true}`, "a.wav", "audio/wav", "RIFF"},
		{`{"model":"w","file":"file:a.wav","temperature":0.0,"timestamp_granularities":["word","segment"],"stream":true}`, "a.wav", "audio/wav", "RIFF"},
		{`{"model":"w","file":"file://a.wav","temperature":0.0,"timestamp_granularities":["word","segment"],"stream":true}`, "a.wav", "audio/wav", "RIFF"},
		{`{"filename":"b\"\r\n.mp3","model":"w","file":"data:,R%49FF","temperature":0.0,"timestamp_granularities":["word","segment"],"stream":true}`, `b%22%0D%0A.mp3`, "text/plain", "RIFF"},
	} {
		form, err := b.appendForm(nil, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		_, params, _ := mime.ParseMediaType(formType)
		got, err := multipart.NewReader(bytes.NewReader(form), params["boundary"]).ReadForm(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{"model": {"w"}, "temperature": {"0.0"}, "timestamp_granularities[]": {"word", "segment"}, "stream": {"true"}}
		if !reflect.DeepEqual(got.Value, want) || len(got.File["file"]) != 1 {
			t.Fatalf("%s: form %+v", c.body, got)
		}
		file := got.File["file"][0]
		f, _ := file.Open()
		content, _ := io.ReadAll(f)
		if file.Filename != c.name || file.Header.Get("Content-Type") != c.kind || string(content) != c.content {
			t.Errorf("%s: file %q %s %q", c.body, file.Filename, file.Header.Get("Content-Type"), content)
		}
		if again, _ := b.appendForm(nil, []byte(c.body)); !bytes.Equal(form, again) {
			t.Error("another form the second time")
		}
	}
}

// What is not read: nothing beyond the directory, nothing without one.
func TestFormRefusals(t *testing.T) {
	media, err := openMediaDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer media.close()
	for _, c := range []struct {
		media      *mediaDir
		file, want string
	}{
		{nil, `"/etc/hostname"`, "no directory of media"}, {media, `"/etc/hostname"`, "read media"}, {media, `"../../etc/hostname"`, "read media"},
		{media, `"file:///etc/hostname"`, "read media"}, {media, `"file:../x"`, "read media"},
		{media, `"none.wav"`, "read media"}, {media, `7`, "want a data URL"}, {media, `""`, "want a data URL"},
		{media, `"data:audio/wav;base64"`, "comma"}, {media, `"data:audio/wav;base64,%%"`, "decode data URL"},
		{media, `"data:,` + formBoundary + `"`, "boundary"},
	} {
		b := &bodies{media: c.media}
		if _, err := b.appendForm(nil, []byte(`{"file":`+c.file+`}`)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.file, err, c.want)
		}
	}
	if _, err := (&bodies{}).appendForm(nil, []byte(`{"model":"m"}`)); err == nil {
		t.Error("a form without a file")
	}
}

// A body that cannot be made is not sent, and says why.
func TestMediaThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.NewRequest()
		r.Arrival, r.API, r.Body = 0, "transcriptions", []byte(`{"file":"x.wav"}`)
		out, results := inBubble(t, everywhere(scripted()), []record.Request{r}, func(c *Config) { c.Prompt = Literal })
		if out.NotSent != 1 || !strings.Contains(results[0].Reason, "no directory of media") {
			t.Errorf("%+v", results[0])
		}
	})
}

// R18: what exceeds the context, by each policy; lengths are never negative.
func TestContextPolicies(t *testing.T) {
	for _, c := range []struct {
		policy        ContextPolicy
		input, output int64
		wantIn        int64 // 0: not sent
		wantOut       int64
	}{
		{ContextSend, 950, 100, 950, 100}, {ContextSkip, 950, 100, 0, 0}, {ContextSkip, 900, 100, 900, 100},
		{ContextTrimOutput, 950, 100, 950, 50}, {ContextTrimOutput, 999, 100, 999, 1}, {ContextTrimOutput, 1000, 100, 0, 0}, {ContextTrimOutput, 5000, 1, 0, 0},
		{ContextTrimPrompt, 950, 100, 900, 100}, {ContextTrimPrompt, 5000, 999, 1, 999}, {ContextTrimPrompt, 10, 1000, 0, 0}, {ContextTrimPrompt, 10, 5000, 0, 0},
		{ContextTrimPrompt, 1000, record.Unknown, 999, record.Unknown}, {ContextTrimOutput, 1000, record.Unknown, 0, 0},
	} {
		t.Run(fmt.Sprint(c.policy, c.input, c.output), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reqs := every(0, 1)
				reqs[0].InputTokens, reqs[0].OutputTokens = c.input, c.output
				var asked []string
				out, results := inBubble(t, answers(lastBody(&asked, scripted(step{0, word + done}))), reqs, func(cfg *Config) {
					cfg.Requests.ContextLimit, cfg.Requests.OverContext = 1000, c.policy
				})
				res := results[0]
				if c.wantIn == 0 {
					if out.NotSent != 1 || res.Reason != reasonContext || len(asked) != 0 {
						t.Errorf("%v %q", res.State, res.Reason)
					}
					return
				}
				var body openai.CompletionRequest
				_, text, _ := strings.Cut(asked[0], " ")
				if err := openai.ParseCompletion([]byte(text), &body); err != nil {
					t.Fatal(err)
				}
				if res.WantedInput != c.wantIn || res.WantedOutput != c.wantOut || int64(len(body.Prompts[0].Tokens)) != c.wantIn || body.MaxTokens != c.wantOut {
					t.Errorf("wanted %d and %d, sent %d and %d", res.WantedInput, res.WantedOutput, len(body.Prompts[0].Tokens), body.MaxTokens)
				}
			})
		})
	}
}

// The context is the server's where no flag gives it, and of a body the output
// can be trimmed.
func TestContextOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"data":[{"id":"m","max_model_len":64}]}`)
		})
		var asked []string
		mux.HandleFunc("POST /v1/chat/completions", lastBody(&asked, scripted(step{0, word + done})))
		r := record.NewRequest()
		r.Arrival, r.API, r.Body, r.InputTokens = 0, "chat", []byte(`{"messages":[],"max_completion_tokens":50}`), 40
		out, results := inBubble(t, mux, []record.Request{r}, func(c *Config) { c.Prompt, c.Requests.OverContext = Literal, ContextTrimOutput })
		if out.Target.ContextLimit != 64 || len(asked) != 1 || !strings.Contains(asked[0], `"max_completion_tokens":24`) || results[0].WantedOutput != 24 {
			t.Errorf("%+v, asked %q", out.Target, asked)
		}
		if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "1 request over the model's context") {
			t.Errorf("notes %q", out.Notes)
		}
	})
}

// The server's own times and the media's tokens reach the result.
func TestServerTimesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"multimodal_tokens":{"image":5}}},` +
			`"metrics":{"queue_time_ms":1.5,"time_to_first_token_ms":20,"generation_time_ms":null}}` + "\n\n"
		_, results := inBubble(t, answers(scripted(step{0, word + last + done})), every(0, 1), nil)
		r := results[0]
		if r.ServerQueue != 1500*ms/1000 || r.ServerPrefill != 20*ms || r.ServerDecode != record.NoTime || r.MediaTokens != 5 {
			t.Errorf("%v %v %v, media %d", r.ServerQueue, r.ServerPrefill, r.ServerDecode, r.MediaTokens)
		}
	})
}

// What requests say of themselves, and that the user's header wins.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		api          openai.API
		own          http.Header
		accept, kind string
	}{
		{openai.Chat, nil, "text/event-stream, application/json", "application/json"},
		{openai.Embeddings, nil, "application/json", "application/json"},
		{openai.Transcriptions, nil, "text/event-stream, application/json, text/*", formType},
		{openai.InvocationsStream, nil, "*/*", "application/json"},
		{openai.Embeddings, http.Header{"Accept": {"x/y"}}, "x/y", "application/json"},
		{openai.Transcriptions, http.Header{"Content-Type": {"x/y"}}, "text/event-stream, application/json, text/*", formType},
	} {
		cl, err := newClient(&Config{URLs: []string{"http://localhost"}, Client: ClientConfig{Headers: c.own}}, newClock())
		if err != nil {
			t.Fatal(err)
		}
		h := cl.servers[0].posts[c.api].header
		if h.Get("Accept") != c.accept || h.Get("Content-Type") != c.kind {
			t.Errorf("%s: %q %q", c.api, h.Get("Accept"), h.Get("Content-Type"))
		}
		cl.close()
	}
}

// Of several answers each is to have the wanted length.
func TestWantedOutputOfSeveralAnswers(t *testing.T) {
	for _, c := range []struct {
		api         openai.API
		body, extra string
		want        int64
	}{
		{openai.Chat, `{"n":3}`, "", 6}, {openai.Chat, `{"n":3}`, `{"n":2}`, 4}, {openai.Chat, `{"n":1}`, "", 2},
		{openai.Chat, `{"n":"x"}`, "", 2}, {openai.Chat, `{}`, `{"n":2}`, 4},
		{openai.Completions, `{"prompt":["a","b"],"n":3}`, "", 12}, {openai.Completions, `{"prompt":["a","b","c"]}`, "", 6},
		{openai.Completions, `{"prompt":[[1],[2]]}`, "", 4}, {openai.Completions, `{"prompt":[1,2,3]}`, "", 2},
		{openai.Completions, `{"prompt":"a","n":2}`, "", 4}, {openai.Invocations, `{"prompt":["a","b"]}`, "", 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			reqs := every(0, 1)
			reqs[0].API, reqs[0].Body = string(c.api), []byte(c.body)
			_, results := inBubble(t, everywhere(scripted(step{0, word + done})), reqs, func(cfg *Config) { cfg.Prompt, cfg.Extra = Literal, []byte(c.extra) })
			if got := results[0].WantedOutput; got != c.want {
				t.Errorf("%s %s: wanted %d, want %d", c.body, c.extra, got, c.want)
			}
		})
	}
}

func TestDestination(t *testing.T) {
	for _, c := range []struct{ run, own, want openai.API }{
		{openai.Completions, openai.Chat, openai.Chat}, {openai.Chat, "", openai.Chat}, {openai.Chat, "strange", "strange"},
		{openai.Invocations, openai.Chat, openai.Invocations}, {openai.InvocationsStream, openai.Invocations, openai.InvocationsStream},
		{openai.Invocations, openai.Transcriptions, openai.Transcriptions}, {openai.Invocations, "strange", "strange"}, {openai.Invocations, "", openai.Invocations},
	} {
		if got := Destination(c.run, c.own); got != c.want {
			t.Errorf("%s in a run of %s: got %s, want %s", c.own, c.run, got, c.want)
		}
	}
}
