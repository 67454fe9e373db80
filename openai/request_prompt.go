package openai

import (
	"math"
	"strconv"
)

// parsePrompts reads a prompt in any of its four shapes; name is the field's.
func parsePrompts(s *scanner, name string, dst []Prompt) ([]Prompt, error) {
	switch s.peek() {
	case 'n':
		return dst, s.skip()
	case '"':
		text, err := s.text(name)
		return append(dst, Prompt{Text: text}), err
	case '[':
	default:
		return dst, s.mismatch(name, "a string, an array of strings, of token ids, or of arrays of token ids")
	}
	switch s.peekInside() {
	case '"':
		return parseTextPrompts(s, name, dst)
	case '[':
		return parseTokenPrompts(s, name, dst)
	case ']':
		return dst, s.skip()
	}
	tokens, err := s.tokens(name, reuseTokens(dst))
	return append(dst, Prompt{Tokens: tokens, IsTokens: true}), err
}

func parseTextPrompts(s *scanner, name string, dst []Prompt) ([]Prompt, error) {
	err := s.array(name, func() error {
		if s.peek() != '"' {
			return s.mismatch(name+"["+strconv.Itoa(len(dst))+"]", "a string")
		}
		text, err := s.text(name)
		dst = append(dst, Prompt{Text: text})
		return err
	})
	return dst, err
}

func parseTokenPrompts(s *scanner, name string, dst []Prompt) ([]Prompt, error) {
	err := s.array(name, func() error {
		if s.peek() != '[' {
			return s.mismatch(name+"["+strconv.Itoa(len(dst))+"]", "an array of token ids")
		}
		tokens, err := s.tokens(name, reuseTokens(dst))
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
func (s *scanner) tokens(name string, dst []uint32) ([]uint32, error) {
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
			return dst, s.badToken(name, len(dst))
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
			return dst, s.badToken(name, len(dst)-1)
		}
	}
}

// badToken says what is wrong with the array element at the scanner's place:
// bad JSON, or a value that is no token id.
func (s *scanner) badToken(name string, index int) error {
	start := s.pos
	if err := s.skip(); err != nil {
		return err
	}
	found := string(s.data[start:s.pos])
	if c := s.peek(); c != ',' && c != ']' {
		return s.broken("',' or ']'")
	}
	return &RequestError{Field: name + "[" + strconv.Itoa(index) + "]", Offset: start,
		Found: clip(found), Expected: "a token id, an integer from 0 to 4294967295"}
}
