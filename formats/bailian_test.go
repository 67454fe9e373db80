package formats

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"retrace/record"
)

// chat is a small Bailian row.
func chat(id, parent, seconds string) string {
	return `{"chat_id": ` + id + `, "parent_chat_id": ` + parent + `, "timestamp": ` + seconds +
		`, "input_length": 20, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [1, 2]}` + "\n"
}

func TestBailianRow(t *testing.T) {
	all, tr := importText(t, "q.jsonl", `{"chat_id": 160, "parent_chat_id": 159, "timestamp": 62.5, "input_length": 40, `+
		`"output_length": 12, "type": "search", "turn": 2, "hash_ids": [1089, 9007199254740993, 18446744073709551615]}`+"\n")
	r := all[0]
	if tr.Format.Name != "bailian" || tr.Header.BlockSize != 16 || tr.Header.Turns != "full" ||
		tr.Header.Origin != 62500*time.Millisecond || tr.Header.DelayMeaning != "" {
		t.Errorf("header: %+v", tr.Header)
	}
	if r.ID != "160" || r.Parent != "159" || r.Session != "159" || r.InputTokens != 40 || r.OutputTokens != 12 ||
		r.Kind != "search" || r.Turn != 2 || r.Increment || r.Delay != record.NoTime || r.Exceptions != nil {
		t.Errorf("row: %+v", r)
	}
	if want := []uint64{1089, 1<<53 + 1, 1<<64 - 1}; !reflect.DeepEqual(r.Blocks, want) {
		t.Errorf("blocks %d, want %d", r.Blocks, want)
	}
}

// A session is the tree under one root; branches belong to it as well, and a
// parent may come later, or never.
func TestBailianSessions(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]string // chat → session
	}{
		{"a chain and a branch", chat("1", "-1", "0") + chat("2", "1", "1") + chat("3", "2", "2") + chat("4", "1", "3"),
			map[string]string{"1": "1", "2": "1", "3": "1", "4": "1"}},
		{"two trees", chat("1", "-1", "0") + chat("2", "-1", "1") + chat("3", "2", "2") + chat("4", "1", "3"),
			map[string]string{"1": "1", "2": "2", "3": "2", "4": "1"}},
		{"a parent outside the file", chat("8", "7", "0") + chat("9", "8", "1") + chat("10", "7", "2"),
			map[string]string{"8": "7", "9": "7", "10": "7"}},
		{"children before their parents", chat("3", "2", "0") + chat("2", "1", "1") + chat("1", "-1", "2"),
			map[string]string{"1": "1", "2": "1", "3": "1"}},
		{"spelt otherwise", chat("3", "2.0", "0") + strings.ReplaceAll(chat("2", "1e0", "1"), ": ", ":") + chat("1", "null", "2"),
			map[string]string{"1": "1", "2": "1", "3": "1"}},
		{"a circle", chat("5", "6", "0") + chat("6", "7", "1") + chat("7", "5", "2") + chat("8", "6", "3"),
			map[string]string{"5": "5", "6": "5", "7": "5", "8": "5"}},
		{"a session of its own", strings.Replace(chat("2", "1", "0"), "{", `{"session_id": "x", `, 1) +
			strings.Replace(chat("3", "1", "1"), "{", `{"session_id": 12, `, 1),
			map[string]string{"2": "x", "3": "12"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, _ := importText(t, "q.jsonl", c.text)
			got := map[string]string{}
			for _, r := range all {
				got[r.ID] = r.Session
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A long chain in the wrong order is followed to its end, in short time.
func TestBailianLongChain(t *testing.T) {
	trees := newChatTrees()
	const n = 200_000
	for i := uint64(1); i < n; i++ {
		trees.add(i, i-1)
	}
	if got := trees.root(n - 1); got != 0 {
		t.Errorf("root %d", got)
	}
	trees = newChatTrees()
	for i := range uint64(n) {
		trees.add(i+3, (i+1)%n+3)
	}
	for i := range uint64(n) {
		if got := trees.root(i + 3); got != 3 {
			t.Fatalf("root of %d in the circle: %d", i+3, got)
		}
	}
}

// Branches are no consecutive turns: each keeps its own parent and turn.
func TestBailianBranches(t *testing.T) {
	all, _ := importText(t, "q.jsonl", chat("1", "-1", "0")+
		strings.Replace(chat("2", "1", "1"), `"turn": 1`, `"turn": 2`, 1)+
		strings.Replace(chat("3", "1", "2"), `"turn": 1`, `"turn": 2`, 1))
	for _, r := range all[1:] {
		if r.Parent != "1" || r.Turn != 2 {
			t.Errorf("chat %s: parent %s, turn %d", r.ID, r.Parent, r.Turn)
		}
	}
}

// A file that is cut from a longer one, in two pieces: the trees go across.
func TestBailianTwoFiles(t *testing.T) {
	a := writeInput(t, "a.jsonl", chat("1", "-1", "0")+chat("2", "1", "1"))
	b := writeInput(t, "b.jsonl", chat("3", "2", "2"))
	for _, paths := range [][]string{{a, b}, {b, a}} {
		all, _ := importAll(t, paths, Options{})
		if all[2].Session != "1" || all[2].ID != "3" {
			t.Errorf("%v: got %+v", paths, all[2])
		}
	}
}

func TestBailianTwice(t *testing.T) {
	_, tr := importText(t, "q.jsonl", chat("1", "-1", "0")+chat("1", "-1", "1"))
	wantIn(t, strings.Join(tr.Report().Warnings, "\n"), "chat_id occurs more than once")
}

// The last block may be partial; a block too few or too many is an error that
// names the sizes that would fit.
func TestBailianBlocks(t *testing.T) {
	row := `{"chat_id":1,"parent_chat_id":-1,"timestamp":0,"input_length":%d,"output_length":1,"hash_ids":[%s]}` + "\n"
	for _, c := range []struct {
		tokens int
		ids    string
		want   []string
	}{
		{20, "1,2", nil},
		{32, "1,2", nil},
		{17, "1,2", nil},
		{16, "1", nil},
		{756, strings.Repeat("7,", 47) + "8", nil},
		{33, "1,2", []string{"line 1", `"hash_ids"`, "1 block short", "--block-size 17–32"}},
		{16, "1,2", []string{"1 block too many"}},
		{1300, "7,8,9", []string{"434–649", "512"}},
		{20, "1,-1", []string{`"hash_ids"`, "found -1", "2^64"}},
		{20, "1,18446744073709551616", []string{"found 18446744073709551616"}},
		{20, "1,0.5", []string{"found 0.5"}},
		{20, `1,"2"`, []string{`found "2"`}},
	} {
		err := importError(t, "q.jsonl", fmt.Sprintf(row, c.tokens, c.ids), Options{})
		switch {
		case c.want == nil && err != nil:
			t.Errorf("%d tokens, ids %s: %v", c.tokens, c.ids, err)
		case c.want != nil && err == nil:
			t.Errorf("%d tokens, ids %s: no error", c.tokens, c.ids)
		case c.want != nil:
			wantIn(t, err.Error(), c.want...)
		}
	}
}

// A follow-up need not hold its parent's prompt exactly.
func TestBailianContextGrows(t *testing.T) {
	all, _ := importText(t, "q.jsonl",
		`{"chat_id":1,"parent_chat_id":-1,"timestamp":0,"input_length":40,"output_length":1,"turn":1,"hash_ids":[1,2,3]}`+"\n"+
			`{"chat_id":2,"parent_chat_id":1,"timestamp":1,"input_length":60,"output_length":1,"turn":2,"hash_ids":[1,2,8,9]}`+"\n")
	if all[1].InputTokens != 60 || all[1].Increment || len(all[1].Blocks) != 4 {
		t.Errorf("%+v", all[1])
	}
}

// time_to_parent_chat is a delay, and a row that has one is whole all the same.
func TestBailianDelay(t *testing.T) {
	all, tr := importText(t, "q.jsonl", chat("1", "-1", "0")+
		strings.Replace(chat("2", "1", "9"), "{", `{"time_to_parent_chat": 1.219, `, 1)+
		strings.Replace(chat("3", "2", "10"), "{", `{"time_to_parent_chat": -0.5, `, 1))
	if all[1].Delay != 1219*time.Millisecond || all[1].Increment || tr.Header.Turns != "full" || tr.Header.DelayMeaning != parentDelay {
		t.Errorf("%+v, header %+v", all[1], tr.Header)
	}
	if all[2].Delay != record.NoTime {
		t.Errorf("a negative delay was taken: %s", all[2].Delay)
	}
}

var bailianOdd = []string{
	chat("1", "-1", "0"),
	chat("1", "-1", "61.11400000001") + chat("2", "1", "62.50"),
	chat("5", "9", "3") + chat("9", "-1", "1") + chat("6", "5", "2.000"),
	`{"chat_id":1,"parent_chat_id":null,"timestamp":1e0,"input_length":null,"output_length":0,"type":null,"turn":null,"hash_ids":[]}` + "\n",
	`{"chat_id":1.0,"parent_chat_id":-1.0,"timestamp":1,"hash_ids":null}` + "\n",
	`{"timestamp":1,"chat_id":7,"input_length":5.0,"turn":0,"type":"","x":{"a":[1.0,null]},"y":null,"session_id":null}` + "\n" +
		`{"timestamp":1,"chat_id":8,"session_id":"\u00e9","time_to_parent_chat":0.250,"type":"\u0074ext","turn":3.0}` + "\n",
	`{"chat_id":1,"parent_chat_id":-1,"timestamp":2,"input_length":17,"hash_ids":[5.0,18446744073709551615],"type":"\ud800"}` + "\n",
	`{"chat_id":0,"parent_chat_id":18446744073709551615,"timestamp":0,"session_id":12,"time_to_parent_chat":-3.5}` + "\n",
}

func TestBailianLossless(t *testing.T) {
	for _, text := range bailianOdd {
		if strings.Contains(text, `-1.0`) {
			text = strings.Replace(text, "-1.0", "-1", 1)
		}
		got, _ := through(t, []string{writeInput(t, "q.jsonl", text)}, Options{}, "bailian")
		sameJSONLines(t, got, text)
	}
}

func TestBailianBadRows(t *testing.T) {
	for _, c := range []struct {
		row  string
		want []string
	}{
		{`{"chat_id":1,"chat_id":2,"timestamp":0}`, []string{`"chat_id"`, "twice"}},
		{`{"chat_id":1,"parent_chat_id":1,"timestamp":0}`, []string{`"parent_chat_id"`, "another chat"}},
		{`{"chat_id":1,"parent_chat_id":-2,"timestamp":0}`, []string{`"parent_chat_id"`, "found -2", "or -1"}},
		{`{"chat_id":"1","timestamp":0}`, []string{`"chat_id"`, "an integer"}},
		{`{"chat_id":1,"timestamp":-5}`, []string{`"timestamp"`, "found -5"}},
		{`{"chat_id":1,"timestamp":"NaN"}`, []string{`"timestamp"`, `found "NaN"`}},
		{`{"chat_id":1,"timestamp":1e400}`, []string{`"timestamp"`, "found 1e400"}},
		{`{"chat_id":1,"input_length":5}`, []string{`"timestamp"`, "no time"}},
		{`{"chat_id":1,"timestamp":0,"type":7}`, []string{`"type"`, "found 7", "a string"}},
		{`{"chat_id":1,"timestamp":0,"turn":-1}`, []string{`"turn"`, "found -1"}},
		{`{"chat_id":1,"timestamp":0,"input_length":2.5}`, []string{`"input_length"`, "found 2.5"}},
		{`{"chat_id":1,"timestamp":0,"hash_ids":{}}`, []string{`"hash_ids"`, "an array"}},
		{`{"chat_id":1,"timestamp":0,"hash_ids":[1]}`, []string{`"input_length"`, "found none"}},
		{`{"chat_id":1,"timestamp":0,"session_id":[1]}`, []string{`"session_id"`, "a string"}},
		{`{"chat_id":1,"timestamp":0,"time_to_parent_chat":"1"}`, []string{`"time_to_parent_chat"`}},
		{`{"chat_id":1,"timestamp":1,}`, []string{"found }, expected a key in double quotes"}},
		{`# comment`, []string{"found # comment, expected a JSON object"}},
		{`{"chat_id":1,"times`, []string{"found the end of the row, expected the end of the string"}},
	} {
		text := chat("8", "-1", "0") + c.row + "\n\n" + chat("9", "-1", "1")
		err := importError(t, "bad.jsonl", text, Options{})
		if err == nil {
			t.Errorf("%s: no error", c.row)
			continue
		}
		wantIn(t, err.Error(), append(c.want, "bad.jsonl", "line 2")...)
		all, tr := importAll(t, []string{writeInput(t, "bad.jsonl", text)}, Options{BadLines: Skip})
		if r := tr.Report(); len(all) != 2 || r.SkippedRows() != 1 || r.Read != 3 {
			t.Errorf("%s: skip: %d requests, report %+v", c.row, len(all), r)
		}
	}
}

// null in a row is not the value of the row before.
func TestBailianNullIsUnknown(t *testing.T) {
	all, _ := importText(t, "q.jsonl", `{"chat_id":1,"timestamp":0,"input_length":9,"output_length":7}`+"\n"+
		`{"chat_id":2,"timestamp":0,"input_length":9,"output_length":null}`+"\n"+`{"chat_id":3,"timestamp":0,"output_length":0}`+"\n")
	if all[1].OutputTokens != record.Unknown || all[2].OutputTokens != 0 || !all[2].Observed.Failed || all[2].InputTokens != record.Unknown {
		t.Errorf("got %+v", all)
	}
}

func TestBailianFixture(t *testing.T) {
	path := filepath.Join(fixturesDir, "bailian.jsonl")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, first := through(t, []string{path}, Options{}, "bailian")
	sameJSONLines(t, got, string(want))
	// Eight trees: seven roots in the file, and chat 7 outside it.
	all, _ := importAll(t, []string{path}, Options{})
	sessions := map[string]bool{}
	for _, r := range all {
		sessions[r.Session] = true
	}
	if len(sessions) != 8 || !sessions["7"] || first.Header.BlockSize != 16 {
		t.Errorf("sessions %v, header %+v", sessions, first.Header)
	}
}

// A block of 64 tokens is four of 16; sessions become chats and their parents.
func TestBailianFromMooncake(t *testing.T) {
	path := writeInput(t, "m.jsonl",
		`{"timestamp":0,"input_length":100,"output_length":5,"hash_ids":[3,4],"session_id":"s"}`+"\n"+
			`{"timestamp":500,"input_length":64,"output_length":5,"hash_ids":[18446744073709551615]}`+"\n"+
			`{"timestamp":1500,"input_length":130,"output_length":5,"hash_ids":[3,4,9],"session_id":"s"}`+"\n")
	got, _ := through(t, []string{path}, Options{BlockSize: 64}, "bailian")
	all, tr := importText(t, "q.jsonl", got)
	if tr.Format.Name != "bailian" || len(all) != 3 {
		t.Fatalf("%s: %s", tr.Format.Name, got)
	}
	if want := []uint64{12, 13, 14, 15, 16, 17, 18}; !reflect.DeepEqual(all[0].Blocks, want) {
		t.Errorf("blocks %d, want %d", all[0].Blocks, want)
	}
	if len(all[1].Blocks) != 4 || all[1].Session == all[0].Session {
		t.Errorf("second: %+v", all[1])
	}
	if r := all[2]; r.Parent != all[0].ID || r.Session != all[0].Session || r.Turn != 2 || r.Arrival != 1500*time.Millisecond || r.Kind != "text" {
		t.Errorf("third: %+v", r)
	}
}

// bailianImport reads a text by the importer alone.
func bailianImport(text string) (rows []record.Request, l *ledger, err error) {
	l = newLedger(Skip)
	src := &Source{Name: "fuzz.jsonl", in: strings.NewReader(text), ledger: l}
	b := newBailianImporter(ImportConfig{Unit: time.Second, BlockSize: bailianBlock})
	b.readTrees(strings.NewReader(text))
	err = b.readRows(src, func(r *record.Request) error { rows = append(rows, *r); l.kept++; return nil })
	return rows, l, err
}

// FuzzBailian: no text makes the reader panic or lose count, and what is read
// is written as it stood.
func FuzzBailian(f *testing.F) {
	for _, s := range bailianOdd {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, l, err := bailianImport(text)
		if err != nil {
			return
		}
		report := l.report()
		if err := report.Check(); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		e := newBailianExporter(&out, &record.Header{Source: "bailian", Unit: time.Second})
		for i := range rows {
			if err := e.Write(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		again, l, err := bailianImport(out.String())
		if err != nil || l.read != l.kept || len(again) != len(rows) {
			t.Fatalf("%q: wrote %q, which reads as %d rows of %d, %v, %v", text, out.String(), len(again), len(rows), l.first, err)
		}
		if len(report.Skipped) == 0 && !sameRows(text, out.String()) {
			t.Fatalf("%q: wrote %q", text, out.String())
		}
	})
}

func sameRows(a, b string) bool {
	var y []string
	if b = strings.TrimSuffix(b, "\n"); b != "" {
		y = strings.Split(b, "\n")
	}
	i := 0
	for line := range strings.Lines(strings.TrimPrefix(a, "\xef\xbb\xbf")) {
		row := trimLine([]byte(strings.TrimSuffix(line, "\n")))
		if len(row) == 0 {
			continue
		}
		if i >= len(y) || !EqualValue(row, []byte(y[i])) {
			return false
		}
		i++
	}
	return i == len(y)
}

// What becomes of blocks that are not of 16 tokens is said.
func TestBailianBlockSizes(t *testing.T) {
	for size, want := range map[int]string{
		64: "each block of 64 tokens was written as 4 of 16", 40: "left out", 16: "",
	} {
		path := writeInput(t, "m.jsonl", fmt.Sprintf(`{"timestamp":0,"input_length":%d,"hash_ids":[3,4]}`+"\n", 2*size-1))
		out := filepath.Join(t.TempDir(), "q.jsonl")
		c, err := Convert([]string{path}, Options{BlockSize: size}, Target{Path: out, Format: "bailian"})
		if err != nil {
			t.Fatal(err)
		}
		if warned := strings.Join(c.Report.Warnings, "\n"); want == "" && warned != "" || !strings.Contains(warned, want) {
			t.Errorf("size %d: warnings %q", size, warned)
		}
		all, _ := importAll(t, []string{out}, Options{})
		if n := len(all[0].Blocks); size == 40 && n != 0 || size != 40 && n != 2*size/16 {
			t.Errorf("size %d: %d blocks", size, n)
		}
	}
}
