package formats_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"retrace/formats"
	"retrace/record"
)

// benchTrace is a Mooncake file: the real one where it is at hand, else one of
// the same shape (24 ids a row).
func benchTrace(b *testing.B) []byte {
	b.Helper()
	if data, err := os.ReadFile("../../shared/data/mooncake/conversation_trace.jsonl"); err == nil {
		return data
	}
	var buf bytes.Buffer
	for i := range 12000 {
		fmt.Fprintf(&buf, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [0`, i*290, 24*512-i%512, i%900)
		for k := 1; k < 24; k++ {
			fmt.Fprintf(&buf, ", %d", i*23+k)
		}
		buf.WriteString("]}\n")
	}
	return buf.Bytes()
}

// BenchmarkScan reads rows into requests: source, line reader, scanner, survey.
func BenchmarkScan(b *testing.B) {
	data := benchTrace(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := formats.ScanMooncake(bytes.NewReader(data), func(*record.Request) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScanSessions reads rows of the dialect with sessions and fractions
// of milliseconds.
func BenchmarkScanSessions(b *testing.B) {
	var buf bytes.Buffer
	for i := range 10000 {
		fmt.Fprintf(&buf, `{"session_id": "s%d", "timestamp": %d.5, "input_length": 5000, "output_length": %d, "hash_ids": [0, 1, 2, 3, 4, 5, 6, 7, 8, %d]}`+"\n",
			i, i*290, i%900, i)
	}
	b.SetBytes(int64(buf.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := formats.ScanMooncake(bytes.NewReader(buf.Bytes()), func(*record.Request) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen surveys a file and ranges over its requests: two passes.
func BenchmarkOpen(b *testing.B) {
	data := benchTrace(b)
	path := filepath.Join(b.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		t, err := formats.Open([]string{path}, formats.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range t.Requests() {
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := t.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConvert makes a .trace of a Mooncake file: reading, encoding and
// verifying each chunk.
func BenchmarkConvert(b *testing.B) {
	data := benchTrace(b)
	dir := b.TempDir()
	path := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		out := formats.Target{Path: filepath.Join(dir, "out.trace")}
		if _, err := formats.Convert([]string{path}, formats.Options{}, out); err != nil {
			b.Fatal(err)
		}
	}
}
