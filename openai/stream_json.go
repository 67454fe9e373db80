package openai

// space skips white space.
func (s *scan) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// next consumes c, after white space, and says whether it was there.
func (s *scan) next(c byte) bool {
	s.space()
	if s.fail || s.i == len(s.b) || s.b[s.i] != c {
		return false
	}
	s.i++
	return true
}

func (s *scan) must(c byte) {
	if !s.next(c) {
		s.fail = true
	}
}

func (s *scan) null() bool {
	s.space()
	if len(s.b)-s.i >= 4 && string(s.b[s.i:s.i+4]) == "null" {
		s.i += 4
		return true
	}
	return false
}

// object calls each with every key; each must consume the value. A key with
// an escape in it fails: whether it is one that matters, encoding/json knows.
func (s *scan) object(each func(key []byte)) {
	s.must('{')
	if s.next('}') {
		return
	}
	for !s.fail {
		key := s.str()
		s.must(':')
		if s.fail {
			return
		}
		key = key[1 : len(key)-1]
		for _, c := range key {
			if c == '\\' {
				s.fail = true
				return
			}
		}
		each(key)
		if s.next('}') {
			return
		}
		s.must(',')
	}
}

// array calls each at every element; each must consume it.
func (s *scan) array(each func()) {
	s.must('[')
	if s.next(']') {
		return
	}
	for !s.fail {
		each()
		if s.next(']') {
			return
		}
		s.must(',')
	}
}

// str is a string with its quotes.
func (s *scan) str() []byte {
	s.must('"')
	if s.fail {
		return nil
	}
	start := s.i - 1
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start:s.i]
		case c < 0x20:
			s.fail = true
			return nil
		case c == '\\':
			s.escape()
			if s.fail {
				return nil
			}
		default:
			s.i++
		}
	}
	s.fail = true
	return nil
}

func (s *scan) escape() {
	s.i++
	if s.i == len(s.b) {
		s.fail = true
		return
	}
	switch s.b[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i++
	case 'u':
		s.i++
		for range 4 {
			if s.i == len(s.b) || !isHex(s.b[s.i]) {
				s.fail = true
				return
			}
			s.i++
		}
	default:
		s.fail = true
	}
}

func isHex(c byte) bool {
	return c-'0' < 10 || (c|0x20)-'a' < 6
}

// value skips any value and gives its bytes.
func (s *scan) value(depth int) []byte {
	s.space()
	if s.fail || s.i == len(s.b) || depth > scanDepth {
		s.fail = true
		return nil
	}
	start := s.i
	switch c := s.b[s.i]; c {
	case '"':
		s.str()
	case '{':
		s.skipObject(depth)
	case '[':
		s.array(func() { s.value(depth + 1) })
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	default:
		s.number()
	}
	if s.fail {
		return nil
	}
	return s.b[start:s.i]
}

func (s *scan) skipObject(depth int) {
	s.must('{')
	if s.next('}') {
		return
	}
	for !s.fail {
		s.str()
		s.must(':')
		s.value(depth + 1)
		if s.next('}') {
			return
		}
		s.must(',')
	}
}

func (s *scan) word(w string) {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		s.fail = true
		return
	}
	s.i += len(w)
}

// number follows the grammar of RFC 8259, §6.
func (s *scan) number() {
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	start := s.i
	if s.digits() == 0 || (s.b[start] == '0' && s.i-start > 1) {
		s.fail = true
		return
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			s.fail = true
			return
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			s.fail = true
		}
	}
}

func (s *scan) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' < 10 {
		s.i++
	}
	return s.i - start
}
