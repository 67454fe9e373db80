package hashing

import (
	"encoding/hex"
	"testing"
)

// The examples of RFC 8949, Appendix A, as far as block keys need them.
func TestAppendValueRFC(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{0, "00"}, {1, "01"}, {10, "0a"}, {23, "17"}, {24, "1818"}, {25, "1819"}, {100, "1864"},
		{1000, "1903e8"}, {1000000, "1a000f4240"}, {1000000000000, "1b000000e8d4a51000"},
		{uint64(18446744073709551615), "1bffffffffffffffff"},
		{-1, "20"}, {-10, "29"}, {-100, "3863"}, {int64(-1000), "3903e7"},
		{nil, "f6"}, {[]byte{}, "40"}, {[]byte{1, 2, 3, 4}, "4401020304"},
		{"", "60"}, {"a", "6161"}, {"IETF", "6449455446"}, {"\u00fc", "62c3bc"}, {"\u6c34", "63e6b0b4"},
		{[]any{}, "80"}, {[]any{1, 2, 3}, "83010203"}, {[]any{1, []any{2, 3}, []any{4, 5}}, "8301820203820405"},
	} {
		got, err := appendValue(nil, c.value)
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%v: %x, %v; want %s", c.value, got, err, c.want)
		}
	}
}

// The known answer of CASES.md H07: 53 bytes. The root is SHA-256 of 61 37
// (the text "7"), by Python's hashlib 20377cec….
func TestBlockBytes(t *testing.T) {
	c, err := NewChain(SHA256CBOR, 16, "7")
	if err != nil {
		t.Fatal(err)
	}
	block := serialise(&c.block, &c.root, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	if len(block) != 53 || hex.EncodeToString(block[:7]) != "83582020377cec" {
		t.Errorf("block is %d bytes and begins %x, want 53 bytes beginning 83582020377cec", len(block), block[:7])
	}
}
