package simserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"

	"retrace/openai"
)

// placed is a medium in a prompt: where its placeholders stand, and the digest
// of what it shows.
type placed struct {
	from, to int // tokens
	digest   string
}

// placeholder is the token id that stands for a medium of a kind: one of the
// last ids, below those of the head.
func (t *tokenizer) placeholder(kind openai.MediaKind) uint32 {
	return t.vocab - 1025 - uint32(kind)
}

// unknownSeconds is how long sound is taken to be that the request only names.
const unknownSeconds = 10

// maxMediaTokens bounds the placeholders of one medium.
const maxMediaTokens = 1 << 24

// mediaTokens is how many placeholders a medium has.
func (s *Server) mediaTokens(m *openai.Media) int {
	switch m.Kind {
	case openai.Image:
		return s.cfg.ImageTokens
	case openai.Video:
		return s.cfg.VideoTokens
	case openai.Audio:
		seconds := float64(unknownSeconds)
		if m.Inline {
			seconds = base64Seconds(m.Content())
		}
		return s.audioTokens(seconds)
	}
	return s.cfg.FileTokens
}

// audioTokens is how many placeholders sound of so many seconds has.
func (s *Server) audioTokens(seconds float64) int {
	return int(min(max(1, math.Ceil(seconds*float64(s.cfg.AudioTokensPerSecond))), maxMediaTokens))
}

// addMedia appends a medium's placeholders.
func (s *Server) addMedia(dst []uint32, media []placed, m *openai.Media) ([]uint32, []placed, *apiError) {
	n := s.mediaTokens(m)
	if len(dst)+n > s.cfg.MaxModelLen {
		return dst, media, badRequest("This model's maximum context length is %d tokens. However, your prompt contains at least %d input tokens. "+
			"Please reduce the length of the input prompt.", s.cfg.MaxModelLen, len(dst)+n)
	}
	digest := sha256.Sum256(m.Content())
	media = append(media, placed{len(dst), len(dst) + n, hex.EncodeToString(digest[:])})
	id := s.tok.placeholder(m.Kind)
	for range n {
		dst = append(dst, id)
	}
	return dst, media, nil
}

// chatTokens appends the tokens of a chat: the head, the tools, then the words
// and media of all messages. Roles cost nothing beyond the template's constant.
func (s *Server) chatTokens(dst []uint32, media []placed, chat *openai.ChatRequest) ([]uint32, []placed, *apiError) {
	dst = s.tok.head(dst, s.cfg.BOSTokens+s.cfg.ChatTemplateTokens)
	if chat.Tools != nil {
		dst = s.tok.append(dst, string(chat.Tools))
	}
	for i := range chat.Messages {
		m := &chat.Messages[i]
		at := 0
		for k := range m.Media {
			one := &m.Media[k]
			dst = s.tok.append(dst, m.Content[at:one.At])
			at = one.At
			var fail *apiError
			if dst, media, fail = s.addMedia(dst, media, one); fail != nil {
				return dst, media, fail
			}
		}
		dst = s.tok.append(dst, m.Content[at:])
		if m.ToolCalls != nil {
			dst = s.tok.append(dst, string(m.ToolCalls))
		}
	}
	return dst, media, nil
}

// base64Seconds is the duration of a sound in base64.
func base64Seconds(text []byte) float64 {
	head := make([]byte, base64.StdEncoding.DecodedLen(min(len(text), 4096)))
	n, _ := base64.StdEncoding.Decode(head, text[:min(len(text), 4096)&^3])
	return audioSeconds(head[:n], int64(len(text))/4*3)
}

// rawRate is the rate of sound whose header says nothing: 16,000 samples a
// second of two bytes.
const rawRate = 32_000

// audioSeconds is the duration of a sound of size bytes that begins with head:
// by the header of a WAV file (RIFF, chunks "fmt " and "data"), else at rawRate.
func audioSeconds(head []byte, size int64) float64 {
	rate, at := float64(rawRate), 12
	if len(head) < 12 || string(head[:4]) != "RIFF" || string(head[8:12]) != "WAVE" {
		return float64(size) / rate
	}
	for at+8 <= len(head) {
		n := int64(binary.LittleEndian.Uint32(head[at+4:]))
		switch {
		case bytes.Equal(head[at:at+4], []byte("fmt ")) && at+20 <= len(head):
			if r := binary.LittleEndian.Uint32(head[at+16:]); r > 0 {
				rate = float64(r)
			}
		case bytes.Equal(head[at:at+4], []byte("data")):
			return float64(min(n, max(0, size-int64(at)-8))) / rate
		}
		if n > int64(len(head)) {
			break
		}
		at += 8 + int(n+n&1)
	}
	return float64(size) / rate
}
