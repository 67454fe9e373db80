package record

import (
	"bytes"
	"testing"
)

func TestBasic(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Kind: KindTrace, BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10000 {
		r := NewRequest()
		r.Arrival = NoTime + 1 + 5
		r.InputTokens = int64(i * 7)
		r.Blocks = []uint64{0, uint64(i), 1 << 60}
		r.Row = int64(i)
		if err := w.WriteRequest(&r); err != nil {
			t.Fatal(err)
		}
		s := NewResult()
		s.Gaps = []Gap{{5000, 3}, {2000, 1}}
		s.Sent = 7000
		if err := w.WriteResult(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	t.Log(b.Len())
	r, err := NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for q, err := range r.Requests() {
		if err != nil {
			t.Fatal(err)
		}
		if q.InputTokens != int64(n*7) || q.Blocks[1] != uint64(n) {
			t.Fatal(n, q)
		}
		n++
	}
	t.Log(n, r.Loss())
}
