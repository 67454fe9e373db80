package formats

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestPlainIDs(t *testing.T) {
	for raw, want := range map[string][]uint64{
		"[0]": {0}, "[1,2]": {1, 2}, "[1, 2,  3]": {1, 2, 3},
		"[18446744073709551615, 9007199254740993]": {1<<64 - 1, 1<<53 + 1},
		"[]": nil, "[ ]": nil, "[1,]": nil, "[,1]": nil, "[1 2]": nil, "[01]": nil, "[-1]": nil, "[1.0]": nil,
		"[18446744073709551616]": nil, "[99999999999999999999]": nil, "null": nil, "[1\n]": nil, "[1": nil, "": nil, `["1"]`: nil, "[[1]]": nil,
	} {
		got, ok := plainIDs([]byte(raw), &slab{})
		if ok != (want != nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %d, %v, want %d", raw, got, ok, want)
		}
	}
}

// What an exporter writes is plain, and reads back.
func TestPlainIDsRapid(t *testing.T) {
	var s slab
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Uint64(), 1, 50).Draw(t, "ids")
		got, ok := plainIDs(appendIDs(nil, ids), &s)
		if !ok || !reflect.DeepEqual(got, ids) {
			t.Fatalf("got %d, %v, want %d", got, ok, ids)
		}
	})
}
