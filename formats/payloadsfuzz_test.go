package formats

import (
	"strings"
	"testing"
	"time"

	"retrace/record"
)

// payloadsImport reads a text by the importer alone.
func payloadsImport(text string) (rows []record.Request, l *ledger, err error) {
	l = newLedger(Skip)
	src := &Source{Name: "fuzz.jsonl", in: strings.NewReader(text), ledger: l}
	p := &payloadsImporter{unit: time.Millisecond}
	err = p.Read(src, func(r *record.Request) error { rows = append(rows, *r); l.kept++; return nil })
	return rows, l, err
}

// FuzzPayloads: no text makes the reader panic or lose count, every request has
// an API and a body, and what is read is written as it stood.
func FuzzPayloads(f *testing.F) {
	for _, row := range []string{
		`{"model":"m","prompt":"a"}`, `{"timestamp":1.50,"api":"chat","body":{"messages":[]}}`, `{"delay":1,"session_id":"s","body":{"input":[1]}}`,
		`{"custom_id":"a","url":"/v1/rerank","body":{"query":"q","documents":[]}}`, `{"body":{"inputs":"x"},"odd":null,"timestamp":null}`,
		`{"body":{},"api":"chat"}`, `{"file":"x","model":"m"}`, "{\"messages\": [ ] ,\"model\":\"\\ud800\"}", `{"body":5}`,
	} {
		f.Add(row)
		f.Add(row + "\n" + row)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, l, err := payloadsImport(text)
		if err != nil {
			return
		}
		report := l.report()
		if err := report.Check(); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		e := newPayloadsExporter(&out, &record.Header{Source: "payloads", Unit: time.Millisecond})
		for i := range rows {
			if rows[i].API == "" || rows[i].Body == nil {
				t.Fatalf("%q: row %d has API %q, body %q", text, i, rows[i].API, rows[i].Body)
			}
			if err := e.Write(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		if len(report.Skipped) == 0 && !sameRows(text, out.String()) {
			t.Fatalf("%q: wrote %q", text, out.String())
		}
		if again, _, err := payloadsImport(out.String()); err != nil || len(again) != len(rows) {
			t.Fatalf("%q: wrote %q, which reads as %d rows of %d, %v", text, out.String(), len(again), len(rows), err)
		}
	})
}
