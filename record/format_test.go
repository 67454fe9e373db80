package record

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// twoTurns is the trace that docs/format.md draws byte by byte.
func twoTurns() content {
	first := NewRequest()
	first.Arrival, first.InputTokens, first.OutputTokens = 0, 700, 100
	first.Blocks = []uint64{0, 1}
	second := NewRequest()
	second.Arrival, second.InputTokens, second.OutputTokens = 3*time.Second, 900, 80
	second.Blocks, second.Row = []uint64{0, 2}, 1
	return content{header: Header{Kind: KindTrace, BlockSize: 512}, requests: []Request{first, second}}
}

// The example of docs/format.md is what the writer writes: the bytes of each
// line stand before its first two spaces behind them.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, block := range regexp.MustCompile("(?s)```hex\n(.*?)```").FindAllSubmatch(page, -1) {
		for line := range strings.Lines(string(block[1])) {
			digits, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
			b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			want = append(want, b...)
		}
	}
	got := file(t, twoTurns(), maxRecords)
	if !bytes.Equal(got, want) {
		t.Errorf("docs/format.md does not show what is written:\n%x, the page has\n%x", got, want)
	}
	for _, names := range [][]string{requestNames[:], resultNames, seriesNames[:]} {
		for _, name := range names {
			if !bytes.Contains(page, []byte("| `"+name+"` |")) {
				t.Errorf("docs/format.md has no row for column %s", name)
			}
		}
	}
}

// The decompressed items are the same across versions of this program: a
// change of them is a change of the format.
func TestGoldenItems(t *testing.T) {
	b := file(t, small(), 2)
	at := frameOffsets(t, b)
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	var out strings.Builder
	for i := range frameFooter { // the footer has hashes of compressed bytes
		item, err := dec.DecodeAll(b[at[i]:at[i+1]], nil)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(hex.EncodeToString(item) + "\n")
	}
	path := filepath.Join("testdata", "small.cbor.hex")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("items are\n%swant\n%s", out.String(), want)
	}
}
