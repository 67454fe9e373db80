package formats

import (
	"bytes"
	"io"

	"retrace/record"
)

// ScanMooncake runs the importer alone, for the benchmark.
func ScanMooncake(in io.Reader, emit func(*record.Request) error) error {
	f, err := Lookup("mooncake")
	if err != nil {
		return err
	}
	src := &Source{Name: "bench", in: in, ledger: newLedger(Fail)}
	return f.NewImporter(ImportConfig{BlockSize: f.BlockSize, Unit: f.Unit}).Read(src, emit)
}

// Imported is what an import of one file in memory gives.
type Imported struct {
	Header record.Header
	Reqs   []record.Request
	Report Report
}

// ImportBytes runs an importer over data under --bad-lines skip, without files.
// Arrivals stay on the source's clock.
func ImportBytes(name string, data []byte) (Imported, error) {
	f, err := Lookup(name)
	if err != nil {
		return Imported{}, err
	}
	var got Imported
	j := &job{
		opts: Options{BadLines: Skip}, format: f, config: ImportConfig{BlockSize: f.BlockSize, Unit: f.Unit},
		in: &inputs{files: []input{{name: "memory"}}},
	}
	p := j.newPass(func(r *record.Request, _ int64) error {
		got.Reqs = append(got.Reqs, *r)
		return nil
	})
	p.src = &Source{Name: "memory", in: bytes.NewReader(data), ledger: p.ledger}
	if err := p.importer.Read(p.src, p.emit); err != nil {
		return got, err
	}
	got.Header, got.Report = p.header(), p.ledger.report()
	return got, got.Report.Check()
}

// ExportBytes writes what ImportBytes gave, in the source's order.
func ExportBytes(name string, got Imported) ([]byte, error) {
	f, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	h := got.Header
	for i := range got.Reqs {
		if got.Reqs[i].Arrival != record.NoTime {
			got.Reqs[i].Arrival -= h.Origin
		}
	}
	e := f.NewExporter(&b, &h)
	for i := range got.Reqs {
		if err := e.Write(&got.Reqs[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), e.Close()
}
