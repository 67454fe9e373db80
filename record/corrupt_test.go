package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// frameOffsets are where the frames of a whole file begin, the seek table last.
func frameOffsets(tb testing.TB, b []byte) (at []int) {
	tb.Helper()
	s := frameScanner{r: bytes.NewReader(b)}
	for {
		f, err := s.next()
		if errors.Is(err, io.EOF) {
			return at
		}
		if err != nil {
			tb.Fatal(err)
		}
		at = append(at, int(f.offset))
	}
}

// The frames of small() in chunks of 2: header, 3 of requests, 2 of results,
// 1 of series, footer, seek table.
const (
	frameHeaderAt = iota
	frameReq0
	frameReq1
	frameReq2
	frameRes0
	frameRes1
	frameSer0
	frameFooter
	frameSeek
	frameCount
)

// Each corruption is a function on the file and what must survive it.
func TestCorruptions(t *testing.T) {
	whole := file(t, small(), 2)
	at := frameOffsets(t, whole)
	if len(at) != frameCount {
		t.Fatalf("%d frames, want %d", len(at), frameCount)
	}
	cut := func(b []byte, from, to int) []byte { return append(bytes.Clone(b[:from]), b[to:]...) }
	flip := func(b []byte, i int) []byte { b[i] ^= 1; return b }
	cases := []struct {
		name      string
		corrupt   func([]byte) []byte
		requests  int
		lost      int64 // Unknown, or how many; 0 with a loss: nothing but the file's form
		err       error // ends the reading instead
		lossNames string
	}{
		{"none", func(b []byte) []byte { return b }, 6, 0, nil, ""},
		{"zero bytes", func([]byte) []byte { return nil }, 0, 0, ErrEmpty, ""},
		{"another file", func([]byte) []byte { return []byte("{\"timestamp\":0}\n") }, 0, 0, ErrNotContainer, ""},
		{"another zstd file", func([]byte) []byte { return rawFrame([]byte(`{"timestamp":0}`)) }, 0, 0, ErrNotContainer, ""},
		{"header only", func(b []byte) []byte { return b[:at[1]] }, 0, Unknown, nil, "no footer"},
		{"cut in the first chunk", func(b []byte) []byte { return b[:at[2]-5] }, 0, Unknown, nil, "cut short inside a frame"},
		{"cut between chunks", func(b []byte) []byte { return b[:at[3]] }, 4, Unknown, nil, "no footer"},
		{"cut in the footer", func(b []byte) []byte { return b[:at[frameSeek]-3] }, 6, Unknown, nil, "cut short inside a frame"},
		{"without seek table", func(b []byte) []byte { return b[:at[frameSeek]] }, 6, 0, nil, "no seek table"},
		{"cut in the seek table", func(b []byte) []byte { return b[:len(b)-1] }, 6, 0, nil, "cut short inside a frame"},
		{"content of the first chunk", func(b []byte) []byte { return flip(b, at[2]-20) }, 4, 2, nil, "chunk 0"},
		{"content of the middle chunk", func(b []byte) []byte { return flip(b, at[3]-20) }, 4, 2, nil, "chunk 1"},
		{"checksum of a chunk", func(b []byte) []byte { return flip(b, at[2]-1) }, 4, 2, nil, "chunk 0"},
		{"magic of a chunk", func(b []byte) []byte { return flip(b, at[2]) }, 4, 2, nil, "no frame begins here"},
		{"magic of every chunk", func(b []byte) []byte {
			for _, i := range at[frameReq0 : frameSer0+1] {
				flip(b, i)
			}
			return b
		}, 0, 10, nil, "no frame begins here"},
		{"block length of a chunk", func(b []byte) []byte { b[at[2]+7] ^= 0x40; return b }, 4, 2, nil, "chunk 1"},
		{"missing chunk", func(b []byte) []byte { return cut(b, at[2], at[3]) }, 4, 2, nil, "missing"},
		{"missing last requests", func(b []byte) []byte { return cut(b, at[3], at[4]) }, 4, 2, nil, "missing"},
		{"doubled chunk", func(b []byte) []byte {
			return append(bytes.Clone(b[:at[2]]), b[at[1]:]...)
		}, 6, 0, nil, "out of order"},
		{"chunks swapped", func(b []byte) []byte {
			return bytes.Join([][]byte{b[:at[1]], b[at[2]:at[3]], b[at[1]:at[2]], b[at[3]:]}, nil)
		}, 4, 2, nil, "missing"},
		{"garbage between chunks", func(b []byte) []byte {
			return bytes.Join([][]byte{b[:at[2]], []byte("garbage (\xb5/\xfd garbage"), b[at[2]:]}, nil)
		}, 6, 0, nil, "no frame begins here"},
		{"a skippable frame between chunks", func(b []byte) []byte {
			return bytes.Join([][]byte{b[:at[2]], appendSeekTable(nil, nil), b[at[2]:]}, nil)
		}, 6, 0, nil, "seek table"},
		{"footer damaged", func(b []byte) []byte { return flip(b, at[frameFooter]+30) }, 6, Unknown, nil, ""},
		{"footer missing", func(b []byte) []byte { return cut(b, at[frameFooter], at[frameSeek]) }, 6, Unknown, nil, ""},
		{"seek table damaged", func(b []byte) []byte { return flip(b, len(b)-20) }, 6, 0, nil, "seek table"},
		{"bytes behind the end", func(b []byte) []byte { return append(b, "more"...) }, 6, 0, nil, "follow the seek table"},
		{"zeros behind the end", func(b []byte) []byte { return append(b, make([]byte, 4096)...) }, 6, 0, nil, "follow the seek table"},
		{"two files in one", func(b []byte) []byte { return append(b, whole...) }, 6, 0, ErrConcatenated, ""},
		{"a file behind a killed one", func(b []byte) []byte { return append(b[:at[3]], whole...) }, 4, 0, ErrConcatenated, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := c.corrupt(bytes.Clone(whole))
			for _, from := range []string{"stream", "file"} {
				requests, loss, err := readRequests(t, b, from)
				if !errors.Is(err, c.err) {
					t.Fatalf("%s: error %v, want %v", from, err, c.err)
				}
				if len(requests) != c.requests && (c.err == nil || from == "stream") {
					t.Errorf("%s: %d requests, want %d", from, len(requests), c.requests)
				}
				if c.name == "none" || c.err != nil {
					if c.err == nil && loss != nil {
						t.Errorf("%s: %v", from, loss)
					}
					continue
				}
				if loss == nil {
					t.Fatalf("%s: the damage is not reported", from)
				}
				if loss.Lost != c.lost || !strings.Contains(loss.Error(), c.lossNames) {
					t.Errorf("%s: lost %d, want %d, and a word of %q: %v", from, loss.Lost, c.lost, c.lossNames, loss)
				}
			}
		})
	}
}

// readRequests reads b as a stream or as a file.
func readRequests(t *testing.T, b []byte, from string) ([]Request, *CorruptError, error) {
	t.Helper()
	open := func() (*Reader, error) { return NewReader(iotest.OneByteReader(bytes.NewReader(b))) }
	if from == "file" {
		path := filepath.Join(t.TempDir(), "x.trace")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		open = func() (*Reader, error) { return Open(path) }
	}
	r, err := open()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	requests, err := collect(r.Requests())
	return requests, r.Loss(), err
}

// Cut anywhere, a file gives its whole chunks and tells of the loss, or a
// clear error where its header is not whole.
func TestTruncationAtEveryByte(t *testing.T) {
	want := small()
	whole := file(t, want, 2)
	at := frameOffsets(t, whole)
	for n := range whole {
		got, err := readAll(whole[:n])
		if n < at[1] {
			if err == nil {
				t.Fatalf("cut at %d, inside the header: no error", n)
			}
			continue
		}
		if err != nil || got.loss == nil {
			t.Fatalf("cut at %d: error %v, loss %v", n, err, got.loss)
		}
		requests, results, series := 0, 0, 0
		for f := frameReq0; f <= frameSer0 && at[f+1] <= n; f++ {
			switch {
			case f <= frameReq2:
				requests += 2
			case f <= frameRes1:
				results = min(results+2, 3)
			default:
				series++
			}
		}
		expect(t, got.requests, want.requests[:requests], sameRequest)
		expect(t, got.results, want.results[:results], sameResult)
		expect(t, got.series, want.series[:series], sameSeries)
		if got.closed != (n >= at[frameSeek]) {
			t.Fatalf("cut at %d: footer found: %v", n, got.closed)
		}
	}
}

// No flipped bit goes unreported, and none changes a record.
func TestEveryBitFlipped(t *testing.T) {
	want := small()
	whole := file(t, want, 2)
	for i := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		got, err := readAll(b)
		if err != nil {
			continue
		}
		if got.loss == nil {
			t.Fatalf("bit %d of byte %d: not reported", i%8, i/8)
		}
		if !reflect.DeepEqual(got.header, want.header) {
			t.Fatalf("bit %d of byte %d: header is %+v", i%8, i/8, got.header)
		}
		checkSubset(t, i, got.requests, want.requests, sameRequest)
		checkSubset(t, i, got.results, want.results, sameResult)
		checkSubset(t, i, got.series, want.series, sameSeries)
		if lost := int64(10 - len(got.requests) - len(got.results) - len(got.series)); got.loss.Lost != Unknown && got.loss.Lost != lost || lost > 2 {
			t.Fatalf("bit %d of byte %d: %d records lost, told %d", i%8, i/8, lost, got.loss.Lost)
		}
	}
}

// checkSubset fails where got is not want with some records left out.
func checkSubset[T any](t *testing.T, bit int, got, want []T, same func(a, b *T) bool) {
	t.Helper()
	k := 0
	for i := range got {
		for k < len(want) && !same(&want[k], &got[i]) {
			k++
		}
		if k == len(want) {
			t.Fatalf("bit %d of byte %d: record %d is %+v", bit%8, bit/8, i, got[i])
		}
		k++
	}
}

// A reader's own error is told as such, not as damage.
func TestReadErrorIsNoLoss(t *testing.T) {
	whole := file(t, small(), 2)
	boom := errors.New("boom")
	r, err := NewReader(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(boom)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := collect(r.Requests()); !errors.Is(err, boom) {
		t.Fatalf("error %v, want boom", err)
	}
	if _, err := collect(r.Requests()); !errors.Is(err, errReadOnce) {
		t.Errorf("second reading of a stream: %v", err)
	}
}

// Hostile files cost no more than they could really hold.
func TestHostileLengths(t *testing.T) {
	header := file(t, content{header: Header{BlockSize: 1}}, 2)
	header = header[:frameOffsets(t, header)[1]]
	frame := func(item []byte) []byte { return append(bytes.Clone(header), rawFrame(item)...) }
	chunk := func(n int, cols map[int][]byte) []byte {
		h := chunkHead{kind: itemRequests, count: n}
		var c columns
		for k, b := range cols {
			c[k] = b
		}
		return frame(appendColumns(h.append(nil), requestNames[:], c[:]))
	}
	many := bytes.Repeat([]byte{0}, 4096)
	huge := binary.AppendUvarint(nil, 1<<60)
	cases := map[string][]byte{
		"frame of 4 GiB":         append(bytes.Clone(header), "\x28\xb5\x2f\xfd\xa4\xff\xff\xff\xff\x01\x00\x00"...),
		"frame of 2^64 bytes":    append(bytes.Clone(header), "\x28\xb5\x2f\xfd\xe4\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"...),
		"frame with a window":    append(bytes.Clone(header), "\x28\xb5\x2f\xfd\x04\xff\x01\x00\x00\x99\xe9\xd8\x51"...),
		"skippable of 4 GiB":     append(bytes.Clone(header), "\x5e\x2a\x4d\x18\xff\xff\xff\xff"...),
		"skippable of 80 MiB":    append(bytes.Clone(header), "\x5e\x2a\x4d\x18\x00\x00\x00\x05more"...),
		"text of 2^63 bytes":     frame([]byte("\x85\x7b\x80\x00\x00\x00\x00\x00\x00\x00")),
		"map of 2^64 columns":    frame(append((&chunkHead{kind: itemRequests, count: 1}).append(nil), "\xbb\xff\xff\xff\xff\xff\xff\xff\xff"...)),
		"2^32 records":           frame((&chunkHead{kind: itemRequests, count: 1 << 32}).append(nil)),
		"no records":             frame((&chunkHead{kind: itemRequests}).append(nil)),
		"2^60 blocks a record":   chunk(1, map[int][]byte{colMode: {0}, colInputLow: {0}, colInputHigh: binary.AppendUvarint(nil, 1<<52), colOutputLow: {0}, colOutputHigh: {0}}),
		"blocks out of nothing":  chunk(1, map[int][]byte{colMode: {0}, colInputLow: {9}, colInputHigh: {0}, colOutputLow: {0}, colOutputHigh: {0}}),
		"run of 2^60 ids":        chunk(1, map[int][]byte{colMode: {0}, colInputLow: {9}, colInputHigh: {0}, colOutputLow: {0}, colOutputHigh: {0}, colBlockIDs: append([]byte{originalRuns, 0, 0}, huge...)}),
		"parent before first":    chunk(1, map[int][]byte{colMode: {modeFirst}, colInputLow: {9}, colInputHigh: {0}, colOutputLow: {0}, colOutputHigh: {0}}),
		"lengths of other count": chunk(4096, map[int][]byte{colMode: many, colOutputLow: many[:7]}),
		"4096 × 2^60 exceptions": chunk(4096, map[int][]byte{colMode: many, colInputLow: many, colInputHigh: many, colOutputLow: many, colOutputHigh: many, colExceptionCount: append([]byte{intConst}, binary.AppendUvarint(nil, zigzag(1<<60))...)}),
		"unknown kind":           frame([]byte("\x82\x63foo\x00")),
		"header of version 2":    rawFrame([]byte("\x83\x67retrace\x02\xa0")),
		"header with a tag":      rawFrame([]byte("\x83\x67retrace\x01\xc0\xa0")),
		// {"kind": "trace", "kind": "trace"}
		"header with a doubled key": rawFrame([]byte("\x83\x67retrace\x01\xa2\x64kind\x65trace\x64kind\x65trace")),
		"header without kind":       rawFrame([]byte("\x83\x67retrace\x01\xa0")),
		"bomb":                      append(bytes.Clone(header), bomb(t)...),
	}
	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := readAll(b)
			runtime.ReadMemStats(&after)
			if err == nil && got.loss == nil || len(got.requests) > 0 {
				t.Fatalf("error %v, loss %v, %d requests", err, got.loss, len(got.requests))
			}
			t.Log(err, got.loss)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%d bytes allocated for a file of %d", n, len(b))
			}
		})
	}
}

// bomb is a frame of 600 bytes that claims, and holds, 100 MiB of zeros.
func bomb(t *testing.T) []byte {
	t.Helper()
	b := binary.LittleEndian.AppendUint32(nil, frameMagic)
	b = binary.LittleEndian.AppendUint32(append(b, rawDescriptor), 100<<20)
	for i := range 800 {
		head := uint32(maxBlock)<<3 | 1<<1
		if i == 799 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), 0)
	}
	return append(b, 0, 0, 0, 0)
}

// An item that is well framed but hostile inside loses itself only.
func TestDamagedColumnsLoseTheirChunkOnly(t *testing.T) {
	whole := file(t, small(), 2)
	at := frameOffsets(t, whole)
	item := (&chunkHead{kind: itemRequests, seq: 1, first: 2, count: 2}).append(nil)
	bad := rawFrame(appendColumns(item, nil, nil))
	b := bytes.Join([][]byte{whole[:at[2]], bad, whole[at[3]:]}, nil)
	got, err := readAll(b)
	if err != nil || len(got.requests) != 4 || got.loss == nil {
		t.Fatal(err, len(got.requests), got.loss)
	}
	requests, loss, err := readRequests(t, b, "stream")
	if err != nil || len(requests) != 4 || loss.Lost != 2 || loss.Chunk != 1 {
		t.Error(err, len(requests), loss)
	}
}
