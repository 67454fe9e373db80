package tokenizer

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// patterns are those of the public families but for their look-ahead, which
// Go's regexp lacks.
var patterns = []string{
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+`,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+`,
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+",
	`[一-龥぀-ゟ゠-ヿ]+`, `\p{N}`, `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+`,
	`a|ab|abc`, `a{2,3}(?:b|cd)?`, `.x`, `[^a]b*`, `(?i:straße)|\d+`,
}

// TestPatternsAgreeWithRegexp finds the same parts as Go's engine does.
func TestPatternsAgreeWithRegexp(t *testing.T) {
	for _, expr := range patterns {
		p, err := compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		translated, err := translate(expr)
		if err != nil {
			t.Fatal(err)
		}
		theirs := regexp.MustCompile(translated)
		rapid.Check(t, func(t *rapid.T) {
			text := drawText(t) + rapid.StringMatching(`[abcdx\n ]{0,12}`).Draw(t, "letters")
			var want [][]int
			for _, m := range theirs.FindAllStringIndex(text, -1) {
				if m[0] < m[1] {
					want = append(want, m)
				}
			}
			if got := p.all(text); !slices.EqualFunc(got, want, slices.Equal[[]int]) {
				t.Fatalf("%s in %q: %v, want %v", expr, text, got, want)
			}
		})
	}
}

// all are the places of all matches.
func (p *pattern) all(text string) (all [][]int) {
	for i := 0; i < len(text); {
		if end := p.match(text, i); end > i {
			all = append(all, []int{i, end})
			i = end
			continue
		}
		_, size := decode(text, i)
		i += size
	}
	return all
}

// TestLookAhead: the last space before a word is the word's, by hand.
func TestLookAhead(t *testing.T) {
	p, err := compile(`\s+(?!\S)|\s+`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"   ": 3, "   x": 2, " x": 1, "  \n": 3, "\u00a0\u3000x": 2, "x": -1, "": -1} {
		if got := p.match(text, 0); got != want {
			t.Errorf("%q: match ends at %d, want %d", text, got, want)
		}
	}
}

// TestSpacesAreUnicode: \s is White_Space, of which Go's has six.
func TestSpacesAreUnicode(t *testing.T) {
	set := newClass(spaces)
	for r := range rune(0x3100) {
		want := r >= '\t' && r <= '\r' || strings.ContainsRune(" \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000", r) || r >= 0x2000 && r <= 0x200a
		if set.has(r) != want {
			t.Errorf("%U: %v", r, !want)
		}
	}
	if all := complement(complement(spaces)); !slices.Equal(all, spaces) {
		t.Errorf("twice the complement is %x", all)
	}
}

// TestHostilePatternEnds: what is accepted takes bounded time on short texts.
func TestHostilePatternEnds(t *testing.T) {
	p, err := compile(`a*a*a*b`)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if end := p.match(strings.Repeat("a", 400), 0); end != -1 {
		t.Errorf("matched to %d", end)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestBehaviors cuts "a--b-" at "-" in each way. The parts are those of the
// library's documentation for "the-final--countdown", by analogy.
func TestBehaviors(t *testing.T) {
	for b, want := range map[behavior]string{
		isolated: "a|-|-|b|-", removed: "a|b", withBefore: "a-|-|b-", withNext: "a|-|-b|-", contiguous: "a|--|b|-",
	} {
		var got []string
		splitAt(literal("-"), b, false)("a--b-", true, func(part string, first bool) {
			if first != (len(got) == 0) {
				t.Errorf("%s: part %q is first: %v", b, part, first)
			}
			got = append(got, part)
		})
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %s", b, got, want)
		}
	}
	var got []string
	splitAt(literal("-"), removed, true)("a--b-", true, func(part string, _ bool) { got = append(got, part) })
	if strings.Join(got, "|") != "-|-|-" {
		t.Errorf("inverted: %q", got)
	}
}

// TestLettersAreABijection of the bytes.
func TestLettersAreABijection(t *testing.T) {
	if len(bytesOf) != 256 || letters[' '] != 'Ġ' || letters['\n'] != 'Ċ' || letters['a'] != 'a' {
		t.Errorf("%d letters; space is %c", len(bytesOf), letters[' '])
	}
	if got := string(appendBytes(nil, "a▁")); got != "a▁" {
		t.Errorf("a token with other runes gives %q", got)
	}
}

// FuzzScanner reads what encoding/json reads, and the same.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":0,"\u0120t":1,"\"":2}`, `{"a" : 1 , "b":2}`, `{}`, `{"a":01}`, `{"a":1}x`, `{"\ud800":1}`, "{\"\t\":1}", `[["a","b"]]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &scanner{data: []byte(text)}
		got := map[string]uint32{}
		err := s.object(func(key []byte) error {
			k := string(key)
			n, err := s.number()
			got[k] = n
			return err
		})
		if s.peek(); err == nil && s.pos == len(text) && utf8.ValidString(text) {
			var want map[string]uint32
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatalf("%q is read, but %v", text, err)
			}
			if len(want) != len(got) {
				t.Fatalf("%q: %v, want %v", text, got, want)
			}
			for k, v := range want {
				if got[k] != v {
					t.Fatalf("%q: %v, want %v", text, got, want)
				}
			}
		}
		s = &scanner{data: []byte(text)}
		raw, err := s.skip()
		if json.Valid([]byte(text)) && (err != nil || strings.TrimSpace(text) != string(raw) && strings.Trim(text, " \t\r\n") != string(raw)) {
			t.Fatalf("%q: skipped %q, %v", text, raw, err)
		}
	})
}
