package formats

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"retrace/record"
)

const (
	burstHead1 = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	burstHead3 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
)

// Columns go by name: release 3 has two of them in the middle.
func TestBurstColumnsByName(t *testing.T) {
	all, tr := importText(t, "b.csv", burstHead3+
		"70.0,s-aa1,4,GPT-4,120,30,150,Conversation log\n"+
		"71.0,,2,ChatGPT,64,0,64,API log\n")
	if tr.Format.Name != "burstgpt" {
		t.Fatalf("taken as %s", tr.Format.Name)
	}
	a, b := all[0], all[1]
	if a.InputTokens != 120 || a.OutputTokens != 30 || a.Session != "s-aa1" || a.Model != "GPT-4" ||
		a.Kind != "Conversation log" || a.Observed.Latency != 4*time.Second || a.Observed.Failed {
		t.Errorf("first row: %+v", a)
	}
	if b.InputTokens != 64 || b.OutputTokens != 0 || b.Session != "" || !b.Observed.Failed || b.Arrival != time.Second {
		t.Errorf("second row: %+v", b)
	}
	if tr.Header.Origin != 70*time.Second || tr.Header.TimeBasis != "arrival" || tr.Header.Wall {
		t.Errorf("header: %+v", tr.Header)
	}
	swapped, _ := importText(t, "c.csv", "Log Type,Response tokens,Timestamp,Request tokens\nAPI log,7,3,9\n")
	if r := swapped[0]; r.InputTokens != 9 || r.OutputTokens != 7 || r.Kind != "API log" {
		t.Errorf("swapped columns: %+v", r)
	}
}

// Rows without tokens are failures at the source; they are kept.
func TestBurstZeroTokens(t *testing.T) {
	all, tr := importText(t, "b.csv", burstHead1+"5,ChatGPT,0,0,0,API log\n9,ChatGPT,84,0,84,API log\n9,GPT-4,1,1,2,API log\n")
	if len(all) != 3 || !all[0].Observed.Failed || !all[1].Observed.Failed || all[2].Observed.Failed {
		t.Errorf("got %+v", all)
	}
	if r := tr.Report(); r.Read != 3 || r.Kept != 3 {
		t.Errorf("report: %+v", r)
	}
}

// The first row need not be at zero, nor near it.
func TestBurstOrigin(t *testing.T) {
	all, tr := importText(t, "b.csv", burstHead1+"19440110.25,ChatGPT,1,2,3,API log\n19440111,ChatGPT,1,2,3,API log\n")
	if all[0].Arrival != 0 || all[1].Arrival != 750*time.Millisecond {
		t.Errorf("arrivals %s, %s", all[0].Arrival, all[1].Arrival)
	}
	if want := 19440110*time.Second + 250*time.Millisecond; tr.Header.Origin != want {
		t.Errorf("origin %s, want %s", tr.Header.Origin, want)
	}
}

// burstOdd are cells that no exporter would write, each in a row that is read.
var burstOdd = []string{
	burstHead1 + "5,ChatGPT,472,18,490,Conversation log\n",
	burstHead3 + "5.0,,4.50,ChatGPT,472,18,490,API log\n5.10,x,,GPT-4,1,0,1,Conversation log\n",
	burstHead1 + " 5,ChatGPT,+472,018,490.0,Conversation log\n005,m, 7,8e0,15,x\n",
	burstHead1 + "5,ChatGPT,472,18,999,Conversation log\n6,ChatGPT,,,,\n7,,1,,1,\n",
	burstHead1 + "5.000000000001,ChatGPT,1,2,3,a\n5.0000000009,ChatGPT,1,2, ,a\n",
	burstHead1 + "1.5e3,ChatGPT,1,2,3.00,a\n.5,ChatGPT,1,2,3,a\n5.,ChatGPT,-0,2,2,a\n",
	burstHead1 + "9,a,1,2,3,a\n3,b,1,2,3,a\n9,c,1,2,3,a\n",
	burstHead1 + "9,\"GPT-4, \"\"turbo\"\"\",1,2,3,\"two\nlines\"\n10,é,1,2,3, spaces \n",
	"Model,note,Timestamp,Request tokens,Response tokens,\"x,y\"\nGPT-4,n1,1,2,3,\nGPT-4,,2,2,3,q\n",
	",Timestamp , Request tokens,Response tokens\n0,1,2,3\n1,2,2,3\n",
	burstHead1,
}

// What a BurstGPT file holds comes back cell by cell, in its order.
func TestBurstLossless(t *testing.T) {
	for i, text := range burstOdd[:len(burstOdd)-1] {
		got, _ := through(t, []string{writeInput(t, "b.csv", text)}, Options{}, "burstgpt")
		if want := readCSV(t, text); !reflect.DeepEqual(cellsOf(readCSV(t, got)), cellsOf(want)) {
			t.Errorf("%d:\n got %q\nwant %q", i, got, text)
		}
	}
}

func cellsOf(rows []csvRow) (cells [][]string) {
	for _, r := range rows {
		cells = append(cells, r.cells)
	}
	return cells
}

// The layout is the trace's, not its first row's: a window keeps it.
func TestBurstLayoutSurvivesWindow(t *testing.T) {
	text := "note,Timestamp,Request tokens,Response tokens\nx,1,2,3\ny,5,2,3\n"
	got, _ := through(t, []string{writeInput(t, "b.csv", text)}, Options{Select: Selection{Start: 2 * time.Second}}, "burstgpt")
	if want := "note,Timestamp,Request tokens,Response tokens\ny,5,2,3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Scaled times are written anew; of the old literal only its zeros may stay.
func TestBurstSpeed(t *testing.T) {
	text := burstHead1 + "10.0,a,1,2,3,x\n+11,a,1,2,3,x\n12.0,a,5.0,2,7,x\n"
	path := writeInput(t, "b.csv", text)
	want := burstHead1 + "10.0,a,1,2,3,x\n10.5,a,1,2,3,x\n11.0,a,5.0,2,7,x\n"
	if got, _ := through(t, []string{path}, Options{Select: Selection{Speed: 2}}, "burstgpt"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBurstBadRows(t *testing.T) {
	good := "1,ChatGPT,1,2,3,API log\n"
	for _, c := range []struct {
		name, row string
		want      []string
	}{
		{"trailing comma", "5,ChatGPT,10,2,12,API log,", []string{"line 3", "7 cells for 6 columns"}},
		{"ragged", "5,ChatGPT,10", []string{"line 3", "3 cells for 6 columns"}},
		{"comment", "# comment", []string{"line 3", "1 cells for 6 columns"}},
		{"infinite time", "inf,ChatGPT,1,2,3,a", []string{"line 3", `"Timestamp"`, "found inf", "a number from 0 up (seconds)"}},
		{"NaN", "NaN,ChatGPT,1,2,3,a", []string{`"Timestamp"`, "found NaN"}},
		{"negative time", "-5,ChatGPT,1,2,3,a", []string{`"Timestamp"`, "found -5"}},
		{"absurd time", "1e400,ChatGPT,1,2,3,a", []string{`"Timestamp"`, "found 1e400"}},
		{"hexadecimal", "0x10,ChatGPT,1,2,3,a", []string{`"Timestamp"`, "found 0x10"}},
		{"no time", ",ChatGPT,1,2,3,a", []string{`"Timestamp"`, "no time"}},
		{"negative tokens", "5,ChatGPT,-5,2,3,a", []string{`"Request tokens"`, "found -5", "an integer from 0 up"}},
		{"half a token", "5,ChatGPT,1,2.5,3,a", []string{`"Response tokens"`, "found 2.5"}},
		{"NaN tokens", "5,ChatGPT,1,NaN,3,a", []string{`"Response tokens"`, "found NaN"}},
		{"infinite total", "5,ChatGPT,1,2,inf,a", []string{`"Total tokens"`, "found inf"}},
		{"not UTF-8", "5,Chat\xff,1,2,3,a", []string{"valid UTF-8"}},
		{"stray quote", "5,Ch\"at,1,2,3,a", []string{"a quote inside a cell"}},
		{"open quote", "\"5,ChatGPT,1,2,3,a", []string{"a quote is not closed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := burstHead1 + good + c.row + "\n" + good
			err := importError(t, "bad.csv", text, Options{})
			if err == nil {
				t.Fatal("no error")
			}
			wantIn(t, err.Error(), append(c.want, "bad.csv", "line 3")...)
			all, tr := importAll(t, []string{writeInput(t, "bad.csv", text)}, Options{BadLines: Skip})
			r := tr.Report()
			if len(all) != 2 || r.Read != 3 || r.Kept != 2 || r.SkippedRows() != 1 || !r.Lossy() {
				t.Errorf("skip: %d requests, report %+v", len(all), r)
			}
		})
	}
}

func TestBurstBadHeaders(t *testing.T) {
	for text, want := range map[string]string{
		"Timestamp,Model\n1,a\n": "Request tokens",
		"Timestamp,Request tokens,Response tokens,Timestamp\n1,2,3,4\n": "occurs twice",
		"5,ChatGPT,1,2,3,API log\n":                                     "no column",
		"Timestamp,Request tokens,\"Response tokens\n1,2,3\n":           "a quote is not closed",
		"Timestamp,Request tokens,Response tokens,\xff\n1,2,3,4\n":      "not valid UTF-8",
	} {
		err := importError(t, "b.csv", text, Options{From: "burstgpt"})
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		wantIn(t, err.Error(), want, "b.csv")
	}
}

// Several releases make one trace; its columns are those of both.
func TestBurstSeveralFiles(t *testing.T) {
	a := writeInput(t, "a.csv", burstHead1+"5,ChatGPT,1,2,3,API log\n")
	b := writeInput(t, "b.csv", "\xef\xbb\xbf"+strings.ReplaceAll(burstHead3, "\n", "\r\n")+"\r\n7.5,s,4,GPT-4,1,2,3,Conversation log")
	got, first := through(t, []string{a, b}, Options{}, "burstgpt")
	want := "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type,Session ID,Elapsed time\n" +
		"5,ChatGPT,1,2,3,API log,,\n7.5,GPT-4,1,2,3,Conversation log,s,4\n"
	if got != want || first.Figures.Requests != 2 {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The real rows, as the publisher's page shows them: 42 rows, 4 of them zero
// on both sides; the sum is awk's.
func TestBurstRealRows(t *testing.T) {
	text := string(readShared(t, "burstgpt/BurstGPT_1_first_rows.csv"))
	all, _ := importText(t, "b.csv", text)
	failed, in := 0, int64(0)
	for _, r := range all {
		in += r.InputTokens
		if r.Observed.Failed {
			failed++
		}
	}
	if len(all) != 42 || failed != 4 || in != 28681 {
		t.Errorf("%d rows, %d failed, %d input tokens", len(all), failed, in)
	}
	got, _ := through(t, []string{writeInput(t, "b.csv", text)}, Options{}, "burstgpt")
	if got != text {
		t.Errorf("the file does not come back:\n%s", got)
	}
}

// The fixtures come back byte by byte: they are as an exporter writes them.
func TestBurstFixtures(t *testing.T) {
	for _, name := range []string{"burstgpt.csv", "burstgpt3.csv"} {
		want, err := os.ReadFile(filepath.Join(fixturesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := through(t, []string{filepath.Join(fixturesDir, name)}, Options{}, "burstgpt"); got != string(want) {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

// A trace with sessions goes to the columns of release 3, one without to those
// of 1; what they cannot hold is listed.
func TestBurstFromMooncake(t *testing.T) {
	path := writeInput(t, "m.jsonl", `{"timestamp":1500,"input_length":600,"output_length":4,"hash_ids":[1,2]}`+"\n")
	got, _ := through(t, []string{path}, Options{}, "burstgpt")
	if want := burstHead1 + "1.5,,600,4,604,API log\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	path = writeInput(t, "s.jsonl", `{"session_id":"s","timestamp":1500,"input_length":600}`+"\n"+
		`{"session_id":"s","delay":250,"input_length":10,"output_length":1}`+"\n")
	got, _ = through(t, []string{path}, Options{}, "burstgpt")
	want := burstHead3 + "1.5,s,,,600,,,Conversation log\n1.75,s,,,10,1,11,Conversation log\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBurstLost(t *testing.T) {
	path := writeInput(t, "m.jsonl", `{"timestamp":1500,"input_length":600,"output_length":4,"hash_ids":[1,2]}`+"\n")
	c, err := Convert([]string{path}, Options{}, Target{Path: filepath.Join(t.TempDir(), "o.csv"), Format: "burstgpt"})
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, strings.Join(c.Lost, "\n"), "prefix blocks")
}

// burstImport reads a text by the importer alone.
func burstImport(text string) (rows []record.Request, l *ledger, err error) {
	l = newLedger(Skip)
	src := &Source{Name: "fuzz.csv", in: strings.NewReader(text), ledger: l}
	b := newBurstImporter(ImportConfig{Unit: time.Second})
	err = b.Read(src, func(r *record.Request) error { rows = append(rows, *r); l.kept++; return nil })
	return rows, l, err
}

// FuzzBurstGPT: no text makes the reader panic or lose count, and what it
// reads it writes so that it reads the same again.
func FuzzBurstGPT(f *testing.F) {
	for _, s := range burstOdd {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, l, err := burstImport(text)
		if err != nil {
			return
		}
		report := l.report()
		if err := report.Check(); err != nil {
			t.Fatal(err)
		}
		b := newBurstImporter(ImportConfig{Unit: time.Second})
		h := record.Header{Source: "burstgpt", Unit: time.Second}
		_ = b.Read(&Source{in: strings.NewReader(text), ledger: newLedger(Skip)}, func(*record.Request) error { return nil })
		b.Describe(&h)
		var out strings.Builder
		e := newBurstExporter(&out, &h)
		for i := range rows {
			if err := e.Write(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		again, l, err := burstImport(out.String())
		if len(h.Layout) == 0 {
			return
		}
		if err != nil || l.read != l.kept || len(again) != len(rows) {
			t.Fatalf("%q: wrote %q, which reads as %d rows of %d, %v, %v", text, out.String(), len(again), len(rows), l.first, err)
		}
		for i := range rows {
			rows[i].Row, again[i].Row = 0, 0
			if !reflect.DeepEqual(rows[i], again[i]) {
				t.Fatalf("%q: row %d\n was %+v\n now %+v", text, i, rows[i], again[i])
			}
		}
	})
}

// A stored trace knows which of the kept literals are times.
func TestBurstSpeedOfStored(t *testing.T) {
	path := writeInput(t, "b.csv", burstHead1+"10.0,a,1,2,3,x\n+12,a,1,2,3,x\n")
	trace := filepath.Join(t.TempDir(), "a.trace")
	if _, err := Convert([]string{path}, Options{}, Target{Path: trace}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	_, err := Convert([]string{trace}, Options{Select: Selection{Speed: 2}}, Target{Path: "-", Format: "burstgpt", Stdout: &out})
	if want := burstHead1 + "10.0,a,1,2,3,x\n11,a,1,2,3,x\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
}
