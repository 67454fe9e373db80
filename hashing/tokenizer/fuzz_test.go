package tokenizer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRead: no file, however odd, breaks reading or encoding.
func FuzzRead(f *testing.F) {
	for _, name := range families {
		f.Add(shrink(f, fixture(f, name)), "abilities été 12 <s>")
	}
	f.Add([]byte(small("")), "abba")
	f.Add([]byte(withPattern(`(?i:'s|'ll)|\s+(?!\S)|\s+|[^a\s]?\p{L}{1,3}`)), "it's  a\n")
	f.Add([]byte(small("", `"pre_tokenizer":{"type":"Metaspace","replacement":"▁"},"normalizer":{"type":"Prepend","prepend":"b"}`)), "a b")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tok, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		ids := tok.Encode(nil, text[:min(len(text), 200)])
		for _, id := range ids {
			if int(id) >= tok.VocabSize() {
				t.Fatalf("id %d of %d", id, tok.VocabSize())
			}
		}
		if tok.decode.known {
			if _, err := tok.Decode(nil, ids); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// shrink leaves of a file's vocabulary so much that fuzzing is quick.
func shrink(t testing.TB, data []byte) []byte {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	model := file["model"].(map[string]any)
	model["vocab"] = map[string]int{"a": 0, "b": 1, "ab": 2, "Ġ": 3, "▁": 4, "<0x0A>": 5}
	model["merges"] = []string{"a b"}
	file["added_tokens"] = []addedToken{{ID: 9, Content: "<s>"}}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzEncode: on the byte level every text comes back (but for what two families
// normalize), and its ids do not
// depend on what was encoded before.
func FuzzEncode(f *testing.F) {
	toks := map[string]*Tokenizer{}
	for _, name := range families {
		toks[name] = mustRead(f, fixture(f, name))
	}
	for _, s := range scripts {
		f.Add(s + " " + s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range toks {
			ids := tok.Encode(nil, text)
			if again := tok.Encode([]uint32{7}, text)[1:]; !slices.Equal(ids, again) {
				t.Fatalf("%s: %v, then %v", name, ids, again)
			}
			got, err := tok.Decode(nil, ids)
			if err != nil {
				t.Fatal(err)
			}
			if tok.model.byteLevel && name != "qwen" && name != "gpt2" && string(got) != text {
				t.Fatalf("%s: %q comes back as %q", name, text, got)
			}
			if name == "gemma" && utf8.ValidString(text) && !strings.Contains(text, "▁") && !strings.Contains(text, "<0x") && string(got) != text {
				t.Fatalf("%s: %q comes back as %q", name, text, got)
			}
		}
	})
}

// BenchmarkEncode encodes words of a small vocabulary; BenchmarkReal, which
// needs public files, tells more.
func BenchmarkEncode(b *testing.B) {
	text := strings.Repeat("abilities été, 1234 don't  HTTPServer\n", 100)
	for _, name := range families {
		b.Run(name, func(b *testing.B) {
			tok := mustRead(b, fixture(b, name))
			var ids []uint32
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				ids = tok.Encode(ids[:0], text)
			}
			b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	data := fixture(b, "qwen")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		mustRead(b, data)
	}
}
