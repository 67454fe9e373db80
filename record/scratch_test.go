package record

import (
	"bytes"
	"io"
	"testing"
)

// What was written before in the same memory, in full or given up, shows nowhere.
func TestScratchLeavesNoTrace(t *testing.T) {
	plain, _ := synthetic(5000, false)
	hashed, _ := synthetic(3000, true)
	want := make(map[int][]byte)
	for range 3 {
		for i, recs := range [][]Request{plain, hashed, small().requests, plain[100:300]} {
			var out bytes.Buffer
			encodeAll(t, &out, recs)
			if want[i] == nil {
				want[i] = out.Bytes()
			} else if !bytes.Equal(want[i], out.Bytes()) {
				t.Errorf("trace %d: other bytes than the first time", i)
			}
			given, err := NewWriter(io.Discard, Header{BlockSize: 16})
			if err != nil {
				t.Fatal(err)
			}
			for k := range hashed[:100] {
				if err := given.WriteRequest(&hashed[k]); err != nil {
					t.Fatal(err)
				}
			}
			given.discard()
			got, err := readAll(out.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			expect(t, got.requests, recs, sameRequest)
		}
	}
}
