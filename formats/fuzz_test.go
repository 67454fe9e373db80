package formats_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrace/formats"
	"retrace/formats/formatstest"
	"retrace/record"
)

func FuzzMooncake(f *testing.F) {
	for _, name := range []string{"mooncake_sessions.jsonl", "bad/mooncake_broken_rows.jsonl", "bad/mooncake_clock_restart.jsonl"} {
		f.Add(fixture(f, name))
	}
	f.Add([]byte(`{"timestamp":61.11400000001,"input_length":1E+2,"output_length":5.0,"hash_ids":[1e0]}`))
	f.Add([]byte(`{"timestamp":0,"payload":{"a":"\ud800"},"\udc00":-0}`))
	fuzzFormat(f, "mooncake", formatstest.DiffJSONLines)
}

// fuzzFormat: whatever the bytes, nothing panics, every row is accounted for,
// and what was taken whole comes back from an export equal to the source.
func fuzzFormat(f *testing.F, name string, diff func(a, b []byte) string) {
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := formats.ImportBytes(name, data)
		if err != nil || got.Report.Lossy() {
			return
		}
		back, err := formats.ExportBytes(name, got)
		if err != nil {
			t.Fatalf("export: %v", err)
		}
		if d := diff(data, back); d != "" {
			t.Fatal(d)
		}
	})
}

// FuzzJSONL: canonical lines that are taken come back as the same requests.
func FuzzJSONL(f *testing.F) {
	f.Add([]byte(`{"retrace":"requests/1","source":"mooncake","origin_ns":5}
{"row":0,"id":"a","session":"s","turn":1,"arrival_ns":7,"input_tokens":3,"blocks":[1],"body":{"a":1},"extra":{"b":2},"exceptions":[{"field":"x","raw":"5.0"},{"field":"y"}]}
{"row":1,"session":"s","delay_ns":1,"increment":true,"media":[{"kind":"image","ref":"u"}],"observed":{"status":200,"failed":true},"body_text":"x\ny","priority":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := formats.ImportBytes("jsonl", data)
		if err != nil || len(got.Reqs) == 0 {
			return
		}
		lines, err := formats.ExportBytes("jsonl", got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := formats.ImportBytes("jsonl", lines)
		if err != nil || again.Report.Lossy() {
			t.Fatalf("%v %v:\n%s", err, again.Report, lines)
		}
		for i := range again.Reqs { // ExportBytes has moved them to the origin
			if again.Reqs[i].Arrival != record.NoTime {
				again.Reqs[i].Arrival -= again.Header.Origin
			}
		}
		if d := cmp.Diff(got.Reqs, again.Reqs); d != "" {
			t.Fatalf("%s\n%s", d, lines)
		}
	})
}

// FuzzDetect: whatever the bytes, there is a format or an error, never both.
func FuzzDetect(f *testing.F) {
	for _, name := range []string{"mooncake_sample.jsonl", "bailian.jsonl", "burstgpt.csv", "burstgpt3.csv"} {
		f.Add(fixture(f, name)[:200], true)
	}
	f.Add([]byte(`[{"a":1}]`), false)
	f.Add([]byte("\xef\xbb\xbf\n\n{\"retrace\""), false)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		format, err := formats.Detect(formats.NewHead(data, whole))
		if (format == nil) == (err == nil) {
			t.Fatalf("format %v, error %v", format, err)
		}
	})
}
