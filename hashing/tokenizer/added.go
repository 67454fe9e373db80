package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is looked for in a text before the model sees it.
type addedToken struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// finder finds added tokens in a text: the first in it, and of those that
// begin there the longest. It is a trie over bytes.
type finder struct {
	tokens []addedToken
	first  [256]bool
	next   map[uint64]int32 // node<<8 | byte
	ends   []int32          // by node: the token that ends there, or -1
}

// newFinder makes a finder of the tokens, which have contents.
func newFinder() *finder { return &finder{next: map[uint64]int32{}, ends: []int32{-1}} }

// add adds a token as it looks in the texts that are searched.
func (f *finder) add(t addedToken, content string) {
	if content == "" {
		return
	}
	f.first[content[0]] = true
	node := int32(0)
	for i := range len(content) {
		key := uint64(node)<<8 | uint64(content[i])
		kid, found := f.next[key]
		if !found {
			kid = int32(len(f.ends))
			f.next[key] = kid
			f.ends = append(f.ends, -1)
		}
		node = kid
	}
	if f.ends[node] < 0 {
		f.ends[node] = int32(len(f.tokens))
		f.tokens = append(f.tokens, t)
	}
}

// at is the longest token that begins at i, nil where there is none, and its end.
func (f *finder) at(text string, i int) (t *addedToken, end int) {
	if !f.first[text[i]] {
		return nil, 0
	}
	node := int32(0)
	for ; i < len(text); i++ {
		kid, found := f.next[uint64(node)<<8|uint64(text[i])]
		if !found {
			break
		}
		if node = kid; f.ends[node] >= 0 {
			t, end = &f.tokens[f.ends[node]], i+1
		}
	}
	return t, end
}

// find finds the first token at or behind from: the place it takes, which its
// flags may widen, and where the next search begins. t is nil at the end.
func (f *finder) find(text string, from int) (t *addedToken, start, end int) {
	for i := from; i < len(text); i++ {
		t, stop := f.at(text, i)
		if t == nil {
			continue
		}
		if t.SingleWord && (wordBefore(text[:i]) || wordAfter(text[stop:])) {
			i = stop - 1
			continue
		}
		start, end = i, stop
		if t.LStrip {
			start = from + len(strings.TrimRightFunc(text[from:i], unicode.IsSpace))
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[stop:], unicode.IsSpace))
		}
		return t, start, end
	}
	return nil, len(text), len(text)
}

func wordBefore(text string) bool {
	r, size := utf8.DecodeLastRuneInString(text)
	return size > 0 && isWord(r)
}

func wordAfter(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	return size > 0 && isWord(r)
}

// isWord says whether the rune is what \w means.
func isWord(r rune) bool {
	return r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc)
}
