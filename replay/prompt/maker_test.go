package prompt

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// newMaker makes a Maker or fails the test.
func newMaker(t testing.TB, cfg Config) *Maker {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// knownAnswer is a prompt as testdata/reference.py spelt it, in Python, from docs/prompts.md.
type knownAnswer struct {
	Namespace, Salt string
	BlockSize       int `json:"block_size"`
	Lo, Hi          uint32
	Segments        []Segment
	Tokens          []uint32
	Text            string
}

func readKnownAnswers(t *testing.T) []knownAnswer {
	t.Helper()
	data, err := os.ReadFile("testdata/known_answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []knownAnswer
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestKnownAnswers is the golden test of case H05: the prompts are what an
// independent implementation made of them, in another process and language.
func TestKnownAnswers(t *testing.T) {
	for i, c := range readKnownAnswers(t) {
		m := newMaker(t, Config{Namespace: c.Namespace, Salt: c.Salt, BlockSize: c.BlockSize, VocabLo: c.Lo, VocabHi: c.Hi})
		p := NewPrompt(c.Segments...)
		if got := m.AppendTokenIDs(nil, p); !slices.Equal(got, c.Tokens) {
			t.Errorf("case %d: token ids %v, want %v", i, got, c.Tokens)
		}
		if got := string(m.AppendText(nil, p)); got != c.Text {
			t.Errorf("case %d: text %q, want %q", i, got, c.Text)
		}
		want, err := json.Marshal(c.Tokens)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.AppendTokens(nil, p)); got != string(want) {
			t.Errorf("case %d: JSON %s, want %s", i, got, want)
		}
	}
}

// TestReferenceIsCurrent runs the reference where Python is installed.
func TestReferenceIsCurrent(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	got, err := exec.Command(python, "testdata/reference.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/known_answers.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("testdata/known_answers.json is not what testdata/reference.py prints")
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"one token":           {Config{VocabLo: 5, VocabHi: 5}, "vocabulary 5:5"},
		"upside down":         {Config{VocabLo: 9, VocabHi: 5}, "vocabulary 9:5"},
		"ids too large":       {Config{VocabLo: 0, VocabHi: 1_000_000}, "<= 999999"},
		"negative block size": {Config{BlockSize: -1}, "block size -1"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestParseVocab(t *testing.T) {
	if lo, hi, err := ParseVocab("1000:31999"); lo != 1000 || hi != 31999 || err != nil {
		t.Errorf("1000:31999 gives %d, %d, %v", lo, hi, err)
	}
	for _, s := range []string{"", "5", "5:", ":5", "5:5", "6:5", "a:b", "-1:5", "0:1000000", "1:2:3", "0:99999999999"} {
		if _, _, err := ParseVocab(s); err == nil || !strings.Contains(err.Error(), "LO:HI") {
			t.Errorf("%q: error %v, want one that shows the form", s, err)
		}
	}
}

// drawSegments draws up to six segments of short texts.
func drawSegments(t *rapid.T, label string) []Segment {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Segment {
		return Segment{
			Key:  rapid.Uint64().Draw(t, "key"),
			N:    rapid.Uint32Range(0, 1200).Draw(t, "n"),
			Kind: Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind")),
		}
	}), 0, 6).Draw(t, label)
}

// TestRendersLengthExactly holds every rendering to the wanted length (H01)
// and to one another, after whatever stood in dst before.
func TestRendersLengthExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Uint32Range(0, 2000).Draw(t, "lo")
		hi := rapid.Uint32Range(lo+1, lo+40000).Draw(t, "hi")
		m, err := New(Config{Namespace: "n", BlockSize: 512, VocabLo: lo, VocabHi: hi})
		if err != nil {
			t.Fatal(err)
		}
		segs := drawSegments(t, "segments")
		p, want := NewPrompt(segs...), 0
		for _, s := range segs {
			want += int(s.N)
		}
		ids := m.AppendTokenIDs([]uint32{7}, p)[1:]
		if p.Tokens() != want || len(ids) != want {
			t.Fatalf("%d tokens planned, %d rendered, want %d", p.Tokens(), len(ids), want)
		}
		var parsed []uint32
		body := m.AppendTokens([]byte("x"), p)
		if err := json.Unmarshal(body[1:], &parsed); err != nil || !slices.Equal(parsed, ids) || len(body)-1 > m.MaxTokensLen(p) {
			t.Fatalf("JSON of %d bytes gives %v, %v, want %v", len(body)-1, parsed, err, ids)
		}
		for _, id := range ids {
			if id < lo || id > hi {
				t.Fatalf("token %d outside %d:%d", id, lo, hi)
			}
		}
		text := string(m.AppendText([]byte("x"), p))[1:]
		if n := len(strings.Fields(text)); n != want || text != strings.Join(strings.Fields(text), " ") {
			t.Fatalf("%d words, want %d, joined by one space each: %q", n, want, text)
		}
		if quoted, err := json.Marshal(text); err != nil || string(quoted) != `"`+text+`"` {
			t.Fatalf("text is not JSON-safe: %q", text)
		}
	})
}

// TestSeamsDoNotDrift is case H02: the text of two segments is the words of
// the one and then those of the other, for thousands of pairs.
func TestSeamsDoNotDrift(t *testing.T) {
	m := newMaker(t, Config{Namespace: "seams", BlockSize: 16})
	words := func(segs ...Segment) []string {
		return strings.Split(string(m.AppendText(nil, NewPrompt(segs...))), " ")
	}
	for i := range uint64(5000) {
		a := Segment{Key: mix(i), N: uint32(1 + i%16)}
		b := Segment{Key: mix(i + 1), N: uint32(1 + i%7)}
		c := Segment{Key: mix(i + 2), N: 16}
		for _, second := range []Segment{b, c} {
			if got, want := words(a, second), append(words(a), words(second)...); !slices.Equal(got, want) {
				t.Fatalf("%v then %v: %q, want %q", a, second, got, want)
			}
		}
	}
}

// TestPartialIsPrefix: the first k tokens of a block are the block's first k tokens.
func TestPartialIsPrefix(t *testing.T) {
	m := newMaker(t, Config{Namespace: "partial", BlockSize: 1500})
	whole := Segment{Key: 42, N: 1500}
	ids := m.AppendTokenIDs(nil, NewPrompt(whole))
	text := strings.Fields(string(m.AppendText(nil, NewPrompt(whole))))
	for k := range whole.N + 1 {
		part := NewPrompt(Segment{Key: 42, N: k})
		if got := m.AppendTokenIDs(nil, part); !slices.Equal(got, ids[:k]) {
			t.Fatalf("first %d tokens are %v, want %v", k, got, ids[:k])
		}
		if got := strings.Fields(string(m.AppendText(nil, part))); !slices.Equal(got, text[:k]) {
			t.Fatalf("first %d words are %v, want %v", k, got, text[:k])
		}
	}
}

// unspell undoes spellHead.
func unspell(s *speller, kind Kind, d []uint32) uint64 {
	d = slices.Clone(d)
	width := uint64(s.width)
	for i := len(d) - 1; i >= 0; i-- {
		moved := make([]uint32, len(d))
		probe := slices.Clone(d)
		// The move of digit i depends on the others alone: the digit 0 shows it.
		probe[i] = 0
		copy(moved, probe)
		s.moveDigit(moved, kind, i)
		d[i] = uint32((uint64(d[i]) + width - uint64(moved[i])) % width)
	}
	key := uint64(0)
	for i := len(d) - 1; i >= 0; i-- {
		key = key*width + uint64(d[i])
	}
	return key
}

// TestHeadTellsKeysApart inverts the head, which proves that no two keys of a
// kind have the same one.
func TestHeadTellsKeysApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.OneOf(rapid.Just(uint32(31000)), rapid.Just(uint32(wordCount)), rapid.Uint32Range(2, 1_000_000)).Draw(t, "width")
		s := newSpeller(deriveKeys(Config{Namespace: "x"}), width)
		key := rapid.Uint64().Draw(t, "key")
		kind := Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind"))
		head := make([]uint32, s.head)
		s.spell(head, kind, key, 0)
		if got := unspell(&s, kind, head); got != key {
			t.Fatalf("head %v spells %d, want %d", head, got, key)
		}
	})
}

// TestHeadLengths: 31000^4 = 9.2e17 < 2^64 <= 31000^5, and 2048^5 = 2^55 < 2^64 <= 2^66.
func TestHeadLengths(t *testing.T) {
	for width, want := range map[uint32]int{31000: 5, wordCount: 6, 2: 64, 1 << 16: 4, 1_000_000: 4} {
		if s := newSpeller([kinds]uint64{}, width); s.head != want {
			t.Errorf("%d indices: head of %d, want %d", width, s.head, want)
		}
	}
}

// TestNeighboursDifferAtOnce: among any 31,000 consecutive ids that share the
// higher digits no two begin with the same token, nor any 2,048 with the same word.
func TestNeighboursDifferAtOnce(t *testing.T) {
	m := newMaker(t, Config{Namespace: "siblings", BlockSize: 512})
	for _, s := range []*speller{&m.tokens, &m.words} {
		for _, base := range []uint64{0, 5 * uint64(s.width), math.MaxUint64 / uint64(s.width) / 2 * uint64(s.width)} {
			seen := make(map[uint32]bool)
			for i := range uint64(s.width) {
				var first [1]uint32
				s.spell(first[:], Block, base+i, 0)
				seen[first[0]] = true
			}
			if len(seen) != int(s.width) {
				t.Errorf("%d ids from %d on begin with %d different tokens", s.width, base, len(seen))
			}
		}
	}
}

// TestFirstTokensOfFarKeys: ids that differ in higher digits meet in the first
// token about once in 31,000 pairs. 2,000 keys are 1,999,000 pairs, which is
// 64.5 expected, give or take 8.
func TestFirstTokensOfFarKeys(t *testing.T) {
	m := newMaker(t, Config{Namespace: "far", BlockSize: 512})
	count := make(map[uint32]int)
	for i := range uint64(2000) {
		count[m.AppendTokenIDs(nil, NewPrompt(Segment{Key: i * 31000, N: 1}))[0]]++
	}
	pairs := 0
	for _, n := range count {
		pairs += n * (n - 1) / 2
	}
	if pairs < 32 || pairs > 97 {
		t.Errorf("%d pairs share their first token, want about 64", pairs)
	}
}

// TestNamespaceAndSalt is case H06: one id in two traces, in two runs or at
// two block sizes gives texts that part at the first tokens.
func TestNamespaceAndSalt(t *testing.T) {
	base := Config{Namespace: "a", Salt: "b", BlockSize: 16}
	p := NewPrompt(Segment{Key: 555, N: 16})
	want := newMaker(t, base).AppendTokenIDs(nil, p)
	for name, cfg := range map[string]Config{
		"other namespace":         {Namespace: "c", Salt: "b", BlockSize: 16},
		"other salt":              {Namespace: "a", Salt: "c", BlockSize: 16},
		"other block size":        {Namespace: "a", Salt: "b", BlockSize: 32},
		"same letters, other cut": {Namespace: "ab", Salt: "", BlockSize: 16},
	} {
		if got := newMaker(t, cfg).AppendTokenIDs(nil, p); slices.Equal(got[:5], want[:5]) {
			t.Errorf("%s: begins with the same tokens %v", name, got[:5])
		}
	}
	if got := newMaker(t, base).AppendTokenIDs(nil, p); !slices.Equal(got, want) {
		t.Errorf("same configuration: %v, want %v", got, want)
	}
}

// TestKindsDiffer: one key as block, tail and output are three texts.
func TestKindsDiffer(t *testing.T) {
	m := newMaker(t, Config{BlockSize: 16})
	var texts []string
	for k := range kinds {
		texts = append(texts, string(m.AppendText(nil, NewPrompt(Segment{Kind: k, Key: 1, N: 6}))))
	}
	if slices.Sort(texts); len(slices.Compact(texts)) != int(kinds) {
		t.Errorf("kinds share a text: %q", texts)
	}
}

// TestOrderAndGoroutines is the rest of case H05: the bytes do not depend on
// what was rendered before or beside them.
func TestOrderAndGoroutines(t *testing.T) {
	m := newMaker(t, Config{Namespace: "order", BlockSize: 64})
	render := func(i int) string {
		return string(m.AppendTokens(nil, NewPrompt(Segment{Key: uint64(i), N: 64}, Segment{Key: uint64(i / 3), N: 9, Kind: Tail})))
	}
	const n = 200
	want := make([]string, n)
	for i := range n {
		want[i] = render(i)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := n - 1; i >= 0; i-- {
				if render(i) != want[i] {
					t.Errorf("prompt %d differs when rendered backwards", i)
				}
			}
		})
	}
	group.Wait()
}

// TestWordTable: 2,048 different words of a-z that fit their entries.
func TestWordTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, w := range wordTable {
		text := string(w[1:w[15]])
		if w[0] != ' ' || len(text) < 3 || len(text) > 14 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") != "" || seen[text] {
			t.Errorf("word %q is no use", text)
		}
		seen[text] = true
	}
	if lines := strings.Split(strings.TrimSpace(wordList), "\n"); len(lines) != 2152 || lines[0] != string(wordTable[0][1:wordTable[0][15]]) {
		t.Errorf("%d words in the list, want 2,152", len(lines))
	}
}

// TestSteadyStateDoesNotAllocate: rendering into a large enough buffer costs no memory.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	m := newMaker(t, Config{BlockSize: 512})
	p := NewPrompt(Segment{Key: 1, N: 512}, Segment{Key: 2, N: 512}, Segment{Key: 3, N: 100, Kind: Tail})
	body := make([]byte, 0, 1<<16)
	ids := make([]uint32, 0, 1<<12)
	if n := testing.AllocsPerRun(20, func() {
		body = m.AppendTokens(body[:0], p)
		body = m.AppendText(body[:0], p)
		ids = m.AppendTokenIDs(ids[:0], p)
	}); n != 0 {
		t.Errorf("%v allocations a prompt, want none", n)
	}
}

func BenchmarkAppendTokens(b *testing.B) {
	benchmarkAppend(b, (*Maker).AppendTokens)
}

func BenchmarkAppendText(b *testing.B) {
	benchmarkAppend(b, (*Maker).AppendText)
}

// benchmarkAppend renders a prompt of 8,192 tokens, about 50 kB.
func benchmarkAppend(b *testing.B, render func(*Maker, []byte, Prompt) []byte) {
	m := newMaker(b, Config{Namespace: "bench", BlockSize: 512})
	var p Prompt
	for i := range uint64(16) {
		p.add(Segment{Key: i, N: 512})
	}
	body := render(m, nil, p)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		body = render(m, body[:0], p)
	}
}
