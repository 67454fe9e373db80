package formats

import (
	"fmt"
	"unicode/utf8"
)

// maxDepth is how deeply arrays and objects of a row may nest; encoding/json
// has the same limit.
const maxDepth = 10000

// Member is one field of a row: a key of a JSON object and its raw value, or a
// CSV column's name and its cell.
type Member struct {
	Key string
	Raw []byte
}

// ValueError is a fault in a JSON text.
type ValueError struct {
	// Offset is the byte offset within the text.
	Offset int
	// Key is the top-level member it lies in, "" where it is none's.
	Key string
	// Msg says what is wrong, Found and Expected what stands there and what should.
	Msg, Found, Expected string
	// Cut says that the text just ends too early.
	Cut bool
}

// Error gives the message and the offset.
func (e *ValueError) Error() string { return fmt.Sprintf("%s (at byte %d of it)", e.Msg, e.Offset) }

// ParseObject splits one JSON object into its members, whose raw values are
// slices of text, in the text's order. It is strict (RFC 8259, UTF-8), and a
// key that occurs twice, at any depth, is an error: *ValueError. Members before
// the fault are returned with it.
func ParseObject(text []byte) ([]Member, error) {
	if !utf8.Valid(text) {
		at := invalidUTF8(text)
		return nil, &ValueError{Offset: at, Msg: "not valid UTF-8", Found: excerpt(text[at:]), Expected: "UTF-8"}
	}
	p := valueParser{text: text}
	p.space()
	if p.at >= len(text) || text[p.at] != '{' {
		return nil, p.fault("not a JSON object", "a JSON object")
	}
	members := make([]Member, 0, 8)
	err := p.object(0, func(m Member) { members = append(members, m) })
	if err == nil {
		if p.space(); p.at < len(text) {
			err = p.fault("text after the JSON object", "nothing after the JSON object")
		}
	}
	return members, err
}

// ValidValue says whether text is exactly one JSON value, by the rules of ParseObject.
func ValidValue(text []byte) bool {
	p := valueParser{text: text}
	p.space()
	if !utf8.Valid(text) || p.value(0) != nil {
		return false
	}
	p.space()
	return p.at == len(text)
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}

// valueParser walks over JSON text without building anything.
type valueParser struct {
	text []byte
	at   int
	key  string
}

func (p *valueParser) fault(msg, expected string) *ValueError {
	return &ValueError{
		Offset: p.at, Key: p.key, Msg: msg, Cut: p.at >= len(p.text),
		Found: excerpt(p.text[min(p.at, len(p.text)):]), Expected: expected,
	}
}

// excerpt is what errors quote of the text that begins with a fault.
func excerpt(text []byte) string {
	const enough = 24
	switch {
	case len(text) == 0:
		return "the end of the row"
	case len(text) <= enough:
		return string(text)
	}
	return string(text[:enough]) + "…"
}

func (p *valueParser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *valueParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *valueParser) value(depth int) error {
	if depth > maxDepth {
		return p.fault("nested too deeply", "at most 10,000 levels of nesting")
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth, nil)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.str()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.word("true")
	case c == 'f':
		return p.word("false")
	case c == 'n':
		return p.word("null")
	case p.at >= len(p.text):
		return p.fault("JSON ends too early", "a JSON value")
	}
	return p.fault("no JSON value", "a JSON value")
}

func (p *valueParser) word(w string) error {
	for i := range len(w) {
		if p.at+i >= len(p.text) {
			p.at = len(p.text)
			return p.fault("JSON ends too early", "a JSON value")
		}
		if p.text[p.at+i] != w[i] {
			return p.fault("no JSON value", "a JSON value")
		}
	}
	p.at += len(w)
	return nil
}

// object walks over an object; at the top level it hands each member to emit.
func (p *valueParser) object(depth int, emit func(Member)) error {
	var keys keySet
	p.at++
	p.space()
	if p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		p.space()
		if p.peek() != '"' {
			return p.fault("no key of an object", "a key in double quotes")
		}
		key, err := p.objectKey(&keys)
		if err != nil {
			return err
		}
		if emit != nil {
			p.key = key
		}
		start := p.at
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if emit != nil {
			emit(Member{Key: key, Raw: p.text[start:p.at]})
			p.key = ""
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return nil
		default:
			return p.fault("no comma or } after a member", "a comma or }")
		}
	}
}

// objectKey reads a key, the colon and the space around it.
func (p *valueParser) objectKey(keys *keySet) (string, error) {
	start := p.at
	if err := p.str(); err != nil {
		return "", err
	}
	key := decodeKey(p.text[start:p.at])
	if !keys.add(key) {
		p.at = start
		p.key = key
		twice := fmt.Sprintf("key %q", key)
		bad := p.fault(twice+" occurs twice", "each key once")
		bad.Found = twice + " twice"
		return "", bad
	}
	p.space()
	if p.peek() != ':' {
		return "", p.fault("no colon after a key", "a colon after the key")
	}
	p.at++
	p.space()
	return key, nil
}

func (p *valueParser) array(depth int) error {
	p.at++
	p.space()
	if p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return nil
		default:
			return p.fault("no comma or ] after an element", "a comma or ]")
		}
	}
}

func (p *valueParser) str() error {
	p.at++
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return nil
		case c < 0x20:
			return p.fault("control character in a string", "an escape in place of a control character")
		case c == '\\':
			if err := p.escape(); err != nil {
				return err
			}
		default:
			p.at++
		}
	}
	return p.fault("string ends too early", "the end of the string")
}

func (p *valueParser) escape() error {
	p.at++
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at++
		return nil
	case 'u':
		for i := 1; i <= 4; i++ {
			if p.at+i >= len(p.text) {
				p.at = len(p.text)
				return p.fault("string ends too early", "the end of the string")
			}
			if !isHex(p.text[p.at+i]) {
				return p.fault("bad \\u escape in a string", "four hex digits after \\u")
			}
		}
		p.at += 5
		return nil
	}
	return p.fault("bad escape in a string", "an escape that JSON knows")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (p *valueParser) digits() error {
	if c := p.peek(); c < '0' || c > '9' {
		return p.fault("bad number", "a digit")
	}
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return nil
}

func (p *valueParser) number() error {
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
		if c := p.peek(); c >= '0' && c <= '9' {
			return p.fault("number with a leading zero", "a number without a leading zero")
		}
	} else if err := p.digits(); err != nil {
		return err
	}
	if p.peek() == '.' {
		p.at++
		if err := p.digits(); err != nil {
			return err
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		return p.digits()
	}
	return nil
}

// keySet notices a key that occurs twice; small sets cost no allocation.
type keySet struct {
	few  [fewKeys]string
	n    int
	many map[string]struct{}
}

const fewKeys = 16

func (s *keySet) add(key string) bool {
	if s.many != nil {
		_, twice := s.many[key]
		s.many[key] = struct{}{}
		return !twice
	}
	for _, k := range s.few[:s.n] {
		if k == key {
			return false
		}
	}
	if s.n < fewKeys {
		s.few[s.n] = key
		s.n++
		return true
	}
	s.many = make(map[string]struct{}, 2*fewKeys)
	for _, k := range s.few {
		s.many[k] = struct{}{}
	}
	s.many[key] = struct{}{}
	return true
}
