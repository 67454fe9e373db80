package formats

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"retrace/record"
)

// BenchmarkImport reads the fixtures over and over: the importers alone,
// without the container.
func BenchmarkImport(b *testing.B) {
	for _, c := range []struct {
		name, file string
		start      func() Importer
	}{
		{"burstgpt", "burstgpt3.csv", func() Importer { return newBurstImporter(ImportConfig{Unit: time.Second}) }},
		{"bailian", "bailian.jsonl", func() Importer {
			return newBailianImporter(ImportConfig{Unit: time.Second, BlockSize: bailianBlock})
		}},
		{"sagemaker", "sagemaker/chat-demo/AllTraffic/2025/02/03/04/10-05-123-b.jsonl", func() Importer { return newSageMakerImporter() }},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := filepath.Join(fixturesDir, filepath.FromSlash(c.file))
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			rows := data
			if c.name == "burstgpt" {
				_, rows, _ = bytes.Cut(data, []byte("\n"))
			}
			const times = 200
			data = append(bytes.Clone(data), bytes.Repeat(rows, times)...)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				src := &Source{Name: path, in: bytes.NewReader(data), ledger: newLedger(Fail)}
				if err := c.start().Read(src, func(*record.Request) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
