package hashing_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrace/hashing"
)

func TestParseExtra(t *testing.T) {
	for text, want := range map[string]any{
		`null`: nil, `[]`: []any{}, ` "x" `: "x", `true`: true, `-5`: int64(-5), `1.0`: 1.0, `1e3`: 1000.0,
		`18446744073709551615`:                    uint64(1<<64 - 1),
		`["a",["img",-16],{"bytes":"00fF"},null]`: []any{"a", []any{"img", int64(-16)}, []byte{0, 255}, nil},
		`"\ud83d\ude00 \\ud800 \u00e9"`:           "😀 \\ud800 é",
		`{"bytes":""}`:                            []byte{},
	} {
		got, err := hashing.ParseExtra([]byte(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		``: "byte 0: found the end", `[1`: "found the end", `[1] 2`: "found more behind", `{"a":1}`: "found another object",
		`{"bytes":1}`: "found another object", `{"bytes":"00","x":1}`: "found another object", `{"bytes":"0"}`: "read hex",
		`18446744073709551616`: "at most 64 bits", `1e999`: "fits 64 bits", `"\ud800"`: "byte 1: found half of a surrogate pair",
		`"\ude00"`: "byte 1: found half", `"\ud800\ud800"`: "found half", "\"\xff\"": "not UTF-8", `{}`: "found another object",
		strings.Repeat("[", 100) + strings.Repeat("]", 100): "more than 64 deep", `nul`: "parse extra keys: byte",
	} {
		if got, err := hashing.ParseExtra([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v, want an error with %q", text, got, err, want)
		}
	}
}

// FuzzParseExtra: what is accepted is JSON, and every algorithm can write it.
func FuzzParseExtra(f *testing.F) {
	for _, s := range []string{`null`, `["a",["img",-16],{"bytes":"00"}]`, `"\ud83d\ude00"`, `[1.5,true,18446744073709551615]`, `{"bytes":`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := hashing.ParseExtra(text)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%q is accepted and no JSON", text)
		}
		for _, alg := range hashing.Algorithms() {
			if err := mustChain(t, alg, 2, "").SetExtraValue(value); err != nil {
				t.Fatalf("%v: %q: %v", alg, text, err)
			}
		}
	})
}
