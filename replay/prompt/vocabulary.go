package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"retrace/hashing/tokenizer"
)

// Vocabulary is what prompts are made of where a tokenizer was asked. Prompts
// are a function of it too: only runs with the same one share prompts.
type Vocabulary struct {
	// IDs are token ids: none is a special or an added token. Words are one
	// token each wherever they stand in a prompt. Either may be empty, for the
	// usual ones.
	IDs   []uint32
	Words []string
}

// Digest tells vocabularies apart: 16 hex digits, or "" of the usual one.
func (v Vocabulary) Digest() string {
	if len(v.IDs) == 0 && len(v.Words) == 0 {
		return ""
	}
	h := sha256.New()
	for _, id := range v.IDs {
		_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, id)) // never fails
	}
	_, _ = h.Write([]byte("\n" + strings.Join(v.Words, " ")))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

const (
	// MinWords is the least number of words that prompts are made of.
	MinWords = 2
	// FewWords is a number of words below which more blocks share their first
	// token than is good: with W words two in one place do at odds of 1/W.
	FewWords = 256
	// minIDs is the least number of ids of the default range; with fewer there
	// the whole vocabulary is taken.
	minIDs = 1000
	// spaceMarks are the runes that stand for a space in tokens.
	spaceMarks = "Ġ▁ "
)

// ChooseIDs chooses token ids for prompts: those from lo to hi that are ordinary
// tokens of the tokenizer. lo and hi of 0 stand for the default range, or, where
// that has few of them, for the whole vocabulary. The result is nil where it
// is all of the range.
func ChooseIDs(t *tokenizer.Tokenizer, lo, hi uint32) ([]uint32, error) {
	given := lo != 0 || hi != 0
	if !given {
		lo, hi = DefaultVocabLo, DefaultVocabHi
	}
	ids := ordinary(t, lo, hi)
	if len(ids) < minIDs && !given {
		lo, hi = 0, MaxVocab
		ids = ordinary(t, lo, hi)
	}
	switch {
	case len(ids) < 2:
		return nil, fmt.Errorf("choose token ids: found %d ordinary tokens from %d to %d of the tokenizer's %d ids, expected 2 or more",
			len(ids), lo, hi, t.VocabSize())
	case len(ids) == int(hi-lo)+1:
		return nil, nil // the range itself
	}
	return ids, nil
}

// ordinary are the ids from lo to hi of ordinary tokens.
func ordinary(t *tokenizer.Tokenizer, lo, hi uint32) []uint32 {
	var ids []uint32
	for id := int(lo); id <= int(hi) && id < t.VocabSize(); id++ {
		if t.Ordinary(uint32(id)) {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// ChooseWords chooses words for prompts: the common ones, where each is one
// token with and without a space before it; then the result is nil. Where some
// are not, the tokenizer's own words stand in for them.
func ChooseWords(t *tokenizer.Tokenizer) ([]string, error) {
	c := newChooser(t)
	common := strings.Fields(wordList)
	for _, w := range common[:wordCount] {
		c.try(w)
	}
	if len(c.words) == wordCount {
		return nil, c.check(c.words)
	}
	for _, w := range common[wordCount:] {
		c.try(w)
	}
	c.tryOwn(3)
	if len(c.words) < FewWords {
		c.tryOwn(1)
	}
	if len(c.words) < MinWords {
		return nil, fmt.Errorf("choose words: found %d of letters a-z that are one token with and without a space, expected %d or more: "+
			"the tokenizer does not suit text prompts (prompts of token ids need none)", len(c.words), MinWords)
	}
	return c.words, c.check(c.words)
}

// chooser collects words that are one token each.
type chooser struct {
	t *tokenizer.Tokenizer
	// anchor is a text to put a word behind, before its tokens.
	anchor string
	before []uint32
	seen   map[string]bool
	words  []string
	buf    []uint32
}

func newChooser(t *tokenizer.Tokenizer) *chooser {
	c := &chooser{t: t, anchor: "a ", seen: map[string]bool{}}
	c.before = t.Encode(nil, "a")
	return c
}

// tryOwn tries the words of the tokenizer's own that have so many letters or
// more.
func (c *chooser) tryOwn(letters int) {
	for id := 0; id < c.t.VocabSize() && len(c.words) < wordCount; id++ {
		token, _ := c.t.Token(uint32(id))
		w := strings.TrimLeft(token, spaceMarks)
		if len(w) >= letters && w != token && isWord(w) {
			c.try(w)
		}
	}
}

// try takes the word if it is one ordinary token at the start of a text, and
// one behind another word, and there is room for it.
func (c *chooser) try(w string) {
	if len(c.words) == wordCount || c.seen[w] {
		return
	}
	c.seen[w] = true
	c.buf = c.t.Encode(c.buf[:0], w)
	if len(c.buf) != 1 || !c.is(c.buf[0], w) {
		return
	}
	c.buf = c.t.Encode(c.buf[:0], c.anchor+w)
	n := len(c.before)
	if len(c.buf) == n+1 && slices.Equal(c.buf[:n], c.before) && c.is(c.buf[n], w) {
		c.words = append(c.words, w)
	}
}

// is says whether the token is an ordinary one and spells the word: of a word
// with unknown letters a tokenizer may make one that does not.
func (c *chooser) is(id uint32, w string) bool {
	token, _ := c.t.Token(id)
	return c.t.Ordinary(id) && strings.TrimLeft(token, spaceMarks) == w
}

// check counts texts of all words in three orders: what is one token alone must
// be one among others.
func (c *chooser) check(words []string) error {
	for _, step := range []int{1, len(words) - 1, 1021} { // 1021 is a prime, and no factor of a smaller list
		list := make([]string, 0, len(words))
		for i := range words {
			list = append(list, words[(i+1)*step%len(words)])
		}
		text := strings.Join(list, " ")
		if c.buf = c.t.Encode(c.buf[:0], text); len(c.buf) != len(words) {
			return fmt.Errorf("choose words: %d words in a row are %d tokens, though each is one", len(words), len(c.buf))
		}
	}
	return nil
}
