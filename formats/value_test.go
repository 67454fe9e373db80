package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// jsonSeeds are texts at the edges of the grammar.
var jsonSeeds = []string{
	`{}`, `{"a":1}`, ` { "a" : [ 1 , 2.5e-3 , -0 , true , false , null , "x\u00e9\n" ] } `, `{"a":{"b":{"c":[]}}}`,
	`{"a":1,}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":+1}`, `{"a":--1}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
	"{\"a\":\"\t\"}", `{"a":"`, `{"a"`, `{"a":`, `{a:1}`, `{'a':1}`, `[1]`, `1`, ``, `{"a":1}{}`, `{"a":tru}`, `{"a":nul`, `{"a":NaN}`,
	`{"a":1 "b":2}`, `{"a":[1 2]}`, `{"a":[1,]}`, `{"\ud800":1,"\ud801":2}`, `{"a":"\ud83d\ude00"}`, `{"a":1e999}`, "\xef\xbb\xbf{}",
}

// FuzzParseObject: ours takes exactly what encoding/json does, but for keys
// that occur twice and bytes that are no UTF-8.
func FuzzParseObject(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		members, err := ParseObject(text)
		object := len(bytes.TrimLeft(text, " \t\r\n")) > 0 && bytes.TrimLeft(text, " \t\r\n")[0] == '{'
		want := json.Valid(text) && object && utf8.Valid(text)
		var v *ValueError
		twice := errors.As(err, &v) && strings.Contains(v.Msg, "occurs twice")
		if err == nil && !want || err != nil && want && !twice {
			t.Fatalf("%q: error %v, encoding/json says %v", text, err, want)
		}
		if err != nil {
			return
		}
		again := AppendObject(nil, members)
		if !EqualValue(text, again) {
			t.Fatalf("%q became %q", text, again)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, x := range members {
			if raw, ok := m[x.Key]; ok && !bytes.Equal(raw, x.Raw) {
				t.Fatalf("%q: member %q is %q, encoding/json says %q", text, x.Key, x.Raw, raw)
			}
		}
	})
}

func TestParseObjectFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":tru}`:          "no JSON value (at byte 11 of it)",
		`{"a":1,"\u0061":2}`:       `key "a" occurs twice (at byte 7 of it)`,
		`{"a":1`:                   "no comma or } after a member (at byte 6 of it)",
		"{\"a\":\"\xff\"}":         "not valid UTF-8 (at byte 6 of it)",
		`{"a":[[1,2],[3 4]]}`:      "no comma or ] after an element (at byte 15 of it)",
		`{"a":{"b":1,"c":2,"b":3}`: `key "b" occurs twice (at byte 18 of it)`,
	} {
		if _, err := ParseObject([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	deep := []byte(`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`)
	if _, err := ParseObject(deep); err == nil {
		t.Error("20,000 levels are taken")
	}
}

// An object of many keys is checked for doubles too.
func TestManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteByte('{')
	for i := range 100 {
		b.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
	}
	if _, err := ParseObject([]byte(b.String() + `"z":1}`)); err != nil {
		t.Error(err)
	}
	if _, err := ParseObject([]byte(b.String() + `"kxxx":1}`)); err == nil {
		t.Error("a double key among 100 is taken")
	}
}

func TestEqualValue(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1`, true},
		{`1`, `1.0`, false},
		{`1e2`, `1E2`, false},
		{`"a"`, `"\u0061"`, true},
		{`"\ud800"`, `"\ud801"`, false},
		{`"\ud800"`, `"\ud800"`, true},
		{`{"a":1,"b":[2, 3]}`, `{ "b":[2,3],"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[]`, `{}`, false},
		{`null`, `false`, false},
		{`""`, `null`, false},
	} {
		if got := EqualValue([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s against %s: %v", c.a, c.b, got)
		}
	}
}

func TestReconcile(t *testing.T) {
	parse := func(s string) []Member {
		m, err := ParseObject([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	source, rendered := `{"a":5.0,"b":null,"c":"x"}`, `{"c":"\u0078","a":5,"d":[]}`
	kept := Reconcile(parse(source), parse(rendered), EqualValue)
	if len(kept) != 3 { // a's literal, b that is not rendered, d that the source lacks
		t.Errorf("kept %d: %v", len(kept), kept)
	}
	if got := AppendObject(nil, Restore(parse(rendered), kept)); !EqualValue(got, []byte(source)) {
		t.Errorf("restored %s", got)
	}
}
