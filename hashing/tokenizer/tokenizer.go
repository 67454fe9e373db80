package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Tokenizer turns text into tokens and back. It is safe for concurrent use.
type Tokenizer struct {
	// raw finds added tokens in the text as it is, normal in what was
	// normalized.
	raw, normal *finder
	normalizers []normalizer
	splitters   []splitter
	model       *model

	added          map[uint32]addedToken
	prefix, suffix []uint32
	decode         decoder
	size           int
}

// Encode appends the text's tokens, without those that Prefix and Suffix name.
// Added tokens, special ones too, are recognised where the text spells them.
func (t *Tokenizer) Encode(dst []uint32, text string) []uint32 {
	for from := 0; from < len(text); {
		token, start, end := t.raw.find(text, from)
		if from < start {
			dst = t.encodeRaw(dst, text[from:start], from == 0)
		}
		if token != nil {
			dst = append(dst, token.ID)
		}
		from = end
	}
	return dst
}

// EncodePrompt appends the text's tokens between Prefix and Suffix, as a server
// does for a prompt.
func (t *Tokenizer) EncodePrompt(dst []uint32, text string) []uint32 {
	return append(t.Encode(append(dst, t.prefix...), text), t.suffix...)
}

// encodeRaw appends the tokens of a text without added ones, but for those that
// are looked for in normalized text.
func (t *Tokenizer) encodeRaw(dst []uint32, text string, first bool) []uint32 {
	text = t.normalize(text)
	for from := 0; from < len(text); {
		token, start, end := t.normal.find(text, from)
		if from < start {
			dst = t.encodePlain(dst, text[from:start], first && from == 0)
		}
		if token != nil {
			dst = append(dst, token.ID)
		}
		from = end
	}
	return dst
}

// encodePlain appends the tokens of a normalized text: split, then merged.
func (t *Tokenizer) encodePlain(dst []uint32, text string, first bool) []uint32 {
	next := func(part string, _ bool) { dst = t.model.encode(dst, part) }
	for i := len(t.splitters) - 1; i >= 0; i-- {
		step, then := t.splitters[i], next
		next = func(part string, first bool) { step(part, first, then) }
	}
	next(text, first)
	return dst
}

// Prefix is what the post-processor puts before a prompt, such as the token of
// the sequence's beginning; Suffix what it puts behind. They may be empty, and
// must not be changed.
func (t *Tokenizer) Prefix() []uint32 { return t.prefix }

// Suffix is what the post-processor puts behind a prompt; see Prefix.
func (t *Tokenizer) Suffix() []uint32 { return t.suffix }

// VocabSize is the largest id plus one.
func (t *Tokenizer) VocabSize() int { return t.size }

// Ordinary says whether the id is a token of the model that is no added token,
// and neither the unknown one nor a fall-back for one byte.
func (t *Tokenizer) Ordinary(id uint32) bool {
	m := t.model
	if int64(id) >= int64(len(m.known)) || !m.known[id] || id == m.unknown {
		return false
	}
	if _, added := t.added[id]; added {
		return false
	}
	_, fallback := byteToken(m.tokens[id])
	return !fallback || m.byteLevel
}

// Token is the token's text as the file has it, in letters for bytes or with
// marks for spaces; false where there is no such id.
func (t *Tokenizer) Token(id uint32) (string, bool) {
	if a, found := t.added[id]; found {
		return a.Content, true
	}
	if int64(id) < int64(len(t.model.known)) && t.model.known[id] {
		return t.model.tokens[id], true
	}
	return "", false
}

// addTokens reads the list of added tokens.
func (t *Tokenizer) addTokens(raw json.RawMessage) error {
	var list []addedToken
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
	}
	t.added = make(map[uint32]addedToken, len(list))
	t.size = len(t.model.known)
	for _, a := range list {
		if err := t.checkAdded(a, len(list)); err != nil {
			return err
		}
		t.added[a.ID] = a
		t.size = max(t.size, int(a.ID)+1)
		if a.Normalized {
			t.normal.add(a, t.normalize(a.Content))
		} else {
			t.raw.add(a, a.Content)
		}
	}
	return nil
}

// checkAdded refuses an added token whose id is another token's.
func (t *Tokenizer) checkAdded(a addedToken, n int) error {
	if uint64(a.ID) > 2*uint64(len(t.model.known)+n)+maxGap {
		return fmt.Errorf("token %.100q: found id %d among %d tokens: it is too large", a.Content, a.ID, len(t.model.vocab)+n)
	}
	if id, found := t.model.vocab[a.Content]; found && id != a.ID {
		return fmt.Errorf("token %.100q: found id %d, and %d in the model's vocab", a.Content, a.ID, id)
	}
	if other, found := t.Token(a.ID); found && other != a.Content {
		return fmt.Errorf("token %.100q: its id %d is that of %.100q too", a.Content, a.ID, other)
	}
	return nil
}

// templatePiece is a part of what a post-processor makes: a token or the text.
type templatePiece struct {
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID string `json:"id"`
	} `json:"Sequence"`
}

// setTemplate takes over what a post-processor puts around a prompt.
func (t *Tokenizer) setTemplate(n *node) error {
	if n == nil {
		return nil
	}
	switch n.Type {
	case "ByteLevel": // moves offsets alone
		return nil
	case "Sequence":
		for i := range n.Processors {
			if err := t.setTemplate(&n.Processors[i]); err != nil {
				return err
			}
		}
		return nil
	case "TemplateProcessing":
		return t.setPieces(n)
	}
	return fmt.Errorf("post-processor %q is not supported", n.Type)
}

func (t *Tokenizer) setPieces(n *node) error {
	var before, after []uint32
	seen := false
	for _, piece := range n.Single {
		switch {
		case piece.Sequence != nil && !seen:
			seen = true
		case piece.SpecialToken != nil:
			special, found := n.SpecialTokens[piece.SpecialToken.ID]
			if !found {
				return fmt.Errorf("template: %q is not among its special tokens", piece.SpecialToken.ID)
			}
			if seen {
				after = append(after, special.IDs...)
			} else {
				before = append(before, special.IDs...)
			}
		default:
			return errors.New("template: found a piece that is neither a special token nor the one text")
		}
	}
	if !seen {
		return errors.New("template: found no text in it")
	}
	t.prefix, t.suffix = append(before, t.prefix...), append(t.suffix, after...)
	return nil
}

// decoder is how tokens become text.
type decoder struct {
	known     bool
	byteLevel bool
	fallback  bool
	replace   []string // pairs of old and new
	strip     string   // a text to take from the start, up to most times
	most      int
	replacer  *strings.Replacer
}

// set takes over what the file's decoder says.
func (d *decoder) set(n *node) error {
	if n == nil {
		return nil
	}
	d.known = true
	switch n.Type {
	case "Sequence":
		for i := range n.Decoders {
			if err := d.set(&n.Decoders[i]); err != nil {
				return err
			}
		}
	case "ByteLevel":
		d.byteLevel = true
	case "ByteFallback":
		d.fallback = true
	case "Fuse":
	case "Replace":
		if n.Pattern.String == nil || *n.Pattern.String == "" {
			return errors.New("decoder Replace: found no pattern of type String, which is all that is supported")
		}
		d.replace = append(d.replace, *n.Pattern.String, n.Content)
	case "Strip":
		if n.Stop != 0 || n.Content == "" || n.Start < 0 || d.strip != "" {
			return errors.New("decoder Strip: only one, from the start, is supported")
		}
		d.strip, d.most = n.Content, n.Start
	case "Metaspace":
		d.replace = append(d.replace, n.Replacement, " ")
		if n.PrependScheme != "never" && isTrue(n.AddPrefixSpace) {
			d.strip, d.most = " ", 1
		}
	default:
		return fmt.Errorf("decoder %q is not supported", n.Type)
	}
	if len(d.replace) > 0 {
		d.replacer = strings.NewReplacer(d.replace...)
	}
	return nil
}

// Decode appends the text of the tokens, of added ones too. It is what was
// encoded, but for what the normalizer changed and unknown tokens lose; bytes
// that are no UTF-8, as where a rune's tokens are cut apart, stay as they are.
func (t *Tokenizer) Decode(dst []byte, ids []uint32) ([]byte, error) {
	if !t.decode.known {
		return dst, errors.New("decode tokens: the tokenizer has no decoder")
	}
	start := len(dst)
	for _, id := range ids {
		token, found := t.Token(id)
		if !found {
			return dst, fmt.Errorf("decode tokens: found id %d, which is none of the %d", id, t.size)
		}
		dst = t.decode.token(dst, token)
	}
	for range t.decode.most {
		text := dst[start:]
		if !strings.HasPrefix(string(text[:min(len(text), len(t.decode.strip))]), t.decode.strip) {
			break
		}
		dst = append(dst[:start], text[len(t.decode.strip):]...)
	}
	return dst, nil
}

// token appends one token's text.
func (d *decoder) token(dst []byte, token string) []byte {
	if d.byteLevel {
		return appendBytes(dst, token)
	}
	if d.fallback {
		if b, ok := byteToken(token); ok {
			return append(dst, b)
		}
	}
	if d.replacer != nil {
		token = d.replacer.Replace(token)
	}
	return append(dst, token...)
}
