package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// The default vocabulary: ids that are ordinary tokens in every public
// vocabulary tried. MaxVocab is the largest id that Config takes.
const (
	DefaultVocabLo uint32 = 1000
	DefaultVocabHi uint32 = 31999
	MaxVocab       uint32 = 999_999
)

// Config is what a prompt is a function of, beside its segments.
type Config struct {
	// Namespace keeps the prompts of one trace apart from another's
	// (record.Header.Namespace); Salt those of one run from another's. Either
	// may be empty.
	Namespace string
	Salt      string
	// BlockSize is the length of a whole block in tokens, 0 where the trace
	// has no blocks.
	BlockSize int
	// VocabLo and VocabHi are the first and the last token id to use; both 0
	// stand for DefaultVocabLo and DefaultVocabHi.
	VocabLo, VocabHi uint32
	// Vocabulary has the token ids and words to use where a tokenizer was asked;
	// its zero value stands for all ids from VocabLo to VocabHi, and for the
	// package's own words.
	Vocabulary Vocabulary
}

// Maker renders prompts. It is immutable and safe for concurrent use.
type Maker struct {
	blockSize int
	// tokens and words spell segments as indices of ids and of table.
	tokens, words speller
	ids           []uint32
	table         []word
	// digits[i] is the decimal text of token ids[i] and a comma, first byte
	// lowest, with its length in the highest byte.
	digits []uint64
	// digitsMax is the longest text in digits.
	digitsMax int
}

// New makes a Maker, or says which field of cfg cannot be.
func New(cfg Config) (*Maker, error) {
	if cfg.VocabLo == 0 && cfg.VocabHi == 0 {
		cfg.VocabLo, cfg.VocabHi = DefaultVocabLo, DefaultVocabHi
	}
	if cfg.BlockSize < 0 {
		return nil, fmt.Errorf("make prompts: block size %d, want 0 or more", cfg.BlockSize)
	}
	if cfg.VocabHi > MaxVocab || cfg.VocabLo >= cfg.VocabHi {
		return nil, fmt.Errorf("make prompts: vocabulary %d:%d, want LO:HI with LO < HI <= %d",
			cfg.VocabLo, cfg.VocabHi, MaxVocab)
	}
	m := &Maker{blockSize: cfg.BlockSize, ids: cfg.Vocabulary.IDs, table: wordTable[:]}
	if len(cfg.Vocabulary.Words) > 0 {
		table, err := makeTable(cfg.Vocabulary.Words)
		if err != nil {
			return nil, err
		}
		m.table = table
	}
	if len(m.ids) == 0 {
		m.ids = idRange(cfg.VocabLo, cfg.VocabHi)
	}
	if err := m.setDigits(); err != nil {
		return nil, err
	}
	keys := deriveKeys(cfg)
	m.tokens = newSpeller(keys, uint32(len(m.ids)))
	m.words = newSpeller(keys, uint32(len(m.table)))
	return m, nil
}

// idRange is all ids from lo to hi.
func idRange(lo, hi uint32) []uint32 {
	ids := make([]uint32, hi-lo+1)
	for i := range ids {
		ids[i] = lo + uint32(i)
	}
	return ids
}

// setDigits writes down the ids' texts.
func (m *Maker) setDigits() error {
	if len(m.ids) < 2 {
		return fmt.Errorf("make prompts: vocabulary of %d token ids, want 2 or more", len(m.ids))
	}
	m.digits = make([]uint64, len(m.ids))
	for i, id := range m.ids {
		if id > MaxVocab {
			return fmt.Errorf("make prompts: token id %d, want at most %d", id, MaxVocab)
		}
		var b [8]byte
		text := append(strconv.AppendUint(b[:0], uint64(id), 10), ',')
		b[7] = byte(len(text))
		m.digits[i] = binary.LittleEndian.Uint64(b[:])
		m.digitsMax = max(m.digitsMax, len(text))
	}
	return nil
}

// BlockSize is the length of a whole block in tokens.
func (m *Maker) BlockSize() int { return m.blockSize }

// ParseVocab reads the LO:HI of a vocabulary, both inclusive.
func ParseVocab(s string) (lo, hi uint32, err error) {
	a, b, ok := strings.Cut(s, ":")
	l, errLo := strconv.ParseUint(a, 10, 32)
	h, errHi := strconv.ParseUint(b, 10, 32)
	if !ok || errLo != nil || errHi != nil || l >= h || h > uint64(MaxVocab) {
		return 0, 0, fmt.Errorf("parse vocabulary %q: want LO:HI with LO < HI <= %d", s, MaxVocab)
	}
	return uint32(l), uint32(h), nil
}

// deriveKeys is one key per kind: the SHA-256 of the configuration, each
// string behind its length, as four little-endian numbers.
func deriveKeys(cfg Config) (keys [kinds]uint64) {
	msg := []byte("retrace prompt 1")
	for _, s := range []string{cfg.Namespace, cfg.Salt} {
		msg = binary.LittleEndian.AppendUint64(msg, uint64(len(s)))
		msg = append(msg, s...)
	}
	msg = binary.LittleEndian.AppendUint64(msg, uint64(cfg.BlockSize))
	sum := sha256.Sum256(msg)
	for i := range keys {
		keys[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	return keys
}
