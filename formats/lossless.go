package formats

import (
	"bytes"
	"strings"

	"retrace/record"
)

// Reconcile compares a source row with the row that the exporter would make of
// the request, and gives what has to be kept beside it: the raw literal of each
// field that comes out different, and a nil Raw for each that the source lacks.
// equal compares two raw values: EqualValue for JSON, bytes.Equal for CSV cells.
func Reconcile(source, rendered []Member, equal func(a, b []byte) bool) []record.Exception {
	var kept []record.Exception
	for _, m := range source {
		if r, ok := Find(rendered, m.Key); !ok || !equal(m.Raw, r) {
			kept = append(kept, record.Exception{Field: m.Key, Raw: bytes.Clone(m.Raw)})
		}
	}
	for _, r := range rendered {
		if _, ok := Find(source, r.Key); !ok {
			kept = append(kept, record.Exception{Field: r.Key})
		}
	}
	return kept
}

// markPrefix starts the names of exceptions that are a format's own marks on a
// row as a whole, not a field's literal.
const markPrefix = "#"

// Restore applies what Reconcile kept to a rendered row; marks ("#…") are the
// format's own business.
func Restore(rendered []Member, kept []record.Exception) []Member {
	for _, e := range kept {
		if strings.HasPrefix(e.Field, markPrefix) {
			continue
		}
		i := indexOf(rendered, e.Field)
		switch {
		case i >= 0 && e.Raw == nil:
			rendered = append(rendered[:i], rendered[i+1:]...)
		case i >= 0:
			rendered[i].Raw = e.Raw
		case e.Raw != nil:
			rendered = append(rendered, Member{Key: e.Field, Raw: e.Raw})
		}
	}
	return rendered
}

// Find gives the raw value of a key.
func Find(members []Member, key string) ([]byte, bool) {
	if i := indexOf(members, key); i >= 0 {
		return members[i].Raw, true
	}
	return nil, false
}

func indexOf(members []Member, key string) int {
	for i := range members {
		if members[i].Key == key {
			return i
		}
	}
	return -1
}

// AppendObject writes members as one compact JSON object; the raw values stay
// as they are.
func AppendObject(dst []byte, members []Member) []byte {
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, m.Key)
		dst = append(dst, ':')
		dst = append(dst, m.Raw...)
	}
	return append(dst, '}')
}

// EqualValue says whether two valid JSON texts have the same value: numbers by
// their literal (5.0 is not 5), strings as decoded, objects whatever the order
// of their keys.
func EqualValue(a, b []byte) bool {
	if equalButBlanks(a, b) {
		return true
	}
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if len(a) == 0 || len(b) == 0 || a[0] != b[0] {
		return false
	}
	switch a[0] {
	case '"':
		x, okx := DecodeString(a)
		y, oky := DecodeString(b)
		return okx && oky && x == y
	case '{':
		return equalObjects(a, b)
	case '[':
		return equalArrays(a, b)
	}
	return false
}

// equalButBlanks says whether two valid JSON texts are the same bytes but for
// the white space between tokens: the usual case, told at once.
func equalButBlanks(a, b []byte) bool {
	i, j, quoted := 0, 0, false
	for {
		for !quoted && i < len(a) && isBlank(a[i]) {
			i++
		}
		for !quoted && j < len(b) && isBlank(b[j]) {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i] != b[j] {
			return false
		}
		switch {
		case a[i] == '"':
			quoted = !quoted
		case a[i] == '\\' && i+1 < len(a) && j+1 < len(b): // only in strings
			if i, j = i+1, j+1; a[i] != b[j] {
				return false
			}
		}
		i, j = i+1, j+1
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func equalObjects(a, b []byte) bool {
	x, errX := ParseObject(a)
	y, errY := ParseObject(b)
	if errX != nil || errY != nil || len(x) != len(y) {
		return false
	}
	other := make(map[string][]byte, len(y))
	for _, m := range y {
		other[m.Key] = m.Raw
	}
	for _, m := range x {
		if raw, ok := other[m.Key]; !ok || !EqualValue(m.Raw, raw) {
			return false
		}
	}
	return true
}

func equalArrays(a, b []byte) bool {
	x, errX := ParseArray(a)
	y, errY := ParseArray(b)
	if errX != nil || errY != nil || len(x) != len(y) {
		return false
	}
	for i := range x {
		if !EqualValue(x[i], y[i]) {
			return false
		}
	}
	return true
}

// ParseArray splits a JSON array into its raw elements.
func ParseArray(text []byte) ([][]byte, error) {
	var elems [][]byte
	err := eachElement(text, func(raw []byte) error {
		elems = append(elems, raw)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return elems, nil
}

// eachElement hands out the raw elements of a JSON array.
func eachElement(text []byte, take func(raw []byte) error) error {
	p := valueParser{text: text}
	if p.space(); p.peek() != '[' {
		return p.fault("not a JSON array", "an array")
	}
	p.at++
	if p.space(); p.peek() == ']' {
		return nil
	}
	for {
		p.space()
		start := p.at
		if err := p.value(1); err != nil {
			return err
		}
		if err := take(text[start:p.at]); err != nil {
			return err
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			return nil
		default:
			return p.fault("no comma or ] after an element", "a comma or ]")
		}
	}
}
