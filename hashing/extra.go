package hashing

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting bounds how deep tuples of extra keys lie in each other.
const maxNesting = 64

// ParseExtra reads extra keys from JSON, for SetExtraValue: an array is a
// tuple, {"bytes": "hex"} a byte string, null None; numbers without fraction
// and exponent are integers, of at most 64 bits, and others are floats. Each
// text is an object of its own, as those that Python's json module reads are.
func ParseExtra(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("parse extra keys: found bytes that are not UTF-8")
	}
	if i := loneSurrogate(text); i >= 0 {
		return nil, fmt.Errorf("parse extra keys: byte %d: found half of a surrogate pair, expected a character", i)
	}
	p := extraParser{dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	value, err := p.value(0)
	if err == nil {
		if _, end := p.dec.Token(); end != io.EOF {
			err = errors.New("found more behind the value, expected one JSON value")
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("found the end, expected the rest of a JSON value")
	}
	if err != nil {
		return nil, fmt.Errorf("parse extra keys: byte %d: %w", p.dec.InputOffset(), err)
	}
	return value, nil
}

type extraParser struct{ dec *json.Decoder }

// value reads the next value.
func (p *extraParser) value(depth int) (any, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Number:
		return number(string(t))
	case json.Delim:
		switch {
		case depth >= maxNesting:
			return nil, fmt.Errorf("found arrays in arrays, more than %d deep", maxNesting)
		case t == '[':
			return p.tuple(depth + 1)
		}
		return p.bytes()
	}
	return token, nil // nil, bool or string
}

// tuple reads an array behind its bracket.
func (p *extraParser) tuple(depth int) (any, error) {
	list := []any{}
	for p.dec.More() {
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := p.dec.Token()
	return list, err
}

// bytes reads {"bytes": "hex"} behind its brace.
func (p *extraParser) bytes() (any, error) {
	wrong := errors.New(`found another object, expected {"bytes": "hex"}`)
	if key, err := p.dec.Token(); err != nil || key != "bytes" {
		return nil, errors.Join(err, wrong)
	}
	value, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	text, ok := value.(string)
	if end, err := p.dec.Token(); err != nil || !ok || end != json.Delim('}') {
		return nil, errors.Join(err, wrong)
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("read hex %q: %w", text, err)
	}
	return b, nil
}

// number reads a number as Python's json module does.
func number(text string) (any, error) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("found %s, expected a number that fits 64 bits", text)
		}
		return f, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("found %s, expected an integer of at most 64 bits", text)
	}
	return n, nil
}

// loneSurrogate is where in JSON half of a surrogate pair is written as an
// escape, which Python can pickle and encoding/json replaces; -1 without one.
func loneSurrogate(text []byte) int {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch c := escape(text[i:]); {
		case c >= 0xdc00 && c < 0xe000:
			return i
		case c >= 0xd800 && c < 0xdc00:
			if low := escape(text[i+6:]); low < 0xdc00 || low >= 0xe000 {
				return i
			}
			i += 6 + 5
		default:
			i++ // the escaped character is no backslash of its own
		}
	}
	return -1
}

// escape is the code unit of \uXXXX at the beginning of a text, or -1.
func escape(text []byte) int {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(n)
}
