package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"
)

const (
	// maxFile bounds a file in bytes. The largest of the public ones tried has
	// 33 MB.
	maxFile = 128 << 20
	// maxGap bounds how far ids may lie beyond the number of tokens.
	maxGap = 1 << 16
)

// Load reads the tokenizer.json at path.
func Load(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a directory, expected the tokenizer.json in it")
	}
	var t *Tokenizer
	if err == nil {
		t, err = read(f, min(info.Size(), maxFile))
	}
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Read reads a tokenizer.json to its end. What it does not support is an error
// that names it.
func Read(r io.Reader) (*Tokenizer, error) {
	t, err := read(r, 0)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	return t, nil
}

// read reads a file of about size bytes.
func read(r io.Reader, size int64) (*Tokenizer, error) {
	var buf bytes.Buffer
	buf.Grow(int(size) + bytes.MinRead)
	if _, err := buf.ReadFrom(io.LimitReader(r, maxFile+1)); err != nil {
		return nil, err
	}
	if buf.Len() > maxFile {
		return nil, fmt.Errorf("found more than %d bytes", maxFile)
	}
	return parse(buf.Bytes())
}

// file is a tokenizer.json with its parts as they stand there.
type file struct {
	normalizer, preTokenizer, postProcessor, decoder, added json.RawMessage
	model                                                   *modelFile
}

// parse reads a whole file.
func parse(data []byte) (*Tokenizer, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	s := &scanner{data: data}
	var f file
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "normalizer":
			f.normalizer, err = s.skip()
		case "pre_tokenizer":
			f.preTokenizer, err = s.skip()
		case "post_processor":
			f.postProcessor, err = s.skip()
		case "decoder":
			f.decoder, err = s.skip()
		case "added_tokens":
			f.added, err = s.skip()
		case "model":
			f.model, err = readModel(s)
		default:
			_, err = s.skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.peek(); s.pos < len(data) {
		return nil, s.errorf("found more behind the object")
	}
	if f.model == nil {
		return nil, errors.New(`found no "model": is it a tokenizer.json of Hugging Face tokenizers?`)
	}
	return f.build()
}

// build makes the tokenizer of what was read.
func (f *file) build() (*Tokenizer, error) {
	t := &Tokenizer{raw: newFinder(), normal: newFinder()}
	n, err := parseNode(f.normalizer)
	if err == nil {
		_, err = growth(n)
	}
	if err == nil {
		t.normalizers, err = newNormalizers(n)
	}
	if err != nil {
		return nil, fmt.Errorf("field normalizer: %w", err)
	}
	n, err = parseNode(f.preTokenizer)
	byteLevel := false
	if err == nil {
		t.splitters, byteLevel, err = newSplitters(n)
	}
	if err != nil {
		return nil, fmt.Errorf("field pre_tokenizer: %w", err)
	}
	if t.model, err = f.model.build(byteLevel); err != nil {
		return nil, fmt.Errorf("field model: %w", err)
	}
	if err := t.addTokens(f.added); err != nil {
		return nil, fmt.Errorf("field added_tokens: %w", err)
	}
	n, err = parseNode(f.postProcessor)
	if err == nil {
		err = t.setTemplate(n)
	}
	if err != nil {
		return nil, fmt.Errorf("field post_processor: %w", err)
	}
	n, err = parseNode(f.decoder)
	if err == nil {
		err = t.decode.set(n)
	}
	if err != nil {
		return nil, fmt.Errorf("field decoder: %w", err)
	}
	return t, nil
}

// modelFile is the model as it stands in the file.
type modelFile struct {
	vocab        map[string]uint32
	most         uint32 // the largest id
	merges       []byte // the array
	offset       int    // where it begins
	unknown      string
	fuse, bytes  bool
	ignoreMerges bool
}

// readModel reads the value of "model".
func readModel(s *scanner) (*modelFile, error) {
	m := &modelFile{}
	rest := map[string]json.RawMessage{}
	err := s.object(func(key []byte) (err error) {
		switch name := string(key); name {
		case "vocab":
			return m.readVocab(s)
		case "merges":
			s.peek()
			m.offset = s.pos
			m.merges, err = s.skip()
		default:
			rest[name], err = s.skip()
			if name == "type" && err == nil {
				err = checkModel(rest)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("field model: %w", err)
	}
	if err := m.setOptions(rest); err != nil {
		return nil, fmt.Errorf("field model: %w", err)
	}
	return m, nil
}

// checkModel refuses models of another type.
func checkModel(rest map[string]json.RawMessage) error {
	var kind string
	if err := json.Unmarshal(rest["type"], &kind); err != nil {
		return fmt.Errorf("field type: %w", err)
	}
	if kind != "BPE" {
		return fmt.Errorf("type %q is not supported, expected BPE", kind)
	}
	return nil
}

// setOptions reads the model's small members.
func (m *modelFile) setOptions(rest map[string]json.RawMessage) error {
	var dropout *float64
	var unknown, prefix, suffix *string
	for name, to := range map[string]any{
		"dropout": &dropout, "unk_token": &unknown, "continuing_subword_prefix": &prefix, "end_of_word_suffix": &suffix,
		"fuse_unk": &m.fuse, "byte_fallback": &m.bytes, "ignore_merges": &m.ignoreMerges,
	} {
		if raw, found := rest[name]; found {
			if err := json.Unmarshal(raw, to); err != nil {
				return fmt.Errorf("field %s: %w", name, err)
			}
		}
	}
	switch {
	case m.vocab == nil:
		return errors.New("found no vocab")
	case m.merges == nil:
		return errors.New("found no merges")
	case dropout != nil && *dropout != 0:
		return fmt.Errorf("dropout %v is not supported", *dropout)
	case prefix != nil && *prefix != "":
		return fmt.Errorf("continuing_subword_prefix %q is not supported", *prefix)
	case suffix != nil && *suffix != "":
		return fmt.Errorf("end_of_word_suffix %q is not supported", *suffix)
	}
	if unknown != nil {
		m.unknown = *unknown
	}
	return nil
}

// readVocab reads the tokens and their ids.
func (m *modelFile) readVocab(s *scanner) error {
	if m.vocab != nil {
		return s.errorf("found vocab twice")
	}
	m.vocab = make(map[string]uint32, min(1<<17, (len(s.data)-s.pos)/16))
	return s.object(func(key []byte) error {
		token := string(key)
		id, err := s.number()
		if err != nil {
			return fmt.Errorf("vocab, token %.100q: %w", token, err)
		}
		if old, found := m.vocab[token]; found && old != id {
			return s.errorf("vocab, token %.100q: found ids %d and %d", token, old, id)
		}
		m.vocab[token] = id
		m.most = max(m.most, id)
		return nil
	})
}

// build makes the model.
func (m *modelFile) build(byteLevel bool) (*model, error) {
	if uint64(m.most) > 2*uint64(len(m.vocab))+maxGap {
		return nil, fmt.Errorf("vocab: found id %d among %d tokens: it is too large", m.most, len(m.vocab))
	}
	out := &model{
		vocab: m.vocab, byteLevel: byteLevel, byteFallback: m.bytes, fuseUnknown: m.fuse, ignoreMerges: m.ignoreMerges,
	}
	size := 0
	if len(m.vocab) > 0 {
		size = int(m.most) + 1
	}
	out.tokens, out.known = make([]string, size), make([]bool, size)
	for token, id := range m.vocab {
		if out.known[id] {
			twice := []string{token, out.tokens[id]}
			slices.Sort(twice)
			return nil, fmt.Errorf("vocab: id %d is that of %.100q and of %.100q", id, twice[0], twice[1])
		}
		out.tokens[id], out.known[id] = token, true
	}
	var err error
	if out.merges, err = m.readMerges(); err != nil {
		return nil, err
	}
	out.finish(m.unknown)
	return out, nil
}

// readMerges reads the merges, each "a b" or ["a", "b"].
func (m *modelFile) readMerges() (*merges, error) {
	s := &scanner{data: m.merges}
	table := newMerges(min(len(m.vocab)*2, len(m.merges)/8))
	var both []byte
	rank := uint32(0)
	err := s.array(func() error {
		left, right, err := readMerge(s)
		if err != nil {
			return err
		}
		both = append(append(both[:0], left...), right...)
		l, okLeft := m.vocab[string(left)]
		r, okRight := m.vocab[string(right)]
		id, ok := m.vocab[string(both)]
		switch {
		case !okLeft:
			return fmt.Errorf("merge %d: %.100q is not in vocab", rank, left)
		case !okRight:
			return fmt.Errorf("merge %d: %.100q is not in vocab", rank, right)
		case !ok:
			return fmt.Errorf("merge %d: %.100q is not in vocab", rank, both)
		}
		table.put(pairOf(l, r), rank, id)
		rank++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("merges (from byte %d on): %w", m.offset, err)
	}
	return table, nil
}

// readMerge reads one merge in either form.
func readMerge(s *scanner) (left, right []byte, err error) {
	if s.peek() == '"' {
		text, err := s.str()
		if err != nil {
			return nil, nil, err
		}
		left, right, found := bytes.Cut(text, []byte(" "))
		if !found || bytes.IndexByte(right, ' ') >= 0 {
			return nil, nil, s.errorf("merge %.100q: expected two tokens and one space", text)
		}
		return left, right, nil
	}
	parts := 0
	err = s.array(func() (err error) {
		switch parts++; parts {
		case 1:
			left, err = s.str()
		case 2:
			right, err = s.str()
		default:
			err = s.errorf("found more than two parts of a merge")
		}
		return err
	})
	if err == nil && parts != 2 {
		err = s.errorf("found %d parts of a merge, expected 2", parts)
	}
	return left, right, err
}
