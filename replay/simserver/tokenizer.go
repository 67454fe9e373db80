package simserver

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

const (
	// minVocab leaves room for the output words and for words hashed beside them.
	minVocab = 8192
	// outputWords is the number of words that answers are made of.
	outputWords = 2048
)

// tokenizer makes one token of each white-space separated word: its id is a
// hash of the word, except for "t" and a number, which is the token of that
// number. So detokenised ids, and answers, become the same ids again.
type tokenizer struct {
	vocab uint32
	words [outputWords]string
	ids   [outputWords]uint32
	known map[uint32]string // the output words by id
}

// newTokenizer makes the tokenizer of a vocabulary. Its output words are made
// of two syllables each and have ids of their own.
func newTokenizer(vocab int) *tokenizer {
	const consonants, vowels = "bdfgklmnprstvwzh", "aeio"
	t := &tokenizer{vocab: uint32(vocab), known: make(map[uint32]string, outputWords)}
	for i, n := 0, 0; n < outputWords; i++ {
		word := string([]byte{consonants[i&15], vowels[i>>4&3], consonants[i>>6&15], vowels[i>>10&3]})
		if i >= 4096 { // a small vocabulary has collisions: longer words follow
			word += string([]byte{consonants[i>>12&15], vowels[i>>16&3]})
		}
		id := t.id([]byte(word))
		if _, taken := t.known[id]; taken {
			continue
		}
		t.known[id], t.words[n], t.ids[n] = word, word, id
		n++
	}
	return t
}

// id is the token of one word.
func (t *tokenizer) id(word []byte) uint32 {
	if len(word) > 1 && len(word) < 11 && word[0] == 't' && word[1]-'0' <= 9 {
		if n, err := strconv.ParseUint(string(word[1:]), 10, 32); err == nil && n < uint64(t.vocab) {
			return uint32(n)
		}
	}
	return uint32(xxhash.Sum64(word) % uint64(t.vocab))
}

// word is the text of one token.
func (t *tokenizer) word(id uint32) string {
	if w, ok := t.known[id]; ok {
		return w
	}
	return "t" + strconv.FormatUint(uint64(id), 10)
}

// head appends the tokens that stand before every prompt: n special tokens.
func (t *tokenizer) head(dst []uint32, n int) []uint32 {
	for i := range n {
		dst = append(dst, t.vocab-1-uint32(i)%1024)
	}
	return dst
}

// append appends the tokens of a text.
func (t *tokenizer) append(dst []uint32, text string) []uint32 {
	start := -1
	for i := 0; i < len(text); {
		size, space := 1, text[i] == ' ' || text[i]-'\t' < 5
		if text[i] >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			space = unicode.IsSpace(r)
		}
		if space && start >= 0 {
			dst = append(dst, t.id([]byte(text[start:i])))
			start = -1
		} else if !space && start < 0 {
			start = i
		}
		i += size
	}
	if start >= 0 {
		dst = append(dst, t.id([]byte(text[start:])))
	}
	return dst
}

// output is the i-th token of the answer of the given seed, as an index into
// words and ids: a hash of both.
func (t *tokenizer) output(seed uint64, i int) int { return int(mix(seed, i) % outputWords) }

// mix is the i-th number drawn from a seed (splitmix64, Steele et al. 2014).
func mix(seed uint64, i int) uint64 {
	x := seed + uint64(i+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
