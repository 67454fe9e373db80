package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// leastInTests is the length from which on tests store strings apart.
const leastInTests = 8

// blobFile is file with strings of 8 bytes and more stored apart.
func blobFile(tb testing.TB, c content, chunk int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, c.header)
	if err != nil {
		tb.Fatal(err)
	}
	w.chunk, w.cutter.least = chunk, leastInTests
	for i := range c.requests {
		err = errors.Join(err, w.WriteRequest(&c.requests[i]))
	}
	if err = errors.Join(err, w.Close(c.footer)); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// pictures is a trace of 6 requests: in chunks of 2, blob 0 is that of chunks
// 0 and 1, blob 1 of chunk 1; chunk 2 has none.
func pictures() content {
	c := content{header: Header{Kind: KindTrace}}
	for i, body := range []string{
		`{"a":"data:0000","b":"data:0000"}`, `{"a":"short"}`,
		`["data:0000","a\"bcdefgh","data:1\/1\/"]`, `"data:1\/1\/"`,
		`{"a":"short"}`, ``,
	} {
		r := NewRequest()
		r.Row = int64(i)
		if body != "" {
			r.Body = []byte(body)
		}
		c.requests = append(c.requests, r)
	}
	return c
}

// The frames of pictures() in chunks of 2.
const (
	picHeader = iota
	picBlob0
	picReq0
	picBlob1
	picReq1
	picReq2
	picFooter
	picSeek
	picCount
)

// The strings are where docs/format.md says: worked out by hand.
func TestBlobItems(t *testing.T) {
	b := blobFile(t, pictures(), 2)
	at := frameOffsets(t, b)
	if len(at) != picCount {
		t.Fatalf("%d frames, want %d", len(at), picCount)
	}
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	item := func(i int) string {
		b, err := dec.DecodeAll(b[at[i]:at[i+1]], nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	// printf data:0000 | sha256sum
	digest, err := hex.DecodeString("77cab16a2f3bbe7e27c49783c34674b179f9983fabd6b6a3bf026b6d42d400d2")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := item(picBlob0), "\x84\x64blob\x00\x58\x20"+string(digest)+"\x49data:0000"; got != want {
		t.Errorf("blob 0 is %x, want %x", got, want)
	}
	for i, want := range map[int]string{
		// row +0, offset +6 in {"a":"","b":""}, blob 0, 9 bytes; +7
		picReq0: "\x62bs\x48\x00\x06\x00\x09\x00\x07\x00\x09",
		// ["","a\"bcdefgh",""]: +2, blob 0, 9 bytes; +16, blob 1, 11 bytes; row +1, +1, blob 1
		picReq1: "\x62bs\x4c\x00\x02\x00\x09\x00\x10\x01\x0b\x01\x01\x01\x0b",
	} {
		if got := item(i); !strings.Contains(got, want) {
			t.Errorf("frame %d is %x, want %x in it", i, got, want)
		}
	}
	if strings.Contains(item(picReq2), "\x62bs") {
		t.Error("a chunk that refers to no blob has spans")
	}
}

// genBody draws bodies with strings around the length at which they are cut.
func genBody(t *rapid.T) []byte {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{`"`, `\`, `\\`, `""`, `{"a":`, "aaaaaaa", "aaaaaaaa", `"aaaaaaa"`, `"aaaaaaaa"`, `"aaaaaaaaa"`, `"bbbbbbbb"`, `"\"\"\"\""`, `"\/\/\/\/"`, `"\\\\\\\\"`, ","}),
		rapid.StringN(0, 20, 30))
	var b []byte
	for _, s := range rapid.SliceOfN(part, 0, 12).Draw(t, "parts") {
		b = append(b, s...)
	}
	return b
}

// Whatever is cut out of a body comes back, from a file and from a pipe.
func TestBlobsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := content{header: Header{Kind: KindTrace, BlockSize: 16}}
		for i := range rapid.IntRange(1, 12).Draw(rt, "requests") {
			r := genRequest(rt, i)
			r.Body = genBody(rt)
			c.requests = append(c.requests, r)
		}
		b := blobFile(t, c, rapid.IntRange(1, 5).Draw(rt, "chunk"))
		for _, from := range []string{"stream", "file"} {
			got, loss, err := readRequests(t, b, from)
			if err != nil || loss != nil {
				rt.Fatal(from, err, loss)
			}
			expect(rt, got, c.requests, sameRequest)
		}
	})
}

// A string is stored from 64 KiB on, once, whatever number of requests has it.
func TestBlobThreshold(t *testing.T) {
	var c content
	for i := range 100 {
		r := NewRequest()
		r.Row = int64(i)
		r.Body = fmt.Appendf(nil, `{"n":%d,"a":"%s","b":"%s"}`, i, strings.Repeat("x", leastBlob-1), strings.Repeat("y", leastBlob))
		c.requests = append(c.requests, r)
	}
	b := file(t, c, maxRecords)
	got, err := readAll(b)
	if err != nil || got.loss != nil {
		t.Fatal(err, got.loss)
	}
	expect(t, got.requests, c.requests, sameRequest)
	at := frameOffsets(t, b)
	if frames := len(at); frames != 5 { // header, blob, chunk, footer, seek table
		t.Errorf("%d frames, want 5", frames)
	}
}

// Damage to a blob loses the chunks that need it, and no others.
func TestBlobCorruptions(t *testing.T) {
	want := pictures()
	whole := blobFile(t, want, 2)
	at := frameOffsets(t, whole)
	without := func(from, to int) []byte { return append(bytes.Clone(whole[:at[from]]), whole[at[to]:]...) }
	flip := func(i int) []byte { b := bytes.Clone(whole); b[i] ^= 1; return b }
	other := rawFrame(appendBlob(nil, blobItem{number: 0, data: []byte("data:0000")}))
	cases := []struct {
		name     string
		b        []byte
		requests int
		lost     int64
		names    string
	}{
		{"blob of two chunks", flip(at[picReq0] - 6), 2, 4, "decompress frame"},
		{"blob of one chunk", flip(at[picReq1] - 6), 4, 2, "decompress frame"},
		{"magic of a blob", flip(at[picBlob1]), 4, 2, "no frame begins here"},
		{"missing first blob", without(picBlob0, picReq0), 2, 4, "missing"},
		{"missing last blob", without(picBlob1, picReq1), 4, 2, "missing"},
		{"doubled blob", bytes.Join([][]byte{whole[:at[picReq0]], whole[at[picBlob0]:]}, nil), 6, 0, "out of order"},
		{"digest of a blob", bytes.Join([][]byte{whole[:at[picBlob0]], other, whole[at[picReq0]:]}, nil), 2, 4, "digest"},
		{"cut behind a blob", whole[:at[picReq1]], 2, Unknown, "no footer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, from := range []string{"stream", "file"} {
				got, loss, err := readRequests(t, c.b, from)
				if err != nil || loss == nil {
					t.Fatalf("%s: error %v, loss %v", from, err, loss)
				}
				checkSubset(t, 0, got, want.requests, sameRequest)
				if len(got) != c.requests || loss.Lost != c.lost || !strings.Contains(loss.Error(), c.names) {
					t.Errorf("%s: %d requests, want %d; lost %d, want %d, and a word of %q: %v", from, len(got), c.requests, loss.Lost, c.lost, c.names, loss)
				}
			}
		})
	}
}

// Cut anywhere, the chunks before the cut are whole; no flipped bit changes a
// request, and none goes unreported.
func TestBlobCutsAndFlips(t *testing.T) {
	want := pictures()
	whole := blobFile(t, want, 2)
	at := frameOffsets(t, whole)
	for n := at[picBlob0]; n < len(whole); n++ {
		got, err := readAll(whole[:n])
		if err != nil || got.loss == nil {
			t.Fatalf("cut at %d: error %v, loss %v", n, err, got.loss)
		}
		requests := 0
		for _, f := range []int{picReq0, picReq1, picReq2} {
			if n >= at[f+1] {
				requests += 2
			}
		}
		expect(t, got.requests, want.requests[:requests], sameRequest)
	}
	for i := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		got, loss, err := readRequests(t, b, "stream")
		if err != nil {
			continue
		}
		if loss == nil {
			t.Fatalf("bit %d of byte %d: not reported", i%8, i/8)
		}
		checkSubset(t, i, got, want.requests, sameRequest)
		if lost := int64(6 - len(got)); loss.Lost != Unknown && loss.Lost != lost || lost > 4 {
			t.Fatalf("bit %d of byte %d: %d records lost, told %d", i%8, i/8, lost, loss.Lost)
		}
	}
}

// What is stored apart is base64, which repeats nothing; text stays in its
// chunk, where its beginning has been seen before.
func TestIsBase64(t *testing.T) {
	for s, want := range map[string]bool{
		"":                               true,
		"aGVsbG8+Lw==":                   true,
		"aGVsbG8-_w":                     true,
		"data:image/png;base64,aGVsbG8=": true,
		`data:image\/png;base64,aGVs\/w`: true,
		"two words":                      false,
		`aGVsbG8\n`:                      false,
		`\u4e2d\u6587`:                   false,
		`\\/`:                            false,
		"\u4e2d":                         false,
		"{}":                             false,
	} {
		if got := isBase64([]byte(s)); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// A small file may ask for any number of joined bodies, of which one at a time
// is held: 128 bodies of 4 MiB are 512 MiB.
func TestJoinedOneAtATime(t *testing.T) {
	const size, requests = 4 << 20, 128
	var c content
	body := fmt.Appendf(nil, `{"a":"%s"}`, strings.Repeat("x", size))
	for i := range requests {
		r := NewRequest()
		r.Row, r.Body = int64(i), body
		c.requests = append(c.requests, r)
	}
	b := file(t, c, maxRecords)
	if len(b) > 64<<10 {
		t.Errorf("a file of %d bytes", len(b))
	}
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen, most := 0, uint64(0)
	for q, err := range r.Requests() {
		if err != nil || !bytes.Equal(q.Body, body) {
			t.Fatal(seen, err)
		}
		if seen++; seen%16 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}
	if seen != requests || most > requests*size/4 {
		t.Errorf("%d requests, %d bytes held", seen, most)
	}
}

// A Sorter refuses what a file could not hold, and goes on.
func TestSorterTooLarge(t *testing.T) {
	s := NewSorter(SorterOptions{TempDir: t.TempDir()})
	r := NewRequest()
	r.Body = make([]byte, maxRecordBytes+1)
	if err := s.Add(&r, 0); err == nil || !strings.Contains(err.Error(), "67108865 bytes") {
		t.Error(err)
	}
	r.Body = []byte("{}")
	if err := errors.Join(s.Add(&r, 0), s.Close()); err != nil {
		t.Error(err)
	}
}

// Spans that lie are refused before anything is joined.
func TestHostileSpans(t *testing.T) {
	recs := []Request{{Body: []byte("abcd")}, {}}
	for name, s := range map[string][]bodySpan{
		"row beyond the chunk":      {{row: 2}},
		"offset beyond the body":    {{at: 5}},
		"offsets beyond the body":   {{at: 3}, {at: 5}},
		"longer than a record":      {{length: maxRecordBytes - 3}},
		"together longer than that": {{length: 1 << 25}, {at: 1, length: 1 << 25}},
		"more than a chunk has":     make([]bodySpan, maxSpans+1),
	} {
		if _, err := decodeSpans(&cursor{b: appendSpans(nil, s)}, recs, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	good := []bodySpan{{at: 4, blob: 1, length: maxRecordBytes - 4}, {row: 1, blob: 2, length: maxRecordBytes}}
	got, err := decodeSpans(&cursor{b: appendSpans(nil, good)}, recs, nil)
	if err != nil || len(got) != 2 || got[0] != good[0] || got[1] != good[1] {
		t.Errorf("%v, %v, want %v", got, err, good)
	}
}

// A store keeps no more than its bound in memory, and reads the rest again.
func TestBlobStoreForgets(t *testing.T) {
	enc, err := newCodec(1)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.close()
	s := blobStore{dec: enc.dec, dir: t.TempDir()}
	defer s.close()
	const size, blobs = 6 << 20, 5
	for i := range blobs {
		b := blobItem{number: int64(i), data: bytes.Repeat([]byte{byte(i)}, size)}
		if err := s.add(b, enc.enc.EncodeAll(appendBlob(nil, b), nil), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 1, 2, 3, 4, 3, 4, 0} {
		data, err := s.load(int64(i))
		if err != nil || len(data) != size || data[0] != byte(i) || data[size-1] != byte(i) {
			t.Fatal(i, len(data), err)
		}
		held := 0
		for _, c := range s.cache {
			held += len(c.data)
		}
		if held > maxBlobCache {
			t.Errorf("%d bytes held", held)
		}
	}
	for i := range 2 * maxBlobCache / leastBlob {
		s.keep(blobItem{number: int64(blobs + i)}, nil)
	}
	if n := len(s.cache); n > maxBlobCache/leastBlob {
		t.Errorf("%d empty blobs held", n)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("temporary files with names: %v, %v", left, err)
	}
}

// A store says where spans do not fit its blobs, and where a frame is another
// than the one that was checked, whole as it may be.
func TestBlobStoreRefuses(t *testing.T) {
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	frame := rawFrame(appendBlob(nil, blobItem{data: []byte("data:0000")}))
	other := rawFrame(appendBlob(nil, blobItem{data: []byte("data:0001")}))
	s := blobStore{dec: dec, at: bytes.NewReader(other)}
	if err := s.add(blobItem{data: []byte("data:0000")}, frame, 0); err != nil {
		t.Fatal(err)
	}
	for want, span := range map[string]bodySpan{
		"blob 0 of record 2 has 9 bytes, expected 8": {row: 2, length: 8},
		"blob 1 of record 3 is missing":              {row: 3, blob: 1, length: 9},
	} {
		if err := s.check([]bodySpan{span}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := s.join([]byte(`""`), []bodySpan{{at: 1, length: 9}}); !errors.Is(err, errBlobChanged) {
		t.Errorf("%v, want %v", err, errBlobChanged)
	}
}

// Compacting stores a string once, as the recording did.
func TestCompactBlobs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.rec")
	w, err := CreateRecording(path, Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]Request, 20)
	for i := range want {
		want[i] = NewRequest()
		want[i].Row = int64(i)
		want[i].Body = fmt.Appendf(nil, `{"n":%d,"a":"%s"}`, i, strings.Repeat(string(rune('a'+i%2)), leastBlob))
		if err := errors.Join(w.WriteRequest(&want[i]), w.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, loss, err := readRequests(t, b, "file")
	if err != nil || loss != nil {
		t.Fatal(err, loss)
	}
	expect(t, got, want, sameRequest)
	if frames := len(frameOffsets(t, b)); frames != 6 { // header, 2 blobs, chunk, footer, seek table
		t.Errorf("%d frames, want 6", frames)
	}
}

// Sorted bodies are whole, in memory, from runs and from merged runs.
func TestSorterBlobs(t *testing.T) {
	for _, opts := range []SorterOptions{{}, {MaxRecords: 7}, {MaxRecords: 2, FanIn: 2}} {
		opts.TempDir = t.TempDir()
		s := NewSorter(opts)
		s.cutter.least = leastInTests
		want := make([]Request, 40)
		for i := range want {
			r := NewRequest()
			r.Row = int64(i)
			r.Body = fmt.Appendf(nil, `["%08d","%08d",%d]`, i%3, i%5, i)
			want[len(want)-1-i] = r
			if err := s.Add(&r, int64(-i)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			got, err := collect(s.Sorted())
			if err != nil {
				t.Fatal(err)
			}
			expect(t, got, want, sameRequest)
		}
		if n := len(s.cutter.known); n != 5 {
			t.Errorf("%d blobs, want 5", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The Python reader puts the strings back.
func TestPythonReaderBlobs(t *testing.T) {
	py := python(t)
	path := filepath.Join(t.TempDir(), "x.trace")
	if err := os.WriteFile(path, blobFile(t, pictures(), 2), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(py, "-c", readerScript, path).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderrOf(err))
	}
	comparePython(t, out, pictures())
}
