package formats

import (
	"fmt"
	"strings"
	"testing"

	"retrace/record"
)

// sageMakerImport reads a text by the importer alone.
func sageMakerImport(text string) (rows []record.Request, l *ledger, err error) {
	l = newLedger(Skip)
	src := &Source{Name: "fuzz.jsonl", in: strings.NewReader(text), ledger: l}
	err = newSageMakerImporter().Read(src, func(r *record.Request) error { rows = append(rows, *r); l.kept++; return nil })
	return rows, l, err
}

// FuzzSageMaker: no text makes the reader panic or lose count, and what is
// read is written as it stood.
func FuzzSageMaker(f *testing.F) {
	for _, encoding := range []string{"JSON", "BASE64", "x"} {
		f.Add(captureText(sideText("INPUT", `{"prompt":[1,2],"max_tokens":3}`, encoding), sideText("OUTPUT", `{"usage":{"prompt_tokens":2}}`, "JSON"), someTime))
	}
	f.Add(captureText(sideText("INPUT", "a,b", "CSV"), "", "2025-02-03T04:05:06+02:00"))
	f.Add(captureText("", "", someTime))
	f.Add(fmt.Sprintf(`{"captureData":{"endpointInput":{"data":%q}},"eventMetadata":{"inferenceTime":%q}}`, `{"messages":[]}`, someTime))
	f.Fuzz(func(t *testing.T, text string) {
		rows, l, err := sageMakerImport(text)
		if err != nil {
			return
		}
		report := l.report()
		if err := report.Check(); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		e := newSageMakerExporter(&out, &record.Header{Source: "sagemaker"})
		for i := range rows {
			if err := e.Write(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if len(report.Skipped) == 0 && !sameRows(text, out.String()) {
			t.Fatalf("%q: wrote %q", text, out.String())
		}
		if again, _, err := sageMakerImport(out.String()); err != nil || len(again) != len(rows) {
			t.Fatalf("%q: wrote %q, which reads as %d rows of %d, %v", text, out.String(), len(again), len(rows), err)
		}
	})
}

// FuzzCaptureBody: no body or answer makes the reader panic, and counts are
// never negative but Unknown.
func FuzzCaptureBody(f *testing.F) {
	for _, s := range []string{`{"prompt":[1]}`, `[{"generated_text":"a"}]`, "data: {\"token\":{}}\n\ndata: [DONE]", "1,2\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, out := readInputBody(data), readOutputBody(data)
		for _, n := range []int64{in.input, in.wanted, out.input, out.output} {
			if n < record.Unknown {
				t.Fatalf("%q: count %d", data, n)
			}
		}
	})
}
