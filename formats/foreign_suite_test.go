package formats_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retrace/formats"
	"retrace/formats/formatstest"
)

// sampleFile is a fixture, by its path in the folder of them.
func sampleFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../fixtures", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// head is the first n lines of a file.
func head(data []byte, n int) []byte {
	lines := bytes.SplitAfterN(data, []byte("\n"), n+1)
	return bytes.Join(lines[:min(n, len(lines))], nil)
}

// anyOrder takes times as they are: rows are drawn in no order.
var anyOrder = formats.Options{ClockRestart: formats.RestartSort}

func TestBurstGPTSuite(t *testing.T) {
	for _, name := range []string{"burstgpt.csv", "burstgpt3.csv"} {
		t.Run(name, func(t *testing.T) {
			formatstest.Run(t, formatstest.Suite{
				Format: "burstgpt", Sample: head(sampleFile(t, name), 5), Rows: burstRows,
				Bad: []byte("5,ChatGPT,-1,2,3,API log,,"), Diff: formatstest.DiffCSV, Options: anyOrder,
			})
		})
	}
}

func TestAzureSuite(t *testing.T) {
	for _, name := range []string{"azure_2023.csv", "azure_2024.csv", "azure_lmm.csv"} {
		t.Run(name, func(t *testing.T) {
			formatstest.Run(t, formatstest.Suite{
				Format: "azure", Sample: sampleFile(t, name), Rows: azureRows,
				Bad: []byte("2023-11-16 18:17:03,-1,2,3"), Diff: formatstest.DiffCSV, Options: anyOrder,
			})
		})
	}
}

func TestBailianSuite(t *testing.T) {
	formatstest.Run(t, formatstest.Suite{
		Format: "bailian", Sample: head(sampleFile(t, "bailian.jsonl"), 4), Rows: bailianRows,
		Bad: []byte(`{"chat_id":1,"timestamp":-1,"input_length":5}`), Diff: formatstest.DiffJSONLines, Options: anyOrder,
	})
}

func TestSageMakerSuite(t *testing.T) {
	formatstest.Run(t, formatstest.Suite{
		Format: "sagemaker", Sample: head(sampleFile(t, "sagemaker/chat-demo/AllTraffic/2025/02/03/04/10-05-123-b.jsonl"), 2),
		Rows: captureRows, Bad: []byte(`{"captureData":{"endpointInput":{"data":5}},"eventMetadata":{"inferenceTime":"2025-02-03T04:05:06Z"}}`),
		Diff: formatstest.DiffJSONLines, Options: anyOrder,
	})
}

// Every format's sample can be written in every other, and is read again with
// as many requests, at the same times where each has one.
func TestEveryFormatToEveryOther(t *testing.T) {
	targets := []string{"jsonl", "mooncake", "bailian", "burstgpt", "sagemaker", "azure"}
	for _, source := range []string{"mooncake_sample.jsonl", "mooncake_sessions.jsonl", "bailian.jsonl", "burstgpt.csv", "burstgpt3.csv", "azure_2023.csv", "azure_lmm.csv", "sagemaker"} {
		in, err := openAll(t, []string{filepath.Join("../fixtures", source)}, formats.Options{})
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		for _, target := range targets {
			t.Run(source+" to "+target, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "out")
				_, err := formats.Convert([]string{filepath.Join("../fixtures", source)}, formats.Options{}, formats.Target{Path: path, Format: target})
				if err != nil {
					t.Fatal(err)
				}
				if source == "sagemaker" && target == "mooncake" {
					return // rows of unknown length are no Mooncake rows
				}
				out, err := openAll(t, []string{path}, formats.Options{BlockSize: blockSizeOf(target, in.header.BlockSize)})
				if err != nil {
					t.Fatal(err)
				}
				if len(out.reqs) != len(in.reqs) {
					t.Fatalf("%d requests, want %d", len(out.reqs), len(in.reqs))
				}
				for i, r := range in.reqs {
					if in.header.DelayMeaning != "" {
						return
					}
					if out.reqs[i].Arrival != r.Arrival {
						t.Errorf("request %d: at %s, want %s", i, out.reqs[i].Arrival, r.Arrival)
					}
				}
			})
		}
	}
}

// Hundreds of small compressed files are opened one after the other, and all
// that was started for them has ended.
func TestManyCompressedFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ep", "v", "2025", "02", "03", "04")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	row := head(sampleFile(t, "sagemaker/chat-demo/AllTraffic/2025/02/03/04/10-05-123-b.jsonl"), 1)
	const files = 500
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.jsonl.zst", i)), formatstest.Zstd(row), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := runtime.NumGoroutine()
	got, err := openAll(t, []string{dir}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.reqs) != files || got.reqs[files-1].Row != files-1 {
		t.Errorf("%d requests", len(got.reqs))
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// blockSizeOf is what a reader of an export has to be told: Mooncake files do
// not say how large their blocks are.
func blockSizeOf(target string, size int) int {
	if target == "mooncake" {
		return size
	}
	return 0
}

// oneOf draws one of some texts.
func oneOf(texts ...string) *rapid.Generator[string] { return rapid.SampledFrom(texts) }

// burstRows draws a CSV file: any order of columns, two that nobody knows,
// odd literals, empty cells.
func burstRows(t *rapid.T) []byte {
	number := rapid.OneOf(oneOf("0", "5", "5.0", " 5", "+5", "007", "1e2", "12.", "3.000", "120", "-0"),
		rapid.Map(rapid.IntRange(0, 1<<33), func(n int) string { return fmt.Sprint(n) }))
	seconds := rapid.OneOf(number, oneOf("0.1", "1.50", "61.11400000001", "7.125", "00.5", ".5"))
	empty := rapid.Just("")
	word := rapid.StringOf(rapid.RuneFrom([]rune("ab ,\"\né")))
	columns := map[string]*rapid.Generator[string]{
		"Timestamp": seconds, "Session ID": rapid.OneOf(empty, oneOf("a", "b", "c\"")), "Elapsed time": rapid.OneOf(empty, seconds),
		"Model": word, "Request tokens": rapid.OneOf(empty, number), "Response tokens": rapid.OneOf(empty, number),
		"Total tokens": rapid.OneOf(empty, number), "Log Type": word, "odd": word, "": word,
	}
	order := rapid.Permutation([]string{"Timestamp", "Request tokens", "Response tokens", "Session ID", "Elapsed time",
		"Model", "Total tokens", "Log Type", "odd", ""}).Draw(t, "columns")
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(order) // a strings.Builder never fails
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		var cells []string
		for _, c := range order {
			cells = append(cells, columns[c].Draw(t, c))
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return []byte(text.String())
}

// azureRows draws a CSV file: any order of columns, one that nobody knows, odd
// dates and counts, empty cells.
func azureRows(t *rapid.T) []byte {
	number := rapid.OneOf(oneOf("0", "5.0", " 5", "+5", "007", "1e2", "", " ", "12"),
		rapid.Map(rapid.IntRange(0, 1<<33), func(n int) string { return fmt.Sprint(n) }))
	columns := map[string]*rapid.Generator[string]{
		"TIMESTAMP": rapid.Map(rapid.Custom(func(t *rapid.T) []string {
			return []string{
				oneOf("2023-11-16 18:17:03", "2024-03-10 02:30:00", "1970-01-01 00:00:00", "2024-02-29T23:59:59").Draw(t, "second"),
				oneOf("", ".9799600", ".5", ".000", ".0123456789", ".123456").Draw(t, "fraction"),
				oneOf("", "Z", "+00:00", "+01:00", "-00:00", " ").Draw(t, "zone"),
			}
		}), func(parts []string) string { return strings.Join(parts, "") }),
		"ContextTokens": number, "GeneratedTokens": number, "NumImages": oneOf("0", "1", "2", "1.0", "", " 3", "4096"),
		"odd": oneOf("", "a", "b, \"c\""),
	}
	delete(columns, oneOf("NumImages", "odd", "").Draw(t, "without"))
	order := rapid.Permutation(slices.Sorted(maps.Keys(columns))).Draw(t, "columns")
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(order) // a strings.Builder never fails
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		var cells []string
		for _, c := range order {
			cell := columns[c].Draw(t, c)
			if c == "TIMESTAMP" && strings.HasPrefix(cell, "1970") {
				cell = strings.Replace(cell, "+01:00", "Z", 1) // else before 1970
			}
			cells = append(cells, cell)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return []byte(text.String())
}

// bailianRows draws JSON lines: odd literals, absent, null and empty fields,
// fields that nobody knows, parents before and after their children.
func bailianRows(t *rapid.T) []byte {
	count := oneOf("0", "16", "5.0", "1e2", "null", "300", "-0")
	fields := map[string]*rapid.Generator[string]{
		"parent_chat_id": oneOf("-1", "106", "100", "2048.0", "null"),
		"output_length":  count, "type": oneOf(`"text"`, `""`, "null", `"\u00e9\ud800"`),
		"turn":                oneOf("0", "1", "2.0", "null", "17"),
		"session_id":          oneOf(`"a"`, `""`, "null", "5", "5.0"),
		"time_to_parent_chat": oneOf("0", "1.50", "-2", "null", "0.0000000001"),
		"odd":                 oneOf("null", "[]", `{"a":{"b":1.0}}`, "7"),
		"":                    oneOf("1"),
	}
	names := oneOf("parent_chat_id", "output_length", "type", "turn", "session_id", "time_to_parent_chat", "odd", "")
	prompts := oneOf(`"input_length":33,"hash_ids":[1,2,18446744073709551615]`, `"input_length":16,"hash_ids":[7.0]`,
		`"input_length":5,"hash_ids":[]`, `"input_length":null,"hash_ids":null`, `"input_length":0`, `"input_length":1.0e1`)
	var text strings.Builder
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		row := []string{
			`"timestamp":` + oneOf("0", "61.11400000001", "62.5", "62.50", "1e1", "3").Draw(t, "timestamp"),
			`"chat_id":` + oneOf("0", "1", "2", "3", "4.0", "5", "9007199254740993").Draw(t, "chat_id"),
			prompts.Draw(t, "prompt"),
		}
		for _, name := range rapid.SliceOfDistinct(names, rapid.ID[string]).Draw(t, "fields") {
			row = append(row, fmt.Sprintf("%q:%s", name, fields[name].Draw(t, name)))
		}
		text.WriteString("{" + strings.Join(rapid.Permutation(row).Draw(t, "order"), ", ") + "}\n")
	}
	return []byte(text.String())
}

// captureRows draws captures: each encoding, known and unknown bodies, odd
// times, absent and null sides, fields that nobody knows.
func captureRows(t *rapid.T) []byte {
	texts := oneOf(`"{\"prompt\":\"hi\",\"max_tokens\":5.0}"`, `"{\"messages\":[],\"x\":\"\\ud83d\\ude00\"}"`, `"{\n \"inputs\": \"é\u00e9\" }"`,
		`"1,2\n"`, `""`, `"{\"prompt\":\"\\ud800\"}"`, `"{\"prompt\":\"\ud800\"}"`, `null`)
	coded := oneOf(`"eyJpbnB1dHMiOiJoaSJ9"`, `"eyJwcm9tcHQiOiJo\u0061SJ9"`, `""`, `"eyJwcm9tcHQiOlsxLDJdLCAibW9kZWwiOiJtIn0=\n"`)
	side := func(mode string) string {
		fields := []string{fmt.Sprintf(`"mode":%q`, mode)}
		encoding := oneOf("JSON", "CSV", "BASE64", "TEXT", "").Draw(t, "encoding")
		if encoding != "" {
			fields = append(fields, fmt.Sprintf(`"encoding":%q`, encoding))
		}
		data := texts.Draw(t, "text")
		if encoding == "BASE64" {
			data = coded.Draw(t, "coded")
		}
		odd := oneOf(`"data":`+data, `"data":`+data+`,"odd":null`, `"observedContentType":"text/csv","data":`+data, `"odd":1.0`)
		return "{" + strings.Join(append(fields, odd.Draw(t, "side")), ",") + "}"
	}
	odd := oneOf("", `"x":[1.0,{"b":null}],`, `"customAttributes":["k=v"],"inferenceId":"i",`, `"customAttributes":[],`, `"inferenceId":null,`)
	var text strings.Builder
	for range rapid.IntRange(1, 4).Draw(t, "rows") {
		sides := `"endpointInput":` + side("INPUT")
		switch rapid.IntRange(0, 3).Draw(t, "output") {
		case 0:
			sides += `,"endpointOutput":null`
		case 1:
			sides += `,"endpointOutput":` + side("OUTPUT")
		}
		when := oneOf("2025-02-03T04:05:06Z", "2025-02-03T04:05:06.5Z", "2025-02-03T04:05:06.123456Z", "2025-02-03T05:05:06+01:00",
			"2025-02-03 04:05:05", "2025-02-03T04:05:06.000Z").Draw(t, "time")
		fmt.Fprintf(&text, `{%s"captureData":{%s},"eventMetadata":{%s"eventId":%s,"inferenceTime":%q},"eventVersion":"0"}`+"\n",
			odd.Draw(t, "top"), sides, odd.Draw(t, "meta"), oneOf(`"e-1"`, `"\u00e9"`, `""`, `null`, `7`).Draw(t, "id"), when)
	}
	return []byte(text.String())
}
