package formats_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"retrace/formats"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The canonical records of each sample, as JSON lines, are those of the golden
// file: what becomes of a field does not change unseen.
func TestCanonicalGolden(t *testing.T) {
	for _, source := range []string{"bailian.jsonl", "burstgpt.csv", "burstgpt3.csv", "sagemaker", "payloads.jsonl", "azure_2023.csv", "azure_2024.csv", "azure_lmm.csv"} {
		t.Run(source, func(t *testing.T) {
			var got bytes.Buffer
			_, err := formats.Convert([]string{filepath.Join("../fixtures", source)}, formats.Options{},
				formats.Target{Path: "-", Format: "jsonl", Stdout: &got})
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "golden", source+".golden")
			if *update {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("the records are not those of %s (-update rewrites it):\n%s", golden, got.String())
			}
		})
	}
}
