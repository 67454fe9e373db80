package formats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrace/formats"
	"retrace/formats/formatstest"
	"retrace/record"
	"retrace/record/capture"
)

func TestOpenAILogSuite(t *testing.T) {
	t.Setenv(capture.SaltEnv, strings.Repeat("5a", 32)) // one for all conversions
	for name, bad := range map[string]string{"openai_log.jsonl": `{"timestamp":5,"request":{"hello":1}}`, "openai_log.csv": `1738555509,b,{},,`} {
		t.Run(name, func(t *testing.T) {
			formatstest.Run(t, formatstest.Suite{
				Format: "openai-log", Sample: head(sampleFile(t, name), 3), Rows: logRows, Bad: []byte(bad), Options: anyOrder,
			})
		})
	}
}

// logRows draws rows of JSON with odd values.
func logRows(t *rapid.T) []byte {
	bodies := oneOf(`{"messages":[{"role":"user","content":"é"}],"max_tokens":5.0}`, `"{\"prompt\":[1,2,3]}"`, `{"prompt":["a","b"]}`,
		`{"query":"q","documents":["a"]}`, `" {\"inputs\":\"a\"} "`, `{"input":"x","previous_response_id":"r1"}`, `{"file":"data:audio/wav;base64,AAAA"}`)
	fields := map[string]*rapid.Generator[string]{
		"response": oneOf("null", `""`, `"data: {}\n\n"`, `{"id":"r1","usage":{"input_tokens":3,"output_tokens":1e0}}`, "[]", `{"status_code":500,"body":{"error":{}}}`),
		"id":       oneOf(`"a"`, "7", `""`), "session_id": oneOf(`"s"`, "null"), "status": oneOf("200", `"503"`, "null"),
		"latency_ms": oneOf("0", "1.5", `""`), "odd": oneOf("[1.0]", `{"a":null}`), "url": oneOf(`"/v1/models"`, `"http://h/v1/chat/completions?key=1"`),
	}
	names := oneOf("response", "id", "session_id", "status", "latency_ms", "odd", "url")
	times := oneOf(`"2025-02-03T04:05:06Z"`, "1738555506.25", `"1738555507"`, `"2025-02-03 04:05:08.123456"`)
	var text strings.Builder
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		row := []string{`"request":` + bodies.Draw(t, "body"), `"timestamp":` + times.Draw(t, "time")}
		for _, name := range rapid.SliceOfDistinct(names, rapid.ID[string]).Draw(t, "fields") {
			row = append(row, fmt.Sprintf("%q:%s", name, fields[name].Draw(t, name)))
		}
		text.WriteString("{" + strings.Join(row, ",") + "}\n")
	}
	return []byte(text.String())
}

// openLog reads a text as a log.
func openLog(t *testing.T, text string, o formats.Options) (opened, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.From = "openai-log"
	return openAll(t, []string{path}, o)
}

// The sample, by hand: times from its first row, counts as its usage says.
func TestLogSample(t *testing.T) {
	got, err := openLog(t, string(sampleFile(t, "openai_log.jsonl")), formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		id, session, api string
		at               time.Duration
		in, out          int64
		status           int
		failed           bool
	}
	want := []facts{
		{"req-1", "s-1", "chat", 0, 38, 4, 200, false},
		{"req-2", "s-1", "chat", 2750 * time.Millisecond, 55, 5, 200, false},
		{"req-3", "", "completions", 3750 * time.Millisecond, record.Unknown, 8, 503, true},
		{"resp_1", "resp_1", "responses", 5750 * time.Millisecond, 11, 3, 0, false},
		{"resp_2", "resp_1", "responses", 6750 * time.Millisecond, 24, 4, 0, false},
	}
	for i, r := range got.reqs {
		f := facts{r.ID, r.Session, r.API, r.Arrival, r.InputTokens, r.OutputTokens, r.Observed.Status, r.Observed.Failed}
		if i >= len(want) || f != want[i] {
			t.Errorf("request %d: found %+v", i, f)
		}
	}
	// 6 February 2025: date -u -d 2025-02-03T04:05:06Z +%s
	if h := got.header; len(got.reqs) != 5 || h.Origin != 1738555506250*time.Millisecond || !h.Wall || h.Capture != "full" || h.TimeBasis != "unknown" {
		t.Errorf("%d requests, header %+v", len(got.reqs), h)
	}
	if r := got.reqs[0]; r.Observed.Latency != 412500*time.Microsecond || got.reqs[4].Parent != "resp_1" {
		t.Errorf("latency %s, parent %q", r.Observed.Latency, got.reqs[4].Parent)
	}
	// the second turn's ChatML begins with the first's: 2 whole blocks of 64 bytes
	if a, b := got.reqs[0].Blocks, got.reqs[1].Blocks; !slices.Equal(a[:2], b[:2]) || len(a) != 3 || a[2] == b[2] {
		t.Errorf("blocks %v and %v", a, b)
	}
}

// Whatever the layout, a row says the same.
func TestLogLayouts(t *testing.T) {
	const object = `{"timestamp":1738555506,"id":"a","request":{"prompt":"x"},"response":{"usage":{"prompt_tokens":7,"completion_tokens":2}}}`
	for _, text := range []string{
		object,
		`{"time":"2025-02-03T04:05:06Z","request_id":"a","request_json":"{\"prompt\":\"x\"}","response_json":"{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}"}`,
		`{"created_at":1738555506,"custom_id":"a","request":{"prompt":"x"},"response":{"status_code":200,"body":{"usage":{"prompt_tokens":7,"completion_tokens":2}}}}`,
		`{"created_at":1738555506,"id":"a","request":{"prompt":"x"},"response":"data: {\"usage\":null}\n\ndata: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]"}`,
		"id,time,request,response\na,1738555506,\"{\"\"prompt\"\":\"\"x\"\"}\",\"{\"\"usage\"\":{\"\"prompt_tokens\"\":7,\"\"completion_tokens\"\":2}}\"\n",
		"request_json,timestamp,request_id,response\n\"{\n\"\"prompt\"\":\n\"\"x\"\"\n}\",2025-02-03 04:05:06,a,\"data: {}\n\ndata: {\"\"usage\"\":{\"\"prompt_tokens\"\":7,\"\"completion_tokens\"\":2}}\n\"\n",
	} {
		got, err := openLog(t, text, formats.Options{})
		if err != nil || len(got.reqs) != 1 {
			t.Errorf("%s: %d requests, %v", text, len(got.reqs), err)
			continue
		}
		if r := got.reqs[0]; r.ID != "a" || r.InputTokens != 7 || r.OutputTokens != 2 || r.API != "completions" || got.header.Origin != 1738555506*time.Second {
			t.Errorf("%s: found %+v at %s", text, r, got.header.Origin)
		}
	}
}

// A body of 5,000 lines in a cell is one row; a stray quote costs its own row.
func TestLogCells(t *testing.T) {
	body := `"{""prompt"": [` + strings.Repeat("\n1,", 5000) + "\n2]}\""
	text := "time,request\n1738555506," + body + "\n1738555507,\"{\"\"prompt\"\":\"\"x\"\"}\"\n"
	got, err := openLog(t, text, formats.Options{})
	if err != nil || len(got.reqs) != 2 || got.reqs[0].InputTokens != 5001 {
		t.Errorf("%d requests, %v", len(got.reqs), err)
	}
}

// A log without any time arrives at once; a number is in --time-unit.
func TestLogTimes(t *testing.T) {
	row := func(time string) string { return `{` + time + `"request":{"prompt":"x"}}` + "\n" }
	for _, c := range []struct {
		text string
		unit time.Duration
		want time.Duration // of the second row
		err  string
	}{
		{row("") + row(""), 0, 0, ""},
		{row(`"time":0,`) + row(`"time":2.5,`), 0, 2500 * time.Millisecond, ""},
		{row(`"time":1738555506000,`) + row(`"time":1738555506250,`), time.Millisecond, 250 * time.Millisecond, ""},
		{row(`"time":1738555506000,`), 0, 0, "--time-unit"},
		{row(`"time":0,`) + row(""), 0, 0, "no time; 1 of 2 rows have none"},
		{row("") + row(`"time":0,`), 0, 0, "expected no time, as the first row has none"},
		{row(`"time":5,`) + row(`"time":"2025-02-03",`), 0, 0, `found 2025-02-03, expected a date`},
		{row(`"time":5,`) + row(`"time":"2025-02-03T04:05:06Z",`), 0, 0, "expected a time from the log's start"},
		{row(`"time":1738555506,`) + row(`"time":5,`), 0, 0, "expected a time since 1970"},
		{row(`"time":-5,`), 0, 0, "found -5"},
		{row(`"time":"NaN",`), 0, 0, "found NaN"},
		{row(`"time":1e400,`), 0, 0, "found 1e400"},
	} {
		got, err := openLog(t, c.text, formats.Options{Unit: c.unit})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), ": line ") {
				t.Errorf("%s: found %v, want %q", c.text, err, c.err)
			}
		case err != nil || len(got.reqs) != 2 || got.reqs[1].Arrival != c.want:
			t.Errorf("%s: found %+v, %v, want %s", c.text, got.reqs, err, c.want)
		}
	}
}

// Nothing that a log says of its users stands in a trace, its errors or its
// warnings, in any mode but full; every row of the bad sample but one is bad.
func TestLogPrivacy(t *testing.T) {
	words := []string{"river", "Spain", "Ebro", "Loire", "Once upon", "mountain", "req-1", "s-1", "resp_1", "blue", "please", "secret"}
	for _, name := range []string{"openai_log.jsonl", "openai_log.csv", "bad/openai_log_broken_rows.jsonl"} {
		for _, mode := range []capture.Mode{"", capture.Lengths, capture.Full} {
			var out strings.Builder
			c, err := formats.Convert([]string{filepath.Join("../fixtures", name)}, formats.Options{Capture: mode, BadLines: formats.Skip},
				formats.Target{Path: "-", Format: "jsonl", Stdout: &out})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all := out.String() + fmt.Sprintf("%+v", c.Report)
			for _, w := range words {
				if mode != capture.Full && strings.Contains(all, w) {
					t.Errorf("%s, mode %q: %q stands in\n%s", name, mode, w, all)
				}
			}
			if mode == capture.Full && !strings.Contains(all, "Once upon") && !strings.Contains(all, "secret") {
				t.Errorf("%s: full lacks the text:\n%s", name, all)
			}
			if strings.HasPrefix(name, "bad") && (c.Report.Kept != 1 || c.Report.SkippedRows() != 9) {
				t.Errorf("%s: %d kept, %d skipped; want 1 and 9", name, c.Report.Kept, c.Report.SkippedRows())
			}
			if want := map[capture.Mode]string{"": "blocks"}[mode]; want != "" && c.Header.Capture != want {
				t.Errorf("%s: header says %q, want %q", name, c.Header.Capture, want)
			}
		}
	}
}

// What is a token: an id of the prompt, or what Encode makes of text.
func TestLogTokens(t *testing.T) {
	const ids, text = `{"request":{"prompt":[1,2,3]}}` + "\n", `{"request":{"prompt":"abcd"}}` + "\n"
	letters := func(dst []uint32, s string) []uint32 {
		for _, c := range []byte(s) {
			dst = append(dst, uint32(c))
		}
		return dst
	}
	for _, c := range []struct {
		text   string
		encode func([]uint32, string) []uint32
		size   int
		unit   string
		input  []int64
		blocks []int
	}{
		{ids + text, nil, 2, "", []int64{3, record.Unknown}, []int{2, 0}},
		{text + ids, nil, 8, "bytes", []int64{record.Unknown, 3}, []int{1, 2}}, // 4 bytes a token
		{text + ids, letters, 2, "", []int64{4, 3}, []int{2, 2}},
	} {
		got, err := openLog(t, c.text, formats.Options{Encode: c.encode, BlockSize: 2})
		if err != nil || got.header.BlockSize != c.size || got.header.BlockUnit != c.unit {
			t.Fatalf("%s: header %+v, %v", c.text, got.header, err)
		}
		for i, r := range got.reqs {
			if r.InputTokens != c.input[i] || len(r.Blocks) != c.blocks[i] {
				t.Errorf("%s: request %d has %d tokens, blocks %v; want %d and %d", c.text, i, r.InputTokens, r.Blocks, c.input[i], c.blocks[i])
			}
		}
	}
}

// Modes are for logs.
func TestCaptureOfOthers(t *testing.T) {
	salt := filepath.Join(t.TempDir(), "salt")
	for _, o := range []formats.Options{{Capture: capture.Blocks}, {SaltFile: salt}, {Encode: func(dst []uint32, _ string) []uint32 { return dst }}} {
		_, err := openAll(t, []string{"../fixtures/mooncake_sample.jsonl"}, o)
		if err == nil || !strings.Contains(err.Error(), "are for openai-log; the input is mooncake") {
			t.Errorf("found %v", err)
		}
	}
	if _, err := os.Stat(salt); err == nil {
		t.Error("a salt file was made for nothing")
	}
	t.Setenv(capture.SaltEnv, "not hexadecimal")
	if _, err := openAll(t, []string{"../fixtures/mooncake_sample.jsonl"}, formats.Options{}); err != nil {
		t.Errorf("a salt that is not needed was read: %v", err)
	}
	if _, err := openAll(t, []string{"../fixtures/openai_log.jsonl"}, formats.Options{}); err == nil || !strings.Contains(err.Error(), capture.SaltEnv) {
		t.Errorf("found %v", err)
	}
}

// FuzzOpenAILog: whatever the bytes, nothing panics, every row is accounted for,
// and every request has its body.
func FuzzOpenAILog(f *testing.F) {
	for _, name := range []string{"openai_log.jsonl", "openai_log.csv", "bad/openai_log_broken_rows.jsonl"} {
		f.Add(fixture(f, name))
	}
	f.Add([]byte("request,time\n\"{\"\"prompt\"\":1}\",\"\n\"\"{\"\n{},5"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := formats.ImportBytes("openai-log", data)
		if err != nil {
			return
		}
		for i := range got.Reqs {
			if r := &got.Reqs[i]; r.API == "" || r.Body == nil || r.Arrival == record.NoTime {
				t.Fatalf("request %d: %+v", i, r)
			}
		}
	})
}
