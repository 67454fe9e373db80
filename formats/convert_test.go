package formats_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retrace/formats"
	"retrace/record"
)

// manyRows is a file whose header can only be told at its end.
func manyRows(n int, last string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":700,"output_length":%d}`+"\n", 1000+i*10, i%50)
	}
	return b.String() + last + "\n"
}

// What the first rows promise may be broken by a later one: the trace has to be
// the one that the general way (to standard output) makes.
func TestSpeculation(t *testing.T) {
	for name, last := range map[string]string{
		"as promised": `{"timestamp":60000,"input_length":9}`,
		"ids":         `{"timestamp":60000,"input_length":9,"hash_ids":[1]}`,
		"out of row":  `{"timestamp":1500,"input_length":9}`,
		"before all":  `{"timestamp":3,"input_length":9}`,
		"session":     `{"timestamp":60000,"input_length":9,"session_id":"s"}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := file(t, "in", manyRows(5000, last))
			out := filepath.Join(t.TempDir(), "a.trace")
			c, err := formats.Convert([]string{in}, formats.Options{}, formats.Target{Path: out})
			if err != nil {
				t.Fatal(err)
			}
			var stream bytes.Buffer
			d, err := formats.Convert([]string{in}, formats.Options{}, formats.Target{Path: "-", Stdout: &stream})
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, stream.Bytes()) || c.Figures != d.Figures {
				t.Errorf("the two ways differ: %+v, %+v", c.Figures, d.Figures)
			}
			if c.Figures.Requests != 5001 {
				t.Errorf("%d requests", c.Figures.Requests)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*"))
			if err != nil || len(left) != 1 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// The namespace is that of the rows, not of their spelling or their container.
func TestNamespace(t *testing.T) {
	a := openText(t, manyRows(100, row), formats.Options{}).header.Namespace
	b := openText(t, strings.ReplaceAll(manyRows(100, row), ":", " : "), formats.Options{}).header.Namespace
	c := openText(t, manyRows(101, row), formats.Options{}).header.Namespace
	d := openText(t, `{"timestamp":999,"input_length":1}`+"\n"+manyRows(100, row), formats.Options{}).header.Namespace
	if a != b || a != c || a == d || a == "" {
		t.Errorf("namespaces %s %s %s %s", a, b, c, d)
	}
}

func TestStrict(t *testing.T) {
	in := file(t, "in", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,7,8,15,API log\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	target := formats.Target{Path: out, Format: "mooncake"}
	c, err := formats.Convert([]string{in}, formats.Options{}, target)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, strings.Join(c.Lost, "\n"), "mooncake cannot carry: model (1 request)", "kind (1 request)")
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"timestamp":0,"input_length":7,"output_length":8}` + "\n"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	target.Strict = true
	target.Path = out + "2"
	if _, err := formats.Convert([]string{in}, formats.Options{}, target); !errors.Is(err, formats.ErrLost) {
		t.Errorf("strict: %v", err)
	}
	if _, err := os.Stat(target.Path); err == nil {
		t.Error("strict left an output")
	}
}

// Bodies of other formats go to Mooncake as payloads, whole.
func TestPayloadOfOthers(t *testing.T) {
	in := file(t, "in", `{"retrace":"requests/1","source":"other","origin_ns":0}
{"row":0,"arrival_ns":0,"api":"chat","body_text":"{\"messages\": [],\n \"n\":1.0}"}
{"row":1,"arrival_ns":0,"api":"chat","body_text":"no JSON","input_tokens":3}
{"row":2,"arrival_ns":0}`)
	var out bytes.Buffer
	c, err := formats.Convert([]string{in}, formats.Options{}, formats.Target{Path: "-", Format: "mooncake", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"timestamp":0,"payload":{"messages":[],"n":1.0}}
{"timestamp":0,"input_length":3}
`; out.String() != want {
		t.Errorf("got %s, want %s", &out, want)
	}
	contains(t, strings.Join(c.Lost, "\n"), "bodies that are no JSON objects (1 request)", "requests without input length or JSON body (1 request left out)")
	contains(t, strings.Join(c.Report.Losses, "\n"), "(1 request left out)")
	if !c.Report.Lossy() {
		t.Error("a request that was left out is no loss")
	}
}

// A row that no container could hold is a bad row, told as such and skipped.
func TestHugeRow(t *testing.T) {
	huge := `{"timestamp":0,"input_length":3,"x":"` + strings.Repeat("a", record.MaxRequestBytes) + `"}`
	in := file(t, "in", huge+"\n"+`{"timestamp":1,"input_length":3}`+"\n")
	_, err := formats.Convert([]string{in}, formats.Options{}, formats.Target{Path: in + ".trace"})
	if err == nil {
		t.Fatal("it was taken")
	}
	contains(t, err.Error(), "line 1 (byte 0): found 67108872 bytes, expected at most 67108864 in one row")
	c, err := formats.Convert([]string{in}, formats.Options{BadLines: formats.Skip}, formats.Target{Path: in + ".trace"})
	if err != nil || c.Report.Kept != 1 || c.Report.SkippedRows() != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A window that cuts off the turns which later increments build on says so.
func TestWindowCutsSessions(t *testing.T) {
	text := `{"timestamp":0,"session_id":"a","input_length":5,"output_length":1}
{"timestamp":0,"session_id":"b","input_length":5,"output_length":1}
{"timestamp":3000,"session_id":"a","delay":10,"input_length":2,"output_length":1}
{"timestamp":4000,"session_id":"b","input_length":9,"output_length":1}
{"timestamp":5000,"session_id":"c","input_length":5,"output_length":1}
{"session_id":"c","delay":10,"input_length":5,"output_length":1}
`
	for _, c := range []struct {
		sel  formats.Selection
		want string
	}{
		{formats.Selection{Start: time.Second}, "sessions of 1 turn that hold"},
		{formats.Selection{Start: time.Second, Limit: 1}, "sessions of 1 turn that hold"},
		{formats.Selection{Start: 4 * time.Second}, ""},
		{formats.Selection{End: time.Second}, ""},
		{formats.Selection{}, ""},
	} {
		in := file(t, "in", text)
		out, err := formats.Convert([]string{in}, formats.Options{Select: c.sel}, formats.Target{Path: in + ".trace"})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(out.Report.Warnings, "\n")
		if told := strings.Contains(got, "earlier turns"); told != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: warned %q, want %q", c.sel, got, c.want)
		}
	}
}

func TestSelectionOrder(t *testing.T) {
	var rows strings.Builder
	for i := range 20 {
		fmt.Fprintf(&rows, `{"timestamp":%d,"input_length":1,"output_length":%d,"session_id":"s%d"}`+"\n", 1000*(i+1), i, i%5)
	}
	open := func(s formats.Selection) opened { return openText(t, rows.String(), formats.Options{Select: s}) }

	got := open(formats.Selection{Start: 5 * time.Second, End: 15 * time.Second, Limit: 4, Speed: 2})
	if len(got.reqs) != 4 || got.reqs[0].OutputTokens != 5 || got.reqs[0].Arrival != 0 || got.reqs[3].Arrival != 1500*time.Millisecond {
		t.Errorf("window, limit, speed: %+v", got.reqs)
	}
	if got.header.Origin != 6*time.Second {
		t.Errorf("origin %s", got.header.Origin)
	}
	whole := open(formats.Selection{})
	sum := 0
	for i := range 3 {
		part := open(formats.Selection{Shard: i, Shards: 3})
		if part.header.Namespace != whole.header.Namespace || part.header.Origin != whole.header.Origin {
			t.Errorf("shard %d has another namespace or schedule", i)
		}
		bySession := map[string]int{}
		for _, r := range part.reqs {
			bySession[r.Session]++
			if r.Arrival != whole.reqs[r.Row].Arrival {
				t.Errorf("shard %d: row %d moved", i, r.Row)
			}
		}
		for s, n := range bySession {
			if n != 4 {
				t.Errorf("shard %d: session %s has %d of 4 turns", i, s, n)
			}
		}
		sum += len(part.reqs)
	}
	if sum != 20 {
		t.Errorf("the shards add up to %d", sum)
	}
}

// A turn with a delay alone stays with its session's last turn that has a time.
func TestSelectDelayed(t *testing.T) {
	rows := `{"timestamp":0,"input_length":1,"session_id":"a"}
{"timestamp":9000,"input_length":2,"session_id":"b"}
{"delay":100,"input_length":3,"session_id":"a"}
{"delay":200,"input_length":4,"session_id":"b"}`
	for _, c := range []struct {
		sel  formats.Selection
		want []int64
	}{
		{formats.Selection{}, []int64{1, 3, 2, 4}},
		{formats.Selection{End: time.Second}, []int64{1, 3}},
		{formats.Selection{Start: time.Second}, []int64{2, 4}},
	} {
		var got []int64
		for _, r := range openText(t, rows, formats.Options{Select: c.sel}).reqs {
			got = append(got, r.InputTokens)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %v, want %v", c.sel, got, c.want)
		}
	}
	r := openText(t, rows, formats.Options{Select: formats.Selection{Speed: 4}}).reqs[1]
	if r.Delay != 25*time.Millisecond || r.Arrival != record.NoTime {
		t.Errorf("--speed on a delay: %+v", r)
	}
}

// What Requests yields stays as it was, although the importer uses its memory
// again elsewhere.
func TestRequestsKeep(t *testing.T) {
	source := fixture(t, "mooncake_sample.jsonl")
	got := openText(t, string(source), formats.Options{})
	for i, line := range bytes.Split(bytes.TrimSpace(source), []byte("\n")) {
		var want struct {
			Blocks []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want.Blocks, got.reqs[i].Blocks) {
			t.Fatalf("row %d: blocks %v, want %v", i+1, got.reqs[i].Blocks, want.Blocks)
		}
	}
}
