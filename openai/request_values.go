package openai

import (
	"math"
	"strconv"
)

// text reads a string; null is "".
func (s *scanner) text(field string) (string, error) {
	if s.null() {
		return "", nil
	}
	if s.peek() != '"' {
		return "", s.mismatch(field, "a string")
	}
	return s.quoted()
}

// boolean reads true or false; null is false.
func (s *scanner) boolean(field string) (bool, error) {
	switch s.peek() {
	case 't':
		return true, s.literal("true")
	case 'f', 'n':
		if s.null() {
			return false, nil
		}
		return false, s.literal("false")
	}
	return false, s.mismatch(field, "true or false")
}

// integer reads an integer ≥ 0 that fits 63 bits; null is Unset.
func (s *scanner) integer(field string) (int64, error) { return s.integerOr(field, Unset) }

// integerOr is integer with another value for null.
func (s *scanner) integerOr(field string, absent int64) (int64, error) {
	if s.null() {
		return absent, nil
	}
	start := s.pos
	if c := s.peek(); c != '-' && c-'0' > 9 {
		return absent, s.mismatch(field, "an integer")
	}
	if err := s.number(); err != nil {
		return absent, err
	}
	n, err := strconv.ParseInt(string(s.data[start:s.pos]), 10, 64)
	if err != nil || n < 0 {
		return absent, &RequestError{Field: field, Offset: start, Found: clip(string(s.data[start:s.pos])), Expected: "an integer of at least 0"}
	}
	return n, nil
}

// signedOr is integerOr for integers of either sign.
func (s *scanner) signedOr(field string, absent int64) (int64, error) {
	x, err := s.floatOr(field, float64(absent))
	if err == nil && (x != math.Trunc(x) || math.Abs(x) > 1<<53) {
		return absent, &RequestError{Field: field, Offset: s.pos, Found: strconv.FormatFloat(x, 'g', -1, 64), Expected: "an integer"}
	}
	return int64(x), err
}

// floatOr reads a number; null is another value.
func (s *scanner) floatOr(field string, absent float64) (float64, error) {
	if s.null() {
		return absent, nil
	}
	start := s.pos
	if c := s.peek(); c != '-' && c-'0' > 9 {
		return absent, s.mismatch(field, "a number")
	}
	if err := s.number(); err != nil {
		return absent, err
	}
	x, err := strconv.ParseFloat(string(s.data[start:s.pos]), 64)
	if err != nil {
		return absent, &RequestError{Field: field, Offset: start, Found: clip(string(s.data[start:s.pos])), Expected: "a number of 64 bits"}
	}
	return x, nil
}
