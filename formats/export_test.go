package formats

import (
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
