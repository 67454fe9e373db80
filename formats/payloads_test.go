package formats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrace/formats"
	"retrace/formats/formatstest"
	"retrace/record"
)

const payloadsSample = `{"timestamp": 0, "api": "chat", "body": {"model":"m","messages":[{"role":"user","content":"caf\u00e9"}],"max_completion_tokens":9}}
{"timestamp": 12.5, "session_id": "s", "body": {"prompt":[5,6,7], "max_tokens": 4.0 }}
{"delay": 3, "session_id": "s", "body": {"prompt":[5,6,7,8],"max_tokens":4}}
`

func TestPayloadsSuite(t *testing.T) {
	for name, sample := range map[string]string{
		"wrapped": payloadsSample,
		"bare":    "{\"model\":\"m\", \"prompt\": \"a\"}\n{ \"model\":\"m\",\"input\":\"b\"}\n",
		"batch":   `{"custom_id":"r-1","method":"POST","url":"/v1/embeddings","body":{"input":["a","b"],"model":"m"}}` + "\n" + `{"custom_id":"r-2","method":"POST","url":"/v1/responses","body":{"input":"a"}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			formatstest.Run(t, formatstest.Suite{
				Format: "payloads", Sample: []byte(sample), Rows: payloadRows,
				Bad: []byte(`{"timestamp":1,"body":{"hello":1}}`), Diff: formatstest.DiffJSONLines, Options: anyOrder,
			})
		})
	}
}

// payloadRows draws rows with and without a wrapper, of every API.
func payloadRows(t *rapid.T) []byte {
	bodies := oneOf(`{"messages":[],"model":"é"}`, `{"prompt":"hi","max_tokens":5.0,"x":{"b":[1, 2]}}`, `{"input":"x","max_output_tokens":3}`,
		`{"input":[1,2],"model":"m"}`, `{"query":"q","documents":["a"]}`, `{"inputs":"a","parameters":{"max_new_tokens":7}}`, `{"file":"data:audio/wav;base64,AAAA","model":"w"}`)
	fields := map[string]*rapid.Generator[string]{
		"timestamp": oneOf("0", "5.0", "1e2", "null", "7.25"), "delay": oneOf("0", "10.50", "null"),
		"session_id": oneOf(`"a"`, `"b"`, `""`, "null", "7", "7.0"), "api": oneOf("null", `"completions"`, `"chat"`),
		"custom_id": oneOf(`"\u00e9"`, `""`, "null"), "odd": oneOf("null", "[]", `{"a":1.0}`), "method": oneOf(`"POST"`),
		"url": oneOf(`"/v1/chat/completions"`, `"http://h/v1/rerank"`),
	}
	names := oneOf("timestamp", "delay", "session_id", "api", "custom_id", "odd", "method", "url")
	var text strings.Builder
	for i := range rapid.IntRange(1, 5).Draw(t, "rows") {
		body := bodies.Draw(t, "body")
		if i > 0 && rapid.Bool().Draw(t, "bare") {
			text.WriteString(body + "\n")
			continue
		}
		row := []string{`"body":` + body}
		for _, name := range rapid.SliceOfDistinct(names, rapid.ID[string]).Draw(t, "fields") {
			value := fields[name].Draw(t, name)
			if name == "delay" && i == 0 {
				continue // a first turn needs a time
			}
			row = append(row, fmt.Sprintf("%q: %s", name, value))
		}
		if !strings.Contains(strings.Join(row, ","), `"timestamp"`) { // a session's first turn too
			row = append(row, `"timestamp": `+oneOf("0", "3.50").Draw(t, "time"))
		} else {
			for k := range row {
				row[k] = strings.Replace(row[k], `"timestamp": null`, `"timestamp": 2`, 1)
			}
		}
		text.WriteString("{" + strings.Join(rapid.Permutation(row).Draw(t, "order"), ", ") + "}\n")
	}
	return []byte(text.String())
}

// payloadRequests reads a text as one file.
func payloadRequests(t *testing.T, text string, o formats.Options) ([]record.Request, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := openAll(t, []string{path}, o)
	if err != nil {
		return nil, err
	}
	return got.reqs, nil
}

func TestPayloadsFields(t *testing.T) {
	reqs, err := payloadRequests(t, payloadsSample, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := reqs[0]
	if r.API != "chat" || r.Model != "m" || r.OutputTokens != 9 || r.Arrival != 0 ||
		string(r.Body) != `{"model":"m","messages":[{"role":"user","content":"caf\u00e9"}],"max_completion_tokens":9}` {
		t.Errorf("%+v, body %s", r, r.Body)
	}
	if r = reqs[1]; r.API != "completions" || r.InputTokens != 3 || r.OutputTokens != 4 || r.Arrival != 12500*time.Microsecond || r.Session != "s" || r.Turn != 1 {
		t.Errorf("%+v", r)
	}
	if r = reqs[2]; r.Delay != 3*time.Millisecond || r.Arrival != record.NoTime || r.Turn != 2 || r.Increment {
		t.Errorf("%+v", r)
	}
}

// Which API a body is of.
func TestPayloadsTellTheAPI(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","messages":[]}`:                           "chat",
		`{"model":"m","prompt":"x"}`:                            "completions",
		`{"model":"m","input":"x","max_output_tokens":3}`:       "responses",
		`{"model":"m","input":[{"role":"user","content":""}]}`:  "responses",
		`{"model":"m","input":"x","stream":true}`:               "responses",
		`{"model":"m","input":["x","y"]}`:                       "embeddings",
		`{"model":"m","input":[1,2],"encoding_format":"float"}`: "embeddings",
		`{"query":"q","documents":["a","b"]}`:                   "rerank",
		`{"inputs":"x","parameters":{}}`:                        "invocations",
		`{"model":"m","file":"data:audio/wav;base64,AAAA"}`:     "transcriptions",
	} {
		reqs, err := payloadRequests(t, body+"\n", formats.Options{})
		if err != nil || len(reqs) != 1 || reqs[0].API != want || reqs[0].Arrival != 0 {
			t.Errorf("%s: %v, %+v; want %s", body, err, reqs, want)
		}
	}
}

// What other formats are made of stays theirs.
func TestPayloadsStealNothing(t *testing.T) {
	for row, want := range map[string]string{
		`{"messages":[{"role":"user","content":"x"}],"output_length":5}`:     "mooncake",
		`{"messages":[{"role":"user","content":"x"}]}`:                       "mooncake",
		`{"timestamp":1,"messages":[],"model":"m"}`:                          "mooncake",
		`{"timestamp":1,"payload":{"messages":[]}}`:                          "mooncake",
		`{"timestamp":1,"text_input":"x","output_length":2}`:                 "mooncake",
		`{"captureData":{"endpointInput":{"data":"{}"}},"eventMetadata":{}}`: "sagemaker",
		`{"retrace":"requests/1"}`:                                           "jsonl",
		`{"timestamp":1,"api":"chat","body":{"messages":[]}}`:                "payloads",
	} {
		f, err := formats.Detect(formats.NewHead([]byte(row+"\n"), true))
		if err != nil || f.Name != want {
			t.Errorf("%s: %v, %v; want %s", row, f, err, want)
		}
	}
}

func TestPayloadsBadRows(t *testing.T) {
	for row, want := range map[string]string{
		`{"timestamp":0,"api":"chats","body":{"messages":[]}}`:      `field "api"`,
		`{"timestamp":-1,"body":{"prompt":"x"}}`:                    `field "timestamp"`,
		`{"timestamp":0,"url":"/v2/nothing","body":{"prompt":"x"}}`: `field "url"`,
		`{"timestamp":0,"session_id":[1],"body":{"prompt":"x"}}`:    `field "session_id"`,
		`{"timestamp":0,"body":{"prompt":"x","prompt":"y"}}`:        "prompt",
		`{"timestamp":0,"body":{"messages":"none"}}`:                `field "body"`,
		`{"delay":5,"session_id":"s","body":{"prompt":"x"}}`:        "a time",
		`{"timestamp":0,"body":{"prompt":"x"}`:                      "line 1",
		`{"timestamp":0,"api":"chat","body":"{}"}`:                  `field "body": found "{}", expected the request's body, a JSON object`,
		`{"timestamp":0,"api":"chat","body":null}`:                  `field "body": found null`,
	} {
		if reqs, err := payloadRequests(t, row+"\n", formats.Options{From: "payloads"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %+v; want %s", row, err, reqs, want)
		}
	}
}

// A body of several MiB in one line comes through, byte for byte (X02).
func TestPayloadsLargeBody(t *testing.T) {
	url := "data:image/png;base64," + strings.Repeat("QUJD", 2<<20)
	body := `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}]}`
	reqs, err := payloadRequests(t, body+"\n"+body+"\n", formats.Options{})
	if err != nil || len(reqs) != 2 || string(reqs[1].Body) != body {
		t.Errorf("%v, %d requests", err, len(reqs))
	}
}
