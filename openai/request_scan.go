package openai

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// RequestError says what is wrong with a request's body, and where.
type RequestError struct {
	// Field is the path of the field, "" where the JSON itself is broken.
	Field string
	// Offset is the byte offset in the body.
	Offset int
	// Found and Expected are what is there and what should be.
	Found    string
	Expected string
}

// Error is "field F at byte N: found …, expected …".
func (e *RequestError) Error() string {
	where := "json"
	if e.Field != "" {
		where = "field " + e.Field
	}
	return fmt.Sprintf("parse request: %s at byte %d: found %s, expected %s", where, e.Offset, e.Found, e.Expected)
}

// maxDepth bounds the nesting of a body.
const maxDepth = 512

// scanner walks over one JSON text. It accepts what encoding/json accepts.
type scanner struct {
	data  []byte
	pos   int
	depth int
}

// parseObject calls field for each key of the object that is the whole body;
// field must consume the value.
func parseObject(body []byte, field func(s *scanner, key string) error) error {
	s := &scanner{data: body}
	if err := s.object("body", func(key string) error { return field(s, key) }); err != nil {
		return err
	}
	if s.peek() != 0 || s.pos < len(s.data) {
		return s.broken("the end of the body")
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	s.pos = skipSpace(s.data, s.pos)
	if s.pos == len(s.data) {
		return 0
	}
	return s.data[s.pos]
}

// peekInside returns the first byte behind the bracket at the scanner's place.
func (s *scanner) peekInside() byte {
	if i := skipSpace(s.data, s.pos+1); i < len(s.data) {
		return s.data[i]
	}
	return 0
}

// null consumes a null and says whether there was one.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal("null") == nil }

func (s *scanner) literal(word string) error {
	if end := s.pos + len(word); end <= len(s.data) && string(s.data[s.pos:end]) == word {
		s.pos = end
		return nil
	}
	return s.broken("a JSON value")
}

// broken is the error for text that is not JSON.
func (s *scanner) broken(expected string) error {
	found := "the end of the body"
	if s.pos < len(s.data) {
		found = clip(string(s.data[s.pos:min(len(s.data), s.pos+clipAt+1)]))
	}
	return &RequestError{Offset: s.pos, Found: found, Expected: expected}
}

// mismatch is the error for a value of a wrong type; if the value is broken
// JSON, that goes first.
func (s *scanner) mismatch(field, expected string) error {
	s.peek()
	start := s.pos
	if err := s.skip(); err != nil {
		return err
	}
	return &RequestError{Field: field, Offset: start, Found: clip(string(s.data[start:s.pos])), Expected: expected}
}

const clipAt = 40

func clip(text string) string {
	if len(text) <= clipAt {
		return text
	}
	cut := clipAt
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// object reads an object and calls field at each value, which field consumes.
func (s *scanner) object(name string, field func(key string) error) error {
	if s.peek() != '{' {
		return s.mismatch(name, "an object")
	}
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		if s.peek() == '}' && first {
			break
		}
		key, err := s.quoted()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.broken("':'")
		}
		s.pos++
		s.peek()
		if err := field(key); err != nil {
			return err
		}
		if c := s.peek(); c == '}' {
			break
		} else if c != ',' {
			return s.broken("',' or '}'")
		}
		s.pos++
	}
	s.leave()
	return nil
}

// array reads an array and calls element at each value, which element consumes.
func (s *scanner) array(name string, element func() error) error {
	if s.peek() != '[' {
		return s.mismatch(name, "an array")
	}
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		if s.peek() == ']' && first {
			break
		}
		if err := element(); err != nil {
			return err
		}
		if c := s.peek(); c == ']' {
			break
		} else if c != ',' {
			return s.broken("',' or ']'")
		}
		s.pos++
	}
	s.leave()
	return nil
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > maxDepth {
		return s.broken("nesting of at most " + strconv.Itoa(maxDepth) + " levels")
	}
	s.pos++
	return nil
}

func (s *scanner) leave() {
	s.depth--
	s.pos++
}

// skip consumes any value.
func (s *scanner) skip() error {
	switch c := s.peek(); {
	case c == '{':
		return s.object("", func(string) error { return s.skip() })
	case c == '[':
		return s.array("", s.skip)
	case c == '"':
		_, _, err := s.stringSpan()
		return err
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || c-'0' <= 9:
		return s.number()
	}
	return s.broken("a JSON value")
}

// raw consumes any value and returns a copy of its text, nil for null.
func (s *scanner) raw(string) ([]byte, error) {
	if s.null() {
		return nil, nil
	}
	start := s.pos
	err := s.skip()
	return append([]byte(nil), s.data[start:s.pos]...), err
}

// number consumes a number by the grammar of RFC 8259 §6.
func (s *scanner) number() error {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.at() == '0' {
		s.pos++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.at() == '.' {
		s.pos++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.at(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.at(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return nil
}

func (s *scanner) at() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) digits() error {
	start := s.pos
	for s.at()-'0' <= 9 {
		s.pos++
	}
	if s.pos == start {
		return s.broken("a digit")
	}
	return nil
}

// stringSpan consumes a string and returns what is between its quotes, and
// whether it holds an escape.
func (s *scanner) stringSpan() (inside []byte, escaped bool, err error) {
	if s.peek() != '"' {
		return nil, false, s.broken("a string")
	}
	start := s.pos + 1
	for i := start; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return s.data[start:i], escaped, nil
		case c < ' ':
			s.pos = i
			return nil, false, s.broken("no control character in a string")
		case c == '\\':
			n := escapeLen(s.data[i:])
			if n == 0 {
				s.pos = i
				return nil, false, s.broken("an escape of JSON")
			}
			escaped = true
			i += n - 1
		}
	}
	s.pos = len(s.data)
	return nil, false, s.broken("the end of a string")
}

// escapeLen is the length of the escape that b begins with, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if c-'0' > 9 && (c|0x20)-'a' > 5 {
				return 0
			}
		}
		return 6
	}
	return 0
}

// quoted consumes a string and decodes it.
func (s *scanner) quoted() (string, error) {
	inside, escaped, err := s.stringSpan()
	if err != nil {
		return "", err
	}
	if !escaped && utf8.Valid(inside) {
		return string(inside), nil
	}
	var text string
	if err := json.Unmarshal(s.data[s.pos-len(inside)-2:s.pos], &text); err != nil {
		return "", s.broken("a string")
	}
	return text, nil
}
