package openai

import (
	"math"
	"strconv"
	"strings"
)

// parsePrompts reads a prompt in any of its four shapes.
func parsePrompts(s *scanner, dst []Prompt) ([]Prompt, error) {
	switch s.peek() {
	case 'n':
		return dst, s.skip()
	case '"':
		text, err := s.text("prompt")
		return append(dst, Prompt{Text: text}), err
	case '[':
	default:
		return dst, s.mismatch("prompt", "a string, an array of strings, of token ids, or of arrays of token ids")
	}
	switch s.peekInside() {
	case '"':
		return parseTextPrompts(s, dst)
	case '[':
		return parseTokenPrompts(s, dst)
	case ']':
		return dst, s.skip()
	}
	tokens, err := s.tokens(reuseTokens(dst))
	return append(dst, Prompt{Tokens: tokens, IsTokens: true}), err
}

func parseTextPrompts(s *scanner, dst []Prompt) ([]Prompt, error) {
	err := s.array("prompt", func() error {
		if s.peek() != '"' {
			return s.mismatch("prompt["+strconv.Itoa(len(dst))+"]", "a string")
		}
		text, err := s.text("prompt")
		dst = append(dst, Prompt{Text: text})
		return err
	})
	return dst, err
}

func parseTokenPrompts(s *scanner, dst []Prompt) ([]Prompt, error) {
	err := s.array("prompt", func() error {
		if s.peek() != '[' {
			return s.mismatch("prompt["+strconv.Itoa(len(dst))+"]", "an array of token ids")
		}
		tokens, err := s.tokens(reuseTokens(dst))
		dst = append(dst, Prompt{Tokens: tokens, IsTokens: true})
		return err
	})
	return dst, err
}

// reuseTokens finds the token array of the prompt that stood at dst's next
// place before.
func reuseTokens(dst []Prompt) []uint32 {
	if len(dst) < cap(dst) {
		return dst[:len(dst)+1][len(dst)].Tokens[:0]
	}
	return nil
}

// tokens reads an array of token ids. This is the hot path of a server: a
// prompt of 9,000 tokens is 50 kB of digits.
func (s *scanner) tokens(dst []uint32) ([]uint32, error) {
	if dst == nil {
		dst = make([]uint32, 0, min(len(s.data)-s.pos, 1<<20)/5+1)
	}
	b, i := s.data, skipSpace(s.data, s.pos+1)
	if i < len(b) && b[i] == ']' {
		s.pos = i + 1
		return dst, nil
	}
	for {
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		start, n := i, uint64(0)
		for i < len(b) {
			d := b[i] - '0'
			if d > 9 {
				break
			}
			n = n*10 + uint64(d)
			i++
		}
		digits := i - start
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		if digits == 0 || digits > 10 || n > math.MaxUint32 || i >= len(b) || (digits > 1 && b[start] == '0') {
			s.pos = start
			return dst, s.badToken(len(dst))
		}
		dst = append(dst, uint32(n))
		i++
		switch b[i-1] {
		case ',':
		case ']':
			s.pos = i
			return dst, nil
		default:
			s.pos = start
			return dst, s.badToken(len(dst) - 1)
		}
	}
}

// badToken says what is wrong with the array element at the scanner's place:
// bad JSON, or a value that is no token id.
func (s *scanner) badToken(index int) error {
	start := s.pos
	if err := s.skip(); err != nil {
		return err
	}
	found := string(s.data[start:s.pos])
	if c := s.peek(); c != ',' && c != ']' {
		return s.broken("',' or ']'")
	}
	return &RequestError{Field: "prompt[" + strconv.Itoa(index) + "]", Offset: start,
		Found: clip(found), Expected: "a token id, an integer from 0 to 4294967295"}
}

// parseMessages reads the messages of a chat.
func parseMessages(s *scanner, dst []Message) ([]Message, error) {
	if s.null() {
		return dst, nil
	}
	err := s.array("messages", func() error {
		field := "messages[" + strconv.Itoa(len(dst)) + "]"
		var m Message
		err := s.object(field, func(key string) (err error) {
			switch key {
			case "role":
				m.Role, err = s.text(field + ".role")
			case "content":
				m.Content, m.Parts, err = parseContent(s, field+".content")
			default:
				err = s.skip()
			}
			return err
		})
		dst = append(dst, m)
		return err
	})
	return dst, err
}

// parseContent reads a message's content: a string, null, or typed parts.
func parseContent(s *scanner, field string) (text string, others int, err error) {
	if s.peek() != '[' {
		text, err = s.text(field)
		return text, 0, err
	}
	var texts []string
	err = s.array(field, func() error {
		if s.peek() == '"' { // some clients send bare strings as parts
			one, err := s.text(field)
			texts = append(texts, one)
			return err
		}
		one, isText, err := parsePart(s, field)
		if isText {
			texts = append(texts, one)
		} else {
			others++
		}
		return err
	})
	return strings.Join(texts, "\n"), others, err
}

func parsePart(s *scanner, field string) (text string, isText bool, err error) {
	kind := ""
	err = s.object(field, func(key string) (err error) {
		switch key {
		case "type":
			kind, err = s.text(field + ".type")
		case "text":
			text, err = s.text(field + ".text")
		default:
			err = s.skip()
		}
		return err
	})
	return text, kind == "text" || kind == "input_text", err
}
