package formats

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodRow = `{"timestamp":1,"input_length":5,"output_length":1}`

// TestDetectBrokenFirstRow: a broken first row hides the format neither where
// other rows follow nor where it is alone.
func TestDetectBrokenFirstRow(t *testing.T) {
	for _, first := range []string{
		`{"timestamp":NaN,"input_length":5,"output_length":1}`,
		`{"timestamp":1,"timestamp":2,"input_length":5}`,
		`{"timestamp":1,"input_length":5,}`,
		`{"timestamp":+1,"input_length":5}`,
		`{"a":[1,{"b":"\"}`, // nothing of it tells
		"# comment", "garbage", "[1,2]", "{}", "7",
	} {
		f, err := Detect(NewHead([]byte(first+"\n"+goodRow+"\n"), true))
		if err != nil || f.Name != "mooncake" {
			t.Errorf("%s and a good row: %v, %v", first, f, err)
		}
		if !strings.Contains(first, "input_length") {
			continue
		}
		if f, err := Detect(NewHead([]byte(first+"\n"), true)); err != nil || f.Name != "mooncake" {
			t.Errorf("%s alone: %v, %v", first, f, err)
		}
	}
}

// TestDetectMostRows: rows of a format among other lines do not make a file one
// of that format, unless --from says so; a few bad lines among rows do not hide it.
func TestDetectMostRows(t *testing.T) {
	readme := "# Traces\n\nA row is\n\n    " + goodRow + "\n\nand so on.\n"
	logs := strings.Repeat(`{"level":"info","message":"x"}`+"\n", 3) + goodRow + "\n"
	for in, want := range map[string]string{
		readme: `unknown format: it starts with "# Traces", and only 1 of its first 4 lines looks like mooncake`,
		logs:   "only 1 of its first 4 lines looks like mooncake",
	} {
		h := NewHead([]byte(in), true)
		if f, err := Detect(h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", in, f, err, want)
		}
		if f, err := choose(h, "mooncake"); err != nil || f.Name != "mooncake" {
			t.Errorf("--from mooncake: %v, %v", f, err)
		}
	}
	for _, in := range []string{
		"# comment\n# comment\n" + strings.Repeat(goodRow+"\n", 2),
		strings.Repeat(goodRow+"\ngarbage\n", 3),
		`{"input_length":5,"output_length":1}` + "\n" + goodRow + "\n", // without its time
	} {
		if f, err := Detect(NewHead([]byte(in), true)); err != nil || f.Name != "mooncake" {
			t.Errorf("%q: %v, %v", in, f, err)
		}
	}
}

// TestUnknownWords: what is said of an input that is no known format.
func TestUnknownWords(t *testing.T) {
	for in, want := range map[string]string{
		"{\n\"timestamp\":1,\n\"input_length\":5\n}\n": "over several lines",
		"{\"timestamp\":1,\n\"input_length\":5\n}\n":   "over several lines",
		`{"time":NaN}`:        "(line 1 is broken: found NaN}, expected a JSON value)",
		"\n\n{\"time\":1,}\n": "(line 3 is broken: found }, expected a key in double quotes)",
		`{"time":1}`:          "its first row has the fields time;",
		"[\n" + goodRow + ",\n" + goodRow + "\n]\n": "one JSON array",
		"[" + goodRow + "," + goodRow + "]\n":       "one JSON array",
		"{\"TIMESTAMP\":1,\"INPUT_LENGTH\":5}\n":    "TIMESTAMP, INPUT_LENGTH",
	} {
		if f, err := Detect(NewHead([]byte(in), true)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", in, f, err, want)
		}
	}
}

// TestEveryInputIsLookedAt: a file that is no trace is refused in its own words
// wherever it stands, whatever --from and --bad-lines say.
func TestEveryInputIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.jsonl", goodRow+"\n")
	pointer := write("pointer.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
	for _, o := range []Options{{}, {From: "mooncake"}, {BadLines: Skip}} {
		tr, err := Open([]string{good, pointer}, o)
		if err == nil {
			tr.Close()
			t.Errorf("%+v: taken", o)
			continue
		}
		for _, want := range []string{"pointer.jsonl", "Git LFS pointer", "git lfs pull"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v lacks %q", o, err, want)
			}
		}
	}
}

// TestAllRowsSkipped: rows that are skipped and counted are no failure, even
// where none is left.
func TestAllRowsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, []byte(`{"timestamp":NaN,"input_length":5}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := path + ".trace"
	if _, err := Convert([]string{path}, Options{}, Target{Path: out}); err == nil {
		t.Error("fail took a bad row")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("fail left an output")
	}
	c, err := Convert([]string{path}, Options{BadLines: Skip}, Target{Path: out})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Report; r.Read != 1 || r.Kept != 0 || r.Skipped["timestamp: expected a JSON value"] != 1 || !r.Lossy() {
		t.Errorf("report %+v", r)
	}
	tr, err := Open([]string{out}, Options{})
	if err != nil {
		t.Fatalf("the empty trace: %v", err)
	}
	defer tr.Close()
	for range tr.Requests() {
		t.Error("a request came from nothing")
	}
}

// TestMessagesAreOneLine: what an error quotes cannot act on a terminal.
func TestMessagesAreOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 漢":                   "plain é 漢",
		"a\nb\x1b[31m\x00":            `a\nb\x1b[31m\x00`,
		"\xff\xfe":                    `\xff\xfe`,
		strings.Repeat("é", 40):       strings.Repeat("é", 30) + "… (80 bytes)",
		"x" + strings.Repeat("é", 40): "x" + strings.Repeat("é", 29) + "… (81 bytes)",
	} {
		if got := clip(in); got != want {
			t.Errorf("clip(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestCutCompressedTrace: a canonical trace that was compressed once more and
// cut gives its whole chunks, as one that was not compressed.
func TestCutCompressedTrace(t *testing.T) {
	dir := t.TempDir()
	in, trace, cut := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "a.trace"), filepath.Join(dir, "cut.gz")
	if err := os.WriteFile(in, []byte(strings.Repeat(goodRow+"\n", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Convert([]string{in}, Options{}, Target{Path: trace}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, packed.Bytes()[:packed.Len()-60], 0o600); err != nil { // into the footer
		t.Fatal(err)
	}
	c, err := Convert([]string{cut}, Options{}, Target{Path: filepath.Join(dir, "b.trace")})
	if err != nil {
		t.Fatal(err)
	}
	if c.Figures.Requests < 4096 || len(c.Report.Losses) != 1 || !strings.Contains(c.Report.Losses[0], "cut short") {
		t.Errorf("%d requests, losses %q", c.Figures.Requests, c.Report.Losses)
	}
}

// TestMergedShards: the shards of a trace, merged in any order, are the trace
// again, its ties in the source's order.
func TestMergedShards(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d,"output_length":1}`+"\n", i/20*1000, i+1)
	}
	in, whole := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "whole.trace")
	if err := os.WriteFile(in, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	convert := func(to string, s Selection, from ...string) []byte {
		t.Helper()
		if _, err := Convert(from, Options{Select: s}, Target{Path: to}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := convert(whole, Selection{}, in)
	var parts []string
	for i := range 3 {
		part := filepath.Join(dir, fmt.Sprintf("%d.trace", i))
		convert(part, Selection{Shard: i, Shards: 3}, whole)
		parts = append([]string{part}, parts...)
	}
	if got := convert(filepath.Join(dir, "merged.trace"), Selection{}, parts...); !bytes.Equal(got, want) {
		t.Error("the merged shards differ from the trace")
	}
	// All at one instant: the merge needs no sorting by time, yet by rows.
	first := convert(whole, Selection{Limit: 20}, in)
	for i, p := range parts {
		convert(p, Selection{Shard: 2 - i, Shards: 3}, whole)
	}
	if got := convert(filepath.Join(dir, "merged.trace"), Selection{}, parts...); !bytes.Equal(got, first) {
		t.Error("the merged shards of one instant differ from it")
	}
}

// TestBrokenLineBeforeHeader: a comment before a CSV file's header is a bad
// row; a file without a header is an error whatever --bad-lines says.
func TestBrokenLineBeforeHeader(t *testing.T) {
	const header, row = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n", "5,ChatGPT,1,2,3,API log\n"
	path := filepath.Join(t.TempDir(), "in.csv")
	convert := func(text string, o Options) (*Conversion, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Convert([]string{path}, o, Target{Path: path + ".trace"})
	}
	if _, err := convert("# comment\n"+header+row, Options{}); err == nil || !strings.Contains(err.Error(), "in.csv: line 1 (byte 0): found # comment, expected a header") {
		t.Errorf("fail: %v", err)
	}
	c, err := convert("# comment\n\"\n"+header+row, Options{BadLines: Skip})
	if err != nil || c.Report.Read != 3 || c.Report.Kept != 1 || c.Report.SkippedRows() != 2 {
		t.Errorf("skip: %+v, %v", c, err)
	}
	for _, text := range []string{row, row + row, strings.Repeat(row, 20)} {
		if _, err := convert(text, Options{From: "burstgpt", BadLines: Skip}); err == nil || !strings.Contains(err.Error(), "line 1 (byte 0)") {
			t.Errorf("%d rows without a header: %v", strings.Count(text, "\n"), err)
		}
	}
}

// T40: few good rows among broken ones still tell the format; a log in which a
// line or two happen to be rows does not.
func TestDetectAmongBrokenRows(t *testing.T) {
	for in, want := range map[string]bool{
		goodRow + "\n{\"timestamp\":1,}\n# comment\n":                              true,
		"# comment\n" + strings.Repeat("{\"timestamp\":1,}\n", 9) + goodRow + "\n": true,
		"# comment\nmore\n" + goodRow + "\n":                                       false,
		strings.Repeat("{\"level\":\"info\"}\n", 2) + goodRow + "\n":               false,
		"{\"level\":\"info\"}\n" + goodRow + "\n":                                  true,
	} {
		if f, err := Detect(NewHead([]byte(in), true)); (err == nil) != want {
			t.Errorf("%q: %v, %v", in, f, err)
		}
	}
}
