package proxy

import (
	"encoding/binary"
	"strconv"

	"retrace/hashing/tokenizer"
	"retrace/openai"
)

// BytesPerToken is what a token of text is taken to be where there is no
// tokenizer: a block of text then is of so many bytes for each of its tokens.
const BytesPerToken = 4

// The marks that part a prompt, as tokens beyond every vocabulary and as bytes
// that no UTF-8 has.
const (
	markMessage = iota
	markContent
	markTools
	markMedia
	markTexts
	marks
)

const (
	firstMarkToken = 1 << 32
	firstMarkByte  = 0x100 - marks
)

// speller writes prompts into chains: as tokens where it can, else as bytes.
type speller struct {
	k         *keyed
	tok       *tokenizer.Tokenizer
	blockSize int // in tokens

	ids   []uint32
	bytes []byte
}

// spelling is one prompt that is written.
type spelling struct {
	*speller
	*chain
	tokens bool
	length int64 // in tokens, or bytes of text
}

// prompt hashes the prompt of a request. length is in tokens where tokens says so, else in
// bytes; there are no digests where a request has several prompts.
func (s *speller) prompt(f *facts) (blocks []digest, length int64, tokens bool) {
	tokens = s.tok != nil
	if len(f.prompts) == 1 && f.prompts[0].IsTokens {
		tokens = true
	}
	sp := s.begin(tokens, f)
	switch {
	case len(f.messages) > 0:
		sp.chat(f)
	case len(f.prompts) == 1:
		sp.one(&f.prompts[0])
	case f.shape == openai.Rerank:
		for i := range f.prompts {
			sp.mark(markTexts)
			sp.text(f.prompts[i].Text)
		}
	default:
		return nil, sp.several(f.prompts), sp.tokens
	}
	return sp.digests(), sp.length, tokens
}

// begin starts a prompt. Prompts of another sort, or for another cache, share
// nothing with it.
func (s *speller) begin(tokens bool, f *facts) *spelling {
	size, unit := s.blockSize*BytesPerToken, "bytes"
	if tokens {
		size, unit = s.blockSize*8, "tokens"
	}
	sort := "text"
	if len(f.messages) > 0 {
		sort = "chat"
	}
	return &spelling{speller: s, tokens: tokens, chain: s.k.newChain(size, unit, strconv.Itoa(s.blockSize), sort, f.CacheSalt)}
}

// several is the length of several prompts, which have no prefix in common: of
// tokens where any is of tokens and the others can be.
func (sp *spelling) several(prompts []openai.Prompt) (n int64) {
	for i := range prompts {
		if prompts[i].IsTokens {
			sp.tokens = true
		}
	}
	for i := range prompts {
		switch p := &prompts[i]; {
		case p.IsTokens:
			n += int64(len(p.Tokens))
		case sp.tok != nil:
			sp.ids = sp.tok.EncodePrompt(sp.ids[:0], p.Text)
			n += int64(len(sp.ids))
		default:
			n += int64(len(p.Text))
		}
	}
	return n
}

// one writes the prompt of a completion.
func (sp *spelling) one(p *openai.Prompt) {
	switch {
	case p.IsTokens:
		sp.add(p.Tokens)
	case sp.tokens:
		sp.ids = sp.tok.EncodePrompt(sp.ids[:0], p.Text)
		sp.add(sp.ids)
	default:
		sp.text(p.Text)
	}
}

// chat writes the tools, which templates put first, and the messages.
func (sp *spelling) chat(f *facts) {
	if len(f.tools) > 0 {
		sp.mark(markTools)
		sp.text(string(f.tools))
	}
	for i := range f.messages {
		sp.message(&f.messages[i])
	}
}

func (sp *spelling) message(m *openai.Message) {
	sp.mark(markMessage)
	sp.text(m.Role)
	sp.mark(markContent)
	at := 0
	for i := range m.Media {
		media := &m.Media[i]
		if to := min(media.At, len(m.Content)); to > at {
			sp.text(m.Content[at:to])
			at = to
		}
		sp.mark(markMedia)
		sp.text(sp.speller.k.nameOf("media", string(media.Content())))
	}
	sp.text(m.Content[at:])
	if len(m.ToolCalls) > 0 {
		sp.mark(markTools)
		sp.text(string(m.ToolCalls))
	}
}

// text writes text.
func (sp *spelling) text(text string) {
	if sp.tokens {
		sp.ids = sp.tok.Encode(sp.ids[:0], text)
		sp.add(sp.ids)
		return
	}
	sp.length += int64(len(text))
	sp.bytes = append(sp.bytes[:0], text...)
	sp.write(sp.bytes)
}

// add writes tokens.
func (sp *spelling) add(ids []uint32) {
	sp.length += int64(len(ids))
	b := sp.bytes[:0]
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
	}
	sp.write(b)
	sp.bytes = b
}

// mark writes a mark, which is as long as a token.
func (sp *spelling) mark(mark int) {
	if !sp.tokens {
		sp.write([]byte{byte(firstMarkByte + mark)})
		return
	}
	sp.length++
	sp.write(binary.LittleEndian.AppendUint64(nil, uint64(firstMarkToken+mark)))
}
