package prompt

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retrace/fixtures"
	"retrace/hashing/tokenizer"
)

// families are the small tokenizers of fixtures/tokenizers.
var families = []string{"qwen", "llama3", "deepseek", "nemo", "o200k", "gemma", "llama2", "mistral7b", "gpt2", "starcoder", "metaspace"}

func readFixture(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := fixtures.Files.Open("tokenizers/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// choose chooses ids and words.
func choose(t *tokenizer.Tokenizer, lo, hi uint32) (v Vocabulary, err error) {
	if v.IDs, err = ChooseIDs(t, lo, hi); err != nil {
		return v, err
	}
	v.Words, err = ChooseWords(t)
	return v, err
}

// TestFamilies: in each family's small vocabulary prompts have exactly the
// wanted tokens, and share exactly what their segments share.
func TestFamilies(t *testing.T) {
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			tok := readFixture(t, name)
			v, err := choose(tok, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Words) < MinWords || len(v.IDs) < 2 || v.Digest() == "" {
				t.Fatalf("%d words and %d ids, digest %q", len(v.Words), len(v.IDs), v.Digest())
			}
			holdsExactly(t, tok, v, 300)
		})
	}
}

// TestRealTokenizers holds the public tokenizers to the same, in 1,000 pairs of
// segments and in prompts of eight blocks (cases H01 and H02). The tokenizers
// are those of hashing/tokenizer's tests, which hold our reading of them to
// their own library's.
func TestRealTokenizers(t *testing.T) {
	dir := os.Getenv("RETRACE_TOKENIZERS")
	if dir == "" {
		t.Skip("RETRACE_TOKENIZERS names no folder of public tokenizers")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*/models/tokenizer.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no tokenizers in %s (%v)", dir, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(path))), func(t *testing.T) {
			tok, err := tokenizer.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			v, err := choose(tok, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			// Nothing had to be left out: the usual words and ids are fit for all.
			if v.Digest() != "" {
				t.Errorf("%d words and %d ids, want the usual vocabulary", len(v.Words), len(v.IDs))
			}
			holdsExactly(t, tok, v, 1000)
		})
	}
}

// holdsExactly counts the tokens of n pairs of segments, and of prompts that
// share a part of their blocks.
func holdsExactly(t *testing.T, tok *tokenizer.Tokenizer, v Vocabulary, n int) {
	t.Helper()
	m := newMaker(t, Config{Namespace: "exact", BlockSize: 64, Vocabulary: v})
	encode := func(segs ...Segment) []uint32 { return tok.Encode(nil, string(m.AppendText(nil, NewPrompt(segs...)))) }
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		a := Segment{Key: r.Uint64(), N: 1 + r.Uint32N(64)}
		b := Segment{Key: r.Uint64(), N: 1 + r.Uint32N(64)}
		c := Segment{Key: r.Uint64(), N: 1 + r.Uint32N(64), Kind: Tail}
		alone := encode(a)
		for _, second := range []Segment{b, c} {
			ids := encode(a, second)
			if len(alone) != int(a.N) || len(ids) != int(a.N+second.N) || !slices.Equal(ids[:a.N], alone) {
				t.Fatalf("%v then %v: %d and %d tokens, want %d and %d, the first equal", a, second, len(alone), len(ids), a.N, a.N+second.N)
			}
		}
	}
	blocks := func(keys ...uint64) (segs []Segment) {
		for _, k := range keys {
			segs = append(segs, Segment{Key: k, N: 64})
		}
		return segs
	}
	long, other := encode(blocks(1, 2, 3, 4, 5, 6, 7, 8)...), encode(blocks(1, 2, 3, 4, 5, 6, 9, 8)...)
	if len(long) != 512 || len(other) != 512 || !slices.Equal(long[:384], other[:384]) || long[384] == other[384] {
		t.Errorf("prompts of eight blocks that share six have %d and %d tokens, or share others than 384", len(long), len(other))
	}
	for _, id := range slices.Concat(long, m.AppendTokenIDs(nil, NewPrompt(blocks(1, 2, 3, 4)...))) {
		if !tok.Ordinary(id) {
			text, _ := tok.Token(id)
			t.Errorf("token %d (%q) is in a prompt, and is not an ordinary one", id, text)
		}
	}
}

// tiny is a byte-level tokenizer of the words given, each a token bare and
// behind a space, whose first ids are special.
func tiny(t testing.TB, words ...string) *tokenizer.Tokenizer {
	t.Helper()
	vocab, merges := []string{`"<s>":0`, `"Ġ":1`}, []string{}
	seen := map[string]bool{}
	add := func(token string) {
		if !seen[token] {
			seen[token] = true
			vocab = append(vocab, fmt.Sprintf("%q:%d", token, len(vocab)))
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		add(string(c))
	}
	for _, w := range words {
		for i := 2; i <= len(w); i++ {
			add(w[:i])
			merges = append(merges, fmt.Sprintf(`[%q,%q]`, w[:i-1], w[i-1:i]))
		}
	}
	for _, w := range words {
		add("Ġ" + w)
		merges = append(merges, fmt.Sprintf(`["Ġ",%q]`, w))
	}
	tok, err := tokenizer.Read(strings.NewReader(fmt.Sprintf(
		`{"added_tokens":[{"id":0,"content":"<s>","special":true}],
		"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
		"model":{"type":"BPE","vocab":{%s},"merges":[%s]}}`, strings.Join(vocab, ","), strings.Join(merges, ","))))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// letterWords are words of three letters that no other word begins with.
func letterWords(n int) (words []string) {
	for i := range n {
		words = append(words, string([]byte{'a' + byte(i/26%26), 'q', 'a' + byte(i%26)}))
	}
	return words
}

func TestChooseRefuses(t *testing.T) {
	if _, err := choose(tiny(t), 0, 0); err == nil || !strings.Contains(err.Error(), "choose words: found 0") {
		t.Errorf("no words: %v", err)
	}
	if _, err := choose(tiny(t, letterWords(1)...), 0, 0); err == nil || !strings.Contains(err.Error(), "found 1 ") {
		t.Errorf("too few words: %v", err)
	}
	for _, n := range []int{2, 3, 17} { // few words are enough for exact lengths
		tok := tiny(t, letterWords(n)...)
		v, err := choose(tok, 0, 0)
		if err != nil || len(v.Words) != n {
			t.Fatalf("%d words of %d, %v", len(v.Words), n, err)
		}
		m := newMaker(t, Config{BlockSize: 16, Vocabulary: v})
		for key := range uint64(50) {
			p := NewPrompt(Segment{Key: key, N: 16}, Segment{Key: key, N: 5, Kind: Tail})
			if got := len(tok.Encode(nil, string(m.AppendText(nil, p)))); got != 21 {
				t.Errorf("%d tokens of %d words, want 21", got, n)
			}
		}
	}
	tok := tiny(t, letterWords(40)...)
	v, err := choose(tok, 0, 0)
	if err != nil || len(v.Words) != 40 {
		t.Errorf("%d words of the tokenizer's own, %v, want 40", len(v.Words), err)
	}
	if _, err := choose(tok, 500_000, 600_000); err == nil || !strings.Contains(err.Error(), "found 0 ordinary tokens from 500000 to 600000") {
		t.Errorf("a range without ids: %v", err)
	}
	if v, err := choose(tok, 0, 9); err != nil || !slices.Equal(v.IDs, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("ids 0 to 9 without the special one: %v, %v", v.IDs, err)
	}
	if v, err := choose(tok, 1, 9); err != nil || v.IDs != nil {
		t.Errorf("a range of ordinary ids alone: %v, %v", v.IDs, err)
	}
}

func TestNewRefusesVocabularies(t *testing.T) {
	for name, c := range map[string]struct {
		v    Vocabulary
		want string
	}{
		"one word":      {Vocabulary{Words: []string{"a"}}, "1 words"},
		"a space":       {Vocabulary{Words: []string{"a", "b c"}}, `"b c"`},
		"upper case":    {Vocabulary{Words: []string{"a", "Bc"}}, `"Bc"`},
		"an empty word": {Vocabulary{Words: []string{"a", ""}}, `""`},
		"a long word":   {Vocabulary{Words: []string{"a", strings.Repeat("x", 15)}}, "14 letters"},
		"one id":        {Vocabulary{IDs: []uint32{5}}, "1 token ids"},
		"a large id":    {Vocabulary{IDs: []uint32{5, 1_000_000}}, "1000000"},
	} {
		if _, err := New(Config{Vocabulary: c.v}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestUsualVocabularyNamed: naming what is usual changes no prompt.
func TestUsualVocabularyNamed(t *testing.T) {
	usual := newMaker(t, Config{Namespace: "n", BlockSize: 16})
	named := newMaker(t, Config{Namespace: "n", BlockSize: 16,
		Vocabulary: Vocabulary{IDs: idRange(DefaultVocabLo, DefaultVocabHi), Words: CommonWords()}})
	rapid.Check(t, func(t *rapid.T) {
		p := NewPrompt(drawSegments(t, "segments")...)
		if a, b := usual.AppendText(nil, p), named.AppendText(nil, p); string(a) != string(b) {
			t.Fatalf("%q, want %q", b, a)
		}
		if a, b := usual.AppendTokens(nil, p), named.AppendTokens(nil, p); string(a) != string(b) {
			t.Fatalf("%q, want %q", b, a)
		}
	})
}

// TestDigest tells lists apart.
func TestDigest(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range []Vocabulary{
		{}, {Words: []string{"a", "b"}}, {Words: []string{"b", "a"}}, {IDs: []uint32{1, 2}}, {IDs: []uint32{1, 2}, Words: []string{"a", "b"}},
	} {
		if d := v.Digest(); seen[d] || len(d) != 16 && d != "" {
			t.Errorf("digest %q of %v", d, v)
		} else {
			seen[d] = true
		}
	}
}
