package record

import (
	"io"
	"testing"
)

// TestMaxRequestBytes: what is no larger is written, what is larger is not.
func TestMaxRequestBytes(t *testing.T) {
	for _, c := range []struct {
		body, blocks int
		fits         bool
	}{{0, 0, true}, {MaxRequestBytes / 2, 1 << 20, true}, {MaxRequestBytes - 7, 1, false}, {MaxRequestBytes + 1, 0, false}} {
		r := NewRequest()
		r.Body, r.Blocks = make([]byte, c.body), make([]uint64, c.blocks)
		w, err := NewWriter(io.Discard, Header{Kind: KindTrace})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteRequest(&r); r.Size() <= MaxRequestBytes != c.fits || (err == nil) != c.fits {
			t.Errorf("body of %d bytes, %d blocks: size %d, written: %v; want fits %t", c.body, c.blocks, r.Size(), err, c.fits)
		}
	}
}
