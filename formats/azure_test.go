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

// Carriage returns and a last row without an end; dates without a zone are UTC.
// 2023-11-16 18:17:03 UTC is 1700158623 (date -u +%s).
func TestAzure2023(t *testing.T) {
	all, tr := importText(t, "a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"+
		"2023-11-16 18:17:03.9799600,40,1\r\n2023-11-16 18:17:04.0319600,31,8")
	if len(all) != 2 || tr.Format.Name != "azure" {
		t.Fatalf("%d requests of %s", len(all), tr.Format.Name)
	}
	if want := 1700158623*time.Second + 979960*time.Microsecond; tr.Header.Origin != want || !tr.Header.Wall {
		t.Errorf("header %+v, want origin %s", tr.Header, want)
	}
	a, b := all[0], all[1]
	if a.InputTokens != 40 || a.OutputTokens != 1 || b.InputTokens != 31 || b.OutputTokens != 8 || b.Arrival != 52*time.Millisecond {
		t.Errorf("got %+v, %+v", a, b)
	}
	if len(a.Exceptions)+len(b.Exceptions) != 0 {
		t.Error("the form of 2023 is kept for each row")
	}
}

// A naive date, one with Z and one with an offset are the same instant, also
// in an hour that the machine's own zone skips.
func TestAzureZones(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("no zone data here:", err)
	}
	old := time.Local
	time.Local = zone
	defer func() { time.Local = old }()
	all, _ := importText(t, "a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-03-10 02:30:00,1,1\n"+
		"2024-03-10 02:30:00+00:00,1,1\n2024-03-10 02:30:00Z,1,1\n2024-03-10 03:30:00+01:00,1,1\n2024-03-10 03:30:00,1,1\n")
	for i, want := range []time.Duration{0, 0, 0, 0, time.Hour} {
		if all[i].Arrival != want {
			t.Errorf("row %d: at %s, want %s", i, all[i].Arrival, want)
		}
	}
}

// Images are counted, by the column's name; unknown is not none.
func TestAzureImages(t *testing.T) {
	all, tr := importText(t, "a.csv", "NumImages,GeneratedTokens,TIMESTAMP,ContextTokens\n2,12,2024-10-15 12:00:00.1,3301\n0,0,2024-10-15 12:00:01,5\n,3,2024-10-15 12:00:02,\n")
	if n := len(all[0].Media); n != 2 || all[0].Media[1] != (record.Media{Kind: "image", Bytes: record.Unknown}) || all[0].InputTokens != 3301 {
		t.Errorf("first row: %+v", all[0])
	}
	if len(all[1].Media) != 0 || !all[1].Observed.Failed || all[2].InputTokens != record.Unknown {
		t.Errorf("other rows: %+v, %+v", all[1], all[2])
	}
	var warnings string
	for _, w := range tr.Report().Warnings {
		warnings += w
	}
	wantIn(t, warnings, "does not say whether ContextTokens counts the tokens of images")
}

func TestAzureBadRows(t *testing.T) {
	for row, want := range map[string]string{
		"2023-13-01 00:00:00,1,1,1":    "a date such as",
		"1969-12-31 23:59:59,1,1,1":    "a date such as",
		",1,1,1":                       "no time",
		"2023-11-16 00:00:00,-1,1,1":   "an integer from 0 up",
		"2023-11-16 00:00:00,1,1.5,1":  "found 1.5",
		"2023-11-16 00:00:00,1,1,4097": "at most 4096 images",
		"2023-11-16 00:00:00,1,1":      "3 cells for 4 columns",
		"2023-11-16 00:00:00,1,1,\xff": "valid UTF-8",
	} {
		err := importError(t, "bad.csv", "TIMESTAMP,ContextTokens,GeneratedTokens,NumImages\n"+row+"\n", Options{})
		if err == nil {
			t.Errorf("%q: no error", row)
			continue
		}
		wantIn(t, err.Error(), "bad.csv", "line 2", want)
	}
}

// Scaled times keep the form of the source's dates.
func TestAzureSpeed(t *testing.T) {
	head := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	path := writeInput(t, "a.csv", head+"2024-05-12 00:00:00+00:00,1,1\n2024-05-12 00:00:01.250000+00:00,1,1\n 2024-05-12 00:00:03,1,1\n")
	want := head + "2024-05-12 00:00:00+00:00,1,1\n2024-05-12 00:00:00.625000+00:00,1,1\n2024-05-12 00:00:01.5000000,1,1\n"
	if got, _ := through(t, []string{path}, Options{Select: Selection{Speed: 2}}, "azure"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAzureForms(t *testing.T) {
	at := 1700158623*time.Second + 120*time.Millisecond
	for form, want := range map[string]string{
		" 7": "2023-11-16 18:17:03.1200000", " 0": "2023-11-16 18:17:03.12", "T3Z": "2023-11-16T18:17:03.120Z",
		" 6+00:00": "2023-11-16 18:17:03.120000+00:00", " 9": "2023-11-16 18:17:03.120000000",
	} {
		f, ok := parseAzureForm([]byte(form))
		if got := string(f.append(nil, at)); !ok || got != want || string(f.text()) != form {
			t.Errorf("%q: %q, %v, want %q", form, got, ok, want)
		}
	}
	for _, bad := range []string{"", " ", " :", "x7", " 7+01:00", " /"} {
		if _, ok := parseAzureForm([]byte(bad)); ok {
			t.Errorf("%q: taken", bad)
		}
	}
}

func TestAzureLoses(t *testing.T) {
	r := record.NewRequest()
	r.Observed.Failed = true
	r.Media = []record.Media{azureImage}
	if got := azureLoses(&r); got != "" {
		t.Errorf("a count: %q", got)
	}
	r.Observed.Latency = time.Second
	if got := azureLoses(&r); got == "" {
		t.Error("a latency is lost unsaid")
	}
	r.Media[0].Ref = "https://example.org/a.png"
	if got := azureLoses(&r); got != "media beyond the number of images" {
		t.Errorf("a URL: %q", got)
	}
}

// The published trace of 2023 has 8,819 requests, and comes back cell by cell.
func TestAzureRealFile(t *testing.T) {
	text := string(readShared(t, "azure/AzureLLMInferenceTrace_code.csv"))
	got, _ := through(t, []string{filepath.Join(sharedData, "azure/AzureLLMInferenceTrace_code.csv")}, Options{}, "azure")
	rows, want := readCSV(t, got), readCSV(t, text)
	if len(rows) != 8819+1 || len(want) != len(rows) {
		t.Fatalf("%d lines of %d", len(rows), len(want))
	}
	for i, w := range cellsOf(want) {
		for j, cell := range rows[i].cells {
			if cell != w[j] {
				t.Fatalf("line %d: %q, want %q", i+1, rows[i].cells, w)
			}
		}
	}
}

// FuzzAzure: what is read without a fault is written so that it is read again
// as the same.
func FuzzAzure(f *testing.F) {
	for _, name := range []string{"azure_2023.csv", "azure_2024.csv", "azure_lmm.csv"} {
		data, err := os.ReadFile(filepath.Join(fixturesDir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) { azureAgain(t, text) })
}

func azureAgain(t *testing.T, text string) {
	t.Helper()
	rows, h := azureRead(text)
	if len(h.Layout) == 0 {
		return
	}
	var out strings.Builder
	e := newAzureExporter(&out, &h)
	for i := range rows {
		if err := e.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := azureRead(out.String())
	if len(again) != len(rows) {
		t.Fatalf("%q: wrote %q: %d rows of %d", text, out.String(), len(again), len(rows))
	}
	for i := range rows {
		rows[i].Row, again[i].Row = 0, 0
		if !reflect.DeepEqual(rows[i], again[i]) {
			t.Fatalf("%q: row %d\n was %+v\n now %+v", text, i, rows[i], again[i])
		}
	}
}

// azureRead reads a file; what is bad is left out.
func azureRead(text string) ([]record.Request, record.Header) {
	a := newAzureImporter()
	var rows []record.Request
	_ = a.Read(&Source{in: strings.NewReader(text), ledger: newLedger(Skip)}, func(r *record.Request) error {
		rows = append(rows, *r)
		return nil
	})
	h := record.Header{Source: "azure"}
	a.Describe(&h)
	return rows, h
}
