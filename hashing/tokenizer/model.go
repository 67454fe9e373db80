package tokenizer

import (
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

const (
	// cacheSlots is how many words of a text are remembered with their tokens.
	cacheSlots = 1 << 16
	// maxCached is the longest word that is remembered, in bytes.
	maxCached = 64
	// none stands for no token.
	none = ^uint32(0)
)

// model is a byte-pair encoding.
type model struct {
	vocab  map[string]uint32
	tokens []string // by id; "" where there is none
	known  []bool   // by id
	merges *merges

	// byteLevel says that words are spelt in letters for their bytes.
	byteLevel bool
	// bytes are the tokens of single bytes: of their letters on the byte level,
	// else those like <0x0A>. none where there is none.
	bytes        [256]uint32
	byteFallback bool
	unknown      uint32
	fuseUnknown  bool
	ignoreMerges bool
	// mark is the rune before which a text may be cut into words that never
	// merge, 0 for none, unless one of glued stands before it.
	mark  rune
	glued map[rune]bool

	cache [cacheSlots]atomic.Pointer[cached]
}

// cached is a word with its tokens.
type cached struct {
	word string
	ids  []uint32
}

// finish derives what the other fields imply, once these are complete.
func (m *model) finish(unknown string) {
	m.unknown = none
	if id, found := m.vocab[unknown]; found && unknown != "" {
		m.unknown = id
	}
	const hex = "0123456789ABCDEF"
	for b := range m.bytes {
		name := letterTexts[b]
		if !m.byteLevel {
			name = "<0x" + string([]byte{hex[b>>4], hex[b&15]}) + ">"
		}
		m.bytes[b] = none
		if id, found := m.vocab[name]; found {
			m.bytes[b] = id
		}
	}
	m.findCuts()
}

// maxGlued bounds the runes before which cutting is not safe: with more, texts
// are not cut.
const maxGlued = 1000

// findCuts finds where texts without a pre-tokenizer can be cut: before a
// space's mark, where no token has the mark behind the rune before it. What no
// token spans no merge spans.
func (m *model) findCuts() {
	const mark = "▁"
	if _, found := m.vocab[mark]; !found || m.byteLevel {
		return
	}
	m.glued = map[rune]bool{}
	for token := range m.vocab {
		for at := 0; ; {
			next := strings.Index(token[at:], mark)
			if next < 0 {
				break
			}
			at += next
			if r, size := utf8.DecodeLastRuneInString(token[:at]); size > 0 {
				m.glued[r] = true
			}
			at += len(mark)
		}
	}
	if m.mark = '▁'; len(m.glued) > maxGlued {
		m.mark = 0
	}
	m.glued['▁'] = true
}

// encode appends the tokens of a text that is normalized and split.
func (m *model) encode(dst []uint32, text string) []uint32 {
	if m.mark == 0 {
		return m.word(dst, text)
	}
	start := 0
	before := m.mark // which allows no cut
	for i, r := range text {
		if r == m.mark && !m.glued[before] {
			dst = m.word(dst, text[start:i])
			start = i
		}
		before = r
	}
	return m.word(dst, text[start:])
}

// word appends the tokens of a word, from the cache where it is there.
func (m *model) word(dst []uint32, word string) []uint32 {
	if len(word) > maxCached {
		return m.merge(dst, word)
	}
	if word == "" {
		return dst
	}
	slot := &m.cache[xxhash.Sum64String(word)%cacheSlots]
	if c := slot.Load(); c != nil && c.word == word {
		return append(dst, c.ids...)
	}
	from := len(dst)
	dst = m.merge(dst, word)
	slot.Store(&cached{word: strings.Clone(word), ids: append([]uint32(nil), dst[from:]...)})
	return dst
}

// merge appends the tokens of a word.
func (m *model) merge(dst []uint32, word string) []uint32 {
	if m.ignoreMerges {
		if id, found := m.lookup(word); found {
			return append(dst, id)
		}
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.symbols = w.symbols[:0]
	if m.byteLevel {
		for i := range len(word) {
			m.spellByte(w, word[i])
		}
	} else {
		m.spell(w, word)
	}
	return w.merge(dst, m.merges)
}

// lookup finds a whole word in the vocabulary.
func (m *model) lookup(word string) (id uint32, found bool) {
	if !m.byteLevel {
		id, found = m.vocab[word]
		return id, found
	}
	var buf [2 * maxCached]byte
	id, found = m.vocab[string(appendLetters(buf[:0], word))]
	return id, found
}

// spellByte pushes the token of a byte. Where there is none it is unknown, or,
// where there is no token for that either, left out.
func (m *model) spellByte(w *workspace, b byte) {
	if id := m.bytes[b]; id != none {
		w.push(id)
	} else if m.unknown != none {
		w.unknown(m)
	}
}

// unknown pushes the unknown token, once for a run of them where the model
// fuses those.
func (w *workspace) unknown(m *model) {
	if n := len(w.symbols); m.fuseUnknown && n > 0 && w.symbols[n-1].id == m.unknown {
		return
	}
	w.push(m.unknown)
}

// spell pushes the tokens of the word's runes: each a token, or its bytes, or
// unknown.
func (m *model) spell(w *workspace, word string) {
	for i := 0; i < len(word); {
		_, size := decode(word, i)
		part := word[i : i+size]
		i += size
		if id, found := m.vocab[part]; found {
			w.push(id)
			continue
		}
		if m.byteFallback && m.hasBytes(part) {
			for j := range len(part) {
				w.push(m.bytes[part[j]])
			}
			continue
		}
		if m.unknown != none {
			w.unknown(m)
		}
	}
}

// hasBytes says whether all bytes of a text are tokens.
func (m *model) hasBytes(text string) bool {
	for i := range len(text) {
		if m.bytes[text[i]] == none {
			return false
		}
	}
	return true
}
