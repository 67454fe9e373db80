package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

const mooncakePath = "../../shared/data/mooncake/conversation_trace.jsonl"

// mooncake is the real trace, read with encoding/json, and its size as JSON lines.
func mooncake(tb testing.TB) ([]Request, int64) {
	tb.Helper()
	f, err := os.Open(mooncakePath)
	if err != nil {
		tb.Skip("the real Mooncake trace is not here:", err)
	}
	defer f.Close()
	var recs []Request
	var size int64
	for in := bufio.NewScanner(f); in.Scan(); {
		var row struct {
			Timestamp    int64    `json:"timestamp"`
			InputLength  int64    `json:"input_length"`
			OutputLength int64    `json:"output_length"`
			HashIDs      []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			tb.Fatal(err)
		}
		r := NewRequest()
		r.Arrival = time.Duration(row.Timestamp) * time.Millisecond
		r.InputTokens, r.OutputTokens, r.Blocks = row.InputLength, row.OutputLength, row.HashIDs
		r.Row = int64(len(recs))
		recs = append(recs, r)
		size += int64(len(in.Bytes())) + 1
	}
	return recs, size
}

// synthetic is a trace like Mooncake's: conversations over shared prefixes. Its size as JSON
// lines is estimated at 7 bytes an id and 60 a row, as Mooncake's.
func synthetic(n int, hashed bool) ([]Request, int64) {
	rng := rand.New(rand.NewPCG(1, 2))
	recs := make([]Request, n)
	next, size := uint64(1), int64(0)
	for i := range recs {
		r := NewRequest()
		r.Arrival = time.Duration(i/10) * 3 * time.Second
		r.Row = int64(i)
		r.Blocks = append(r.Blocks, 0)
		r.InputTokens = int64(512 + rng.IntN(12000))
		r.OutputTokens = int64(rng.IntN(700))
		if p := i - 1 - rng.IntN(2000); p >= 0 && rng.IntN(3) == 0 {
			parent := &recs[p]
			r.Blocks = append(r.Blocks[:0], parent.Blocks[:len(parent.Blocks)-1]...)
			r.InputTokens = parent.InputTokens + parent.OutputTokens + int64(rng.IntN(500))
		}
		for int64(len(r.Blocks)) < impliedBlocks(r.InputTokens, 512) {
			id := next
			if hashed {
				id *= 0x9E3779B97F4A7C15
			}
			r.Blocks = append(r.Blocks, id)
			next++
		}
		size += 60 + 7*int64(len(r.Blocks))
		recs[i] = r
	}
	return recs, size
}

func encodeAll(tb testing.TB, w io.Writer, recs []Request) {
	tb.Helper()
	out, err := NewWriter(w, Header{Kind: KindTrace, BlockSize: 512, Source: "mooncake", Unit: time.Millisecond})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range recs {
		if err := out.WriteRequest(&recs[i]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := out.Close(Footer{}); err != nil {
		tb.Fatal(err)
	}
}

func benchTraces(b *testing.B, run func(*testing.B, []Request, int64)) {
	b.Run("mooncake", func(b *testing.B) {
		recs, size := mooncake(b)
		run(b, recs, size)
	})
	b.Run("synthetic", func(b *testing.B) {
		recs, size := synthetic(12000, false)
		run(b, recs, size)
	})
	b.Run("hashed", func(b *testing.B) {
		recs, size := synthetic(12000, true)
		run(b, recs, size)
	})
}

// BenchmarkEncode is encoding, proving and compressing; MB/s are those of the
// JSON lines that hold the same.
func BenchmarkEncode(b *testing.B) {
	benchTraces(b, func(b *testing.B, recs []Request, size int64) {
		var buf bytes.Buffer
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			buf.Reset()
			encodeAll(b, &buf, recs)
		}
		b.ReportMetric(float64(buf.Len()), "file-bytes")
	})
}

// BenchmarkDecode is reading into requests, block ids and all.
func BenchmarkDecode(b *testing.B) {
	benchTraces(b, func(b *testing.B, recs []Request, size int64) {
		var buf bytes.Buffer
		encodeAll(b, &buf, recs)
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			r, err := NewReader(bytes.NewReader(buf.Bytes()))
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for q, err := range r.Requests() {
				if err != nil {
					b.Fatal(err)
				}
				n += len(q.Blocks)
			}
			r.Close()
		}
	})
}
