package formats

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retrace/record"
)

// captureText makes a capture row of two sides, "" for one that is missing.
func captureText(in, out, when string) string {
	var sides []string
	if in != "" {
		sides = append(sides, `"endpointInput":`+in)
	}
	if out != "" {
		sides = append(sides, `"endpointOutput":`+out)
	}
	return `{"captureData":{` + strings.Join(sides, ",") + `},"eventMetadata":{"eventId":"e-1","inferenceTime":"` + when +
		`"},"eventVersion":"0"}` + "\n"
}

// sideText is one side, its data encoded as said.
func sideText(mode, data, encoding string) string {
	if encoding == "BASE64" {
		data = base64.StdEncoding.EncodeToString([]byte(data))
	}
	return `{"observedContentType":"application/json","mode":"` + mode + `","data":` + string(AppendString(nil, data)) +
		`,"encoding":"` + encoding + `"}`
}

const someTime = "2025-02-03T04:05:06Z"

// Each side is decoded by its own encoding.
func TestSageMakerMixedEncodings(t *testing.T) {
	row := `{"captureData":{"endpointInput":{"observedContentType":"application/json","mode":"INPUT","data":"eyJpbnB1dHMiOiJoaSJ9","encoding":"BASE64"},"endpointOutput":{"observedContentType":"application/json","mode":"OUTPUT","data":"{\"generated_text\":\"yo\"}","encoding":"JSON"}},"eventMetadata":{"eventId":"e-1","inferenceTime":"2025-02-03T04:05:06Z"},"eventVersion":"0"}` + "\n"
	all, tr := importText(t, "c.jsonl", row)
	r, h := all[0], tr.Header
	if string(r.Body) != `{"inputs":"hi"}` || r.API != "invocations" || r.ID != "e-1" ||
		r.InputTokens != record.Unknown || r.OutputTokens != record.Unknown || r.Observed.OutputTokens != record.Unknown {
		t.Errorf("row: %+v", r)
	}
	// 2025-02-03T04:05:06Z is 1738555506 s after 1970 (date -u +%s).
	if !h.Wall || h.TimeBasis != "unknown" || h.Origin != 1738555506*time.Second || h.BlockSize != 0 || !h.PrefixSynthesised {
		t.Errorf("header: %+v", h)
	}
}

func TestSageMakerBodies(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":14,"completion_tokens":4,"total_tokens":18}`
	unknown := record.Unknown
	for _, c := range []struct {
		name, in, out string
		api, model    string
		input, wanted int64
		seen          int64
		failed        bool
	}{
		{"chat", `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":64}`, `{"choices":[],` + usage + `}`,
			"chat", "m", 14, 64, 4, false},
		{"chat, the newer limit first", `{"messages":[],"max_tokens":64,"max_completion_tokens":32}`, `{` + usage + `}`,
			"chat", "", 14, 32, 4, false},
		{"completions", `{"prompt":"hi","max_tokens":8}`, `{"object":"text_completion",` + usage + `}`,
			"completions", "", 14, 8, 4, false},
		{"a prompt of token ids", `{"prompt":[5,6,7]}`, ``, "completions", "", 3, unknown, unknown, false},
		{"several prompts of token ids", `{"prompt":[[5,6],[7]]}`, ``, "completions", "", 3, unknown, unknown, false},
		{"TGI", `{"inputs":"hi","parameters":{"max_new_tokens":20}}`, `[{"generated_text":"yo","details":{"generated_tokens":9}}]`,
			"invocations", "", unknown, 20, 9, false},
		{"LMI", `{"inputs":"hi","parameters":{"max_new_tokens":20}}`, `{"generated_text":"yo"}`,
			"invocations", "", unknown, 20, unknown, false},
		{"TGI stream", `{"inputs":"hi","stream":true}`, "data:{\"token\":{\"id\":1,\"text\":\"a\"},\"details\":null}\n\n" +
			"data:{\"token\":{\"id\":2,\"text\":\"b\"},\"generated_text\":\"ab\",\"details\":{\"generated_tokens\":2}}\n\n",
			"invocations", "", unknown, unknown, 2, false},
		{"JSON lines of tokens", `{"inputs":"hi"}`, "{\"token\":{\"id\":1}}\n{\"token\":{\"id\":2}}\n{\"token\":{\"id\":3}}\n",
			"invocations", "", unknown, unknown, 3, false},
		{"events with usage", `{"messages":[],"stream":true}`, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
			"chat", "", 7, unknown, 1, false},
		{"events without usage", `{"messages":[],"stream":true}`, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
			"chat", "", unknown, unknown, unknown, false},
		{"an error", `{"messages":[]}`, `{"object":"error","message":"too long","code":400}`, "chat", "", unknown, unknown, unknown, true},
		{"an error in a stream", `{"messages":[]}`, "data: {\"error\":{\"message\":\"x\"}}\n\n", "chat", "", unknown, unknown, unknown, true},
		{"CSV", "1,2\n3,4\n", "0.5\n", "", "", unknown, unknown, unknown, false},
		{"a batch of JSON lines", "{\"inputs\":\"a\"}\n{\"inputs\":\"b\"}\n", "{\"generated_text\":\"1\"}\n{\"generated_text\":\"2\"}\n",
			"", "", unknown, unknown, unknown, false},
		{"another shape", `{"instances":[1]}`, `{"predictions":[2]}`, "", "", unknown, unknown, unknown, false},
		{"keys in another case", `{"PROMPT":"hi","Messages":[]}`, `{"USAGE":{}}`, "", "", unknown, unknown, unknown, false},
		{"a limit spelt otherwise", `{"prompt":"hi","max_tokens":8.0}`, `{"usage":{"completion_tokens":4e0}}`, "completions", "", unknown, 8, 4, false},
		{"limits that are none", `{"prompt":"hi","max_tokens":null}`, `{"usage":{"prompt_tokens":-1,"completion_tokens":1.5}}`,
			"completions", "", unknown, unknown, unknown, false},
		{"broken", `{"prompt":`, `}{`, "", "", unknown, unknown, unknown, false},
	} {
		for _, encoding := range []string{"JSON", "CSV", "BASE64"} {
			t.Run(c.name+" as "+encoding, func(t *testing.T) {
				out := ""
				if c.out != "" {
					out = sideText("OUTPUT", c.out, encoding)
				}
				row := captureText(sideText("INPUT", c.in, encoding), out, someTime)
				path := writeInput(t, "c.jsonl", row)
				all, _ := importAll(t, []string{path}, Options{})
				r := all[0]
				if r.API != c.api || r.Model != c.model || r.InputTokens != c.input || r.OutputTokens != c.wanted ||
					r.Observed.OutputTokens != c.seen || r.Observed.Failed != c.failed {
					t.Errorf("got %+v", r)
				}
				if want := c.in; c.api != "" && string(r.Body) != want {
					t.Errorf("body %s, want %s", r.Body, want)
				}
				got, _ := through(t, []string{path}, Options{}, "sagemaker")
				sameJSONLines(t, got, row)
			})
		}
	}
}

// The bytes of a body are those that were captured, white space and all.
func TestSageMakerBodyIsRaw(t *testing.T) {
	body := "{ \"prompt\" : \"h\\u0069\\n\",\r\n\t\"max_tokens\":5.0, \"x\":1e2 }"
	for _, encoding := range []string{"JSON", "BASE64"} {
		all, _ := importText(t, "c.jsonl", captureText(sideText("INPUT", body, encoding), "", someTime))
		if string(all[0].Body) != body {
			t.Errorf("%s: body %q", encoding, all[0].Body)
		}
	}
}

// Deeply nested bodies are bytes like others.
func TestSageMakerNestedBody(t *testing.T) {
	body := `{"messages":[],"tools":` + strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60) + "}"
	row := captureText(sideText("INPUT", body, "JSON"), "", someTime)
	got, _ := through(t, []string{writeInput(t, "c.jsonl", row)}, Options{}, "sagemaker")
	sameJSONLines(t, got, row)
}

// A row without a request is skipped and counted, whatever --bad-lines says.
func TestSageMakerOneSide(t *testing.T) {
	text := captureText(sideText("INPUT", `{"prompt":"hi","max_tokens":3}`, "JSON"), "", someTime) +
		captureText("", sideText("OUTPUT", `{"usage":{"prompt_tokens":3}}`, "JSON"), someTime)
	for _, policy := range []Policy{Fail, Skip} {
		all, tr := importAll(t, []string{writeInput(t, "c.jsonl", text)}, Options{BadLines: policy})
		r := tr.Report()
		if len(all) != 1 || all[0].OutputTokens != 3 || all[0].Observed.OutputTokens != record.Unknown {
			t.Errorf("%s: %+v", policy, all)
		}
		if r.Read != 2 || r.Kept != 1 || r.SkippedRows() != 1 || !r.Lossy() {
			t.Errorf("%s: report %+v", policy, r)
		}
		for reason := range r.Skipped {
			wantIn(t, reason, "endpointInput", "only the answer was captured")
		}
	}
}

// Hour folders: recursive, variants kept apart, by time, then path, then row.
func TestSageMakerHourFolders(t *testing.T) {
	root := t.TempDir()
	row := func(id, when string) string {
		return strings.Replace(captureText(sideText("INPUT", `{"prompt":"hi"}`, "JSON"), "", when), "e-1", id, 1)
	}
	for name, text := range map[string]string{
		"ep/v1/2025/02/03/04/b.jsonl":   row("b1", someTime) + row("b2", someTime),
		"ep/v1/2025/02/03/04/a.jsonl":   row("a1", someTime) + row("a2", "2025-02-03T04:05:07Z") + row("a3", someTime),
		"ep/v2/2025/02/03/04/a.jsonl":   row("z1", someTime) + row("a1", "2025-02-03T04:06:00Z"),
		"ep/v1/2025/02/03/04/.DS_Store": "\x00\x01",
		"ep/v1/2025/02/03/05/c.jsonl":   "",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, tr := importAll(t, []string{root}, Options{})
	var got []string
	for _, r := range all {
		got = append(got, r.ID+" "+r.Kind)
	}
	want := "a1 ep/v1,a3 ep/v1,b1 ep/v1,b2 ep/v1,z1 ep/v2,a2 ep/v1,a1 ep/v2"
	if strings.Join(got, ",") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, ","), want)
	}
	if tr.Header.Quantum != time.Second {
		t.Errorf("quantum %s", tr.Header.Quantum)
	}
	wantIn(t, strings.Join(tr.Report().Notes, "\n"), "arrivals quantised to 1,000 ms")
	wantIn(t, strings.Join(tr.Report().Warnings, "\n"), "eventId occurs more than once", "may be a sample", "empty file")
	if strings.Count(strings.Join(tr.Report().Warnings, "\n"), "may be a sample") != 1 {
		t.Errorf("warnings: %q", tr.Report().Warnings)
	}
}

func TestSageMakerFixture(t *testing.T) {
	dir := filepath.Join(fixturesDir, "sagemaker")
	all, tr := importAll(t, []string{dir}, Options{})
	kinds, bodies := map[string]int{}, 0
	for _, r := range all {
		kinds[r.Kind]++
		if r.Body != nil {
			bodies++
		}
	}
	if len(all) != 11 || bodies != 9 || kinds["chat-demo/AllTraffic"] != 9 || kinds["chat-demo/Canary"] != 2 {
		t.Errorf("%d rows, %d bodies, %v", len(all), bodies, kinds)
	}
	if r := tr.Report(); r.Lossy() || r.Unknown["captureAgent"] != 1 {
		t.Errorf("report %+v", r)
	}
	want := ""
	for _, name := range []string{
		"AllTraffic/2025/02/03/04/10-05-123-a.jsonl", "AllTraffic/2025/02/03/04/10-05-123-b.jsonl",
		"AllTraffic/2025/02/03/05/00-00-001.jsonl", "Canary/2025/02/03/04/11-00-009.jsonl",
	} {
		data, err := os.ReadFile(filepath.Join(dir, "chat-demo", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		want += string(data)
	}
	got, _ := through(t, []string{dir}, Options{}, "sagemaker")
	sameJSONLines(t, got, want)
}

func TestSageMakerBadRows(t *testing.T) {
	good := captureText(sideText("INPUT", `{"prompt":"hi"}`, "JSON"), "", someTime)
	bad := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for _, c := range []struct {
		name, row string
		want      []string
	}{
		{"bad Base64", bad(`"JSON"`, `"BASE64"`), []string{`"captureData.endpointInput.data"`, "Base64", "illegal base64"}},
		{"bad Base64 of the answer", captureText(sideText("INPUT", `{"prompt":"hi"}`, "JSON"), strings.Replace(sideText("OUTPUT", "%", "JSON"), "JSON", "BASE64", 1), someTime),
			[]string{`"captureData.endpointOutput.data"`, "Base64"}},
		{"no time", bad(`"inferenceTime"`, `"time"`), []string{`"eventMetadata.inferenceTime"`, "no time"}},
		{"null time", bad(`"`+someTime+`"`, `null`), []string{`"eventMetadata.inferenceTime"`, "no time"}},
		{"no metadata", bad(`"eventMetadata"`, `"meta"`), []string{`"eventMetadata.inferenceTime"`, "no time"}},
		{"a number for a time", bad(`"`+someTime+`"`, `5`), []string{`"eventMetadata.inferenceTime"`, "found 5", "a date and time"}},
		{"a time that is none", bad(someTime, "NaN"), []string{`found "NaN"`}},
		{"no capture", bad(`"captureData"`, `"capture"`), []string{`"captureData"`, "found none"}},
		{"a list for a capture", bad(`"captureData":{`, `"captureData":7,"x":{`), []string{`"captureData"`, "found 7", "an object"}},
		{"a string for a side", bad(`"endpointInput":{`, `"endpointInput":"a","x":{`), []string{`"captureData.endpointInput"`, "an object"}},
		{"an object for data", bad(`"data":"`, `"data":{},"x":"`), []string{`"captureData.endpointInput.data"`, "a string"}},
		{"a key twice, deep down", bad(`"mode":`, `"mode":"INPUT","mode":`), []string{"found key \"mode\" twice"}},
		{"not JSON", "hello\n", []string{"found hello, expected a JSON object"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := good + c.row + good
			err := importError(t, "bad.jsonl", text, Options{})
			if err == nil {
				t.Fatal("no error")
			}
			wantIn(t, err.Error(), append(c.want, "bad.jsonl", "line 2")...)
			all, tr := importAll(t, []string{writeInput(t, "bad.jsonl", text)}, Options{BadLines: Skip})
			if r := tr.Report(); len(all) != 2 || r.SkippedRows() != 1 {
				t.Errorf("skip: %d requests, report %+v", len(all), r)
			}
		})
	}
}

// Scaled times are written anew, from the trace's origin on.
func TestSageMakerSpeed(t *testing.T) {
	in := sideText("INPUT", `{"prompt":"hi"}`, "JSON")
	text := captureText(in, "", "2025-02-03T04:05:06") + captureText(in, "", "2025-02-03T05:05:07+01:00")
	got, _ := through(t, []string{writeInput(t, "c.jsonl", text)}, Options{Select: Selection{Speed: 2}}, "sagemaker")
	sameJSONLines(t, got, captureText(in, "", "2025-02-03T04:05:06Z")+captureText(in, "", "2025-02-03T04:05:06.500Z"))
}

// A request without a body becomes a capture that tells its lengths.
func TestSageMakerFromOthers(t *testing.T) {
	path := writeInput(t, "m.jsonl", `{"timestamp":1500,"input_length":600,"output_length":4,"hash_ids":[1,2]}`+"\n"+
		`{"timestamp":2500,"text_input":"hello","output_length":7}`+"\n")
	got, _ := through(t, []string{path}, Options{}, "sagemaker")
	all, tr := importText(t, "c.jsonl", got)
	if tr.Format.Name != "sagemaker" || tr.Header.Origin != 1500*time.Millisecond {
		t.Errorf("header %+v", tr.Header)
	}
	if r := all[0]; r.InputTokens != 600 || r.OutputTokens != 4 || r.Body != nil {
		t.Errorf("lengths: %+v", r)
	}
	if r := all[1]; string(r.Body) != `{"prompt":"hello","max_tokens":7}` || r.Arrival != time.Second || r.API != "completions" {
		t.Errorf("body: %+v", r)
	}
}

// Dates that step back are no clock restart: they are sorted.
func TestSageMakerStepsBack(t *testing.T) {
	in := sideText("INPUT", `{"prompt":"hi"}`, "JSON")
	text := ""
	for _, when := range []string{"10:00:00", "10:30:00", "11:00:00", "10:00:01", "10:00:02", "10:00:03"} {
		text += captureText(in, "", "2025-02-03T"+when+"Z")
	}
	all, _ := importText(t, "c.jsonl", text)
	if all[1].Row != 3 || all[5].Arrival != time.Hour {
		t.Errorf("got %+v", all)
	}
}
