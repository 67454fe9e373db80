package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// maxNesting bounds how deep JSON values may lie in one another.
const maxNesting = 64

// scanner reads JSON from memory. It exists because the vocabularies and
// merges of these files are millions of short strings, for which
// encoding/json takes seconds.
type scanner struct {
	data []byte
	pos  int
}

// errorf is an error at the scanner's place.
func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: %w", s.pos, fmt.Errorf(format, args...))
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// expect reads one byte that must come next.
func (s *scanner) expect(c byte) error {
	if found := s.peek(); found != c {
		if s.pos >= len(s.data) {
			return s.errorf("found the end, expected %q", c)
		}
		return s.errorf("found %q, expected %q", found, c)
	}
	s.pos++
	return nil
}

// list reads what stands between open and end, calling item before each part.
func (s *scanner) list(open, end byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.peek() == end {
		s.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.peek() != ',' {
			return s.expect(end)
		}
		s.pos++
	}
}

// array reads an array; item reads each element.
func (s *scanner) array(item func() error) error { return s.list('[', ']', item) }

// object reads an object; member reads each value. The key is valid until
// member reads another string.
func (s *scanner) object(member func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// str reads a string. What it returns is part of the data where it has no
// escapes.
func (s *scanner) str() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start, escaped := s.pos, false
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			if !escaped {
				return s.data[start : s.pos-1], nil
			}
			var text string
			if err := json.Unmarshal(s.data[start-1:s.pos], &text); err != nil {
				return nil, s.errorf("%w", err)
			}
			return []byte(text), nil
		case c == '\\':
			escaped = true
			s.pos++ // an escaped quote ends nothing
		case c < ' ':
			return nil, s.errorf("found control character %q in a string", c)
		}
	}
	s.pos = len(s.data)
	return nil, s.errorf("found the end in a string")
}

// number reads a number from 0 to the largest uint32.
func (s *scanner) number() (uint32, error) {
	s.peek()
	start, n := s.pos, uint64(0)
	for ; s.pos < len(s.data) && s.data[s.pos]-'0' <= 9; s.pos++ {
		if n = n*10 + uint64(s.data[s.pos]-'0'); n > math.MaxUint32 {
			return 0, s.errorf("found a number above %d", uint32(math.MaxUint32))
		}
	}
	if s.pos == start || s.data[start] == '0' && s.pos > start+1 {
		return 0, s.errorf("expected a whole number from 0 on")
	}
	return uint32(n), nil
}

// skip passes over one value, whose inside is not checked beyond brackets and
// strings, and returns it.
func (s *scanner) skip() (json.RawMessage, error) {
	s.peek()
	start := s.pos
	for depth := 0; ; {
		switch c := s.peek(); c {
		case 0:
			return nil, s.errorf("found the end, expected a value")
		case '"':
			if _, err := s.str(); err != nil {
				return nil, err
			}
		case '{', '[':
			if depth++; depth > maxNesting {
				return nil, s.errorf("found more than %d nested values", maxNesting)
			}
			s.pos++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return nil, s.errorf("found %q, expected a value", c)
			}
			s.pos++
		case ',', ':':
			if depth == 0 {
				return nil, s.errorf("found %q, expected a value", c)
			}
			s.pos++
			continue
		default: // a number or a word
			end := bytes.IndexAny(s.data[s.pos:], " \t\r\n,:{}[]\"")
			if end < 0 {
				end = len(s.data) - s.pos
			}
			s.pos += max(end, 1)
		}
		if depth == 0 {
			return s.data[start:s.pos], nil
		}
	}
}
