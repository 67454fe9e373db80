package simserver

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"retrace/openai"
)

// member is a property and its schema.
type member struct {
	name   string
	schema json.RawMessage
}

// members reads an object's members in their order; of one that comes twice
// both count.
func members(raw []byte) []member {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var list []member
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var m member
		if err != nil || !ok || d.Decode(&m.schema) != nil {
			return list
		}
		m.name = name
		list = append(list, m)
	}
	return list
}

// object draws an object: its properties in the order of the schema, then
// required ones that it does not describe.
func (v *values) object(dst []byte, k keywords, depth int) ([]byte, error) {
	var required []string
	_ = json.Unmarshal(k["required"], &required)
	list := members(k["properties"])
	for i := 0; i < len(list); i++ {
		m := list[i]
		if again := slices.IndexFunc(list[:i], func(o member) bool { return o.name == m.name }); again >= 0 {
			both, _ := json.Marshal(map[string][]json.RawMessage{"allOf": {list[again].schema, m.schema}})
			list[again].schema = both
			list = slices.Delete(list, i, i+1)
			i--
		}
	}
	if v.spare || depth >= optionalDepth {
		list = slices.DeleteFunc(list, func(m member) bool { return !slices.Contains(required, m.name) })
	}
	other := k["additionalProperties"]
	add := func(name string) {
		if !slices.ContainsFunc(list, func(m member) bool { return m.name == name }) {
			list = append(list, member{name, other})
		}
	}
	for _, name := range required {
		add(name)
	}
	for i := 0; len(list) < k.count("minProperties", 0) && i <= maxConstrained; i++ {
		add("more" + strconv.Itoa(i))
	}
	dst = append(dst, '{')
	var err error
	for i, m := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(openai.AppendQuoted(dst, m.name), ':')
		if m.schema == nil {
			m.schema = []byte("{}")
		}
		if dst, err = v.append(dst, m.schema, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// array draws an array: as few items as may be, but one where it may.
func (v *values) array(dst []byte, k keywords, depth int) ([]byte, error) {
	var prefix []json.RawMessage
	_ = json.Unmarshal(k["prefixItems"], &prefix)
	items := []byte("{}")
	if raw, ok := k["items"]; ok {
		items = raw
	}
	n := 1
	if v.spare || depth >= optionalDepth {
		n = 0
	}
	n = min(max(n, len(prefix)), k.count("maxItems", maxConstrained))
	n = max(n, k.count("minItems", 0))
	dst = append(dst, '[')
	var err error
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		of := items
		if i < len(prefix) {
			of = prefix[i]
		}
		if dst, err = v.append(dst, of, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// number draws a number within its bounds: one of the first hundred that fit.
func (v *values) number(dst []byte, k keywords, whole bool) ([]byte, error) {
	step, ok := k.number("multipleOf")
	if !ok || step <= 0 {
		step = 1
	}
	lo, hi := math.Inf(-1), math.Inf(1)
	for _, b := range []struct {
		name  string
		past  float64
		lower bool
	}{{"minimum", 0, true}, {"exclusiveMinimum", 1, true}, {"maximum", 0, false}, {"exclusiveMaximum", 1, false}} {
		x, ok := k.number(b.name)
		if !ok {
			continue
		}
		if b.lower {
			n := math.Ceil(x / step)
			if b.past > 0 && n*step <= x {
				n++
			}
			lo = max(lo, n)
		} else {
			n := math.Floor(x / step)
			if b.past > 0 && n*step >= x {
				n--
			}
			hi = min(hi, n)
		}
	}
	switch {
	case math.IsInf(lo, -1) && math.IsInf(hi, 1):
		lo, hi = 0, 99
	case math.IsInf(lo, -1):
		lo = hi - 99
	case math.IsInf(hi, 1):
		hi = lo + 99
	}
	if lo > hi { // no multiple fits: a number between, if any
		a, _ := k.number("minimum")
		b, _ := k.number("maximum")
		a, b = max(a, first(k.number("exclusiveMinimum"))), min(b, first(k.number("exclusiveMaximum")))
		return strconv.AppendFloat(dst, (a+b)/2, 'g', -1, 64), nil
	}
	x := (lo + float64(v.below(int(min(hi-lo, 99))+1))) * step
	if whole || x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.AppendFloat(dst, x, 'f', 0, 64), nil
	}
	return strconv.AppendFloat(dst, x, 'g', -1, 64), nil
}

func first(x float64, _ bool) float64 { return x }

// formats are examples of the formats of strings.
var formats = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "duration": "P1D",
	"email": "someone@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "uri-reference": "/path", "uuid": "123e4567-e89b-42d3-a456-426614174000",
	"json-pointer": "/a", "regex": "a*",
}

// text draws a string: by its pattern or format, else a word of the length
// wanted.
func (v *values) text(dst []byte, k keywords) ([]byte, error) {
	var pattern, format string
	_ = json.Unmarshal(k["pattern"], &pattern)
	_ = json.Unmarshal(k["format"], &format)
	least := k.count("minLength", 0)
	if least > maxConstrained {
		return dst, errTooLong
	}
	most := k.count("maxLength", max(least, 8))
	if pattern != "" {
		re, err := parseRegex(pattern)
		if err != nil {
			return dst, err
		}
		text, err := re.generate(mix(v.seed, v.below(math.MaxInt32)))
		if err != nil {
			return dst, err
		}
		for n := utf8.RuneCountInString(text); n < least; n++ { // a pattern is not anchored
			text += "a"
		}
		return openai.AppendQuoted(dst, text), nil
	}
	if example, ok := formats[format]; ok && least <= len(example) {
		return openai.AppendQuoted(dst, example), nil
	}
	return openai.AppendQuoted(dst, v.word(max(least, min(most, 3+v.below(6))))), nil
}
