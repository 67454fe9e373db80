package simserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"retrace/openai"
)

const (
	// schemaTries bounds how many values are drawn until one is valid.
	schemaTries = 16
	// optionalDepth is how deep properties are given that are not required.
	optionalDepth = 3
	// maxSchemaDepth bounds the nesting of a value.
	maxSchemaDepth = 48
)

// noLoading refuses every schema that is not in the request.
type noLoading struct{}

// Load refuses.
func (noLoading) Load(url string) (any, error) {
	return nil, fmt.Errorf("found a reference to %s, expected references within the schema", url)
}

// fromSchema makes a JSON text that a schema allows: drawn by its keywords, and
// then proved by a validator, until one is valid.
func fromSchema(schema []byte, seed uint64) (string, error) {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return "", fmt.Errorf("read the JSON schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoading{})
	if err := c.AddResource("schema.json", root); err != nil {
		return "", fmt.Errorf("read the JSON schema: %w", err)
	}
	valid, err := c.Compile("schema.json")
	if err != nil {
		return "", fmt.Errorf("read the JSON schema: %w", err)
	}
	var last error
	for try := range schemaTries {
		v := &values{root: schema, draws: draws{seed: mix(seed, try)}, spare: try%2 == 1}
		text, err := v.append(nil, schema, 0)
		if err == nil {
			var drawn any
			if drawn, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err == nil {
				err = valid.Validate(drawn)
			}
		}
		if err == nil {
			return string(text), nil
		}
		if last = err; errors.Is(err, errTooLong) {
			break
		}
	}
	return "", fmt.Errorf("the simulated server found no value for the JSON schema: %w", last)
}

// values draws values by the keywords of a schema.
type values struct {
	draws
	root  []byte
	spare bool // leave out what is not required
}

// keywords are those of one schema.
type keywords map[string]json.RawMessage

func (k keywords) number(name string) (float64, bool) {
	var x float64
	raw, ok := k[name]
	return x, ok && json.Unmarshal(raw, &x) == nil
}

func (k keywords) count(name string, otherwise int) int {
	if x, ok := k.number(name); ok {
		return int(min(max(x, 0), maxConstrained+1))
	}
	return otherwise
}

// append appends a value that the schema's own keywords allow.
func (v *values) append(dst []byte, schema []byte, depth int) ([]byte, error) {
	if depth > maxSchemaDepth {
		return dst, fmt.Errorf("nesting passes %d levels", maxSchemaDepth)
	}
	if len(dst) > maxConstrained {
		return dst, errTooLong
	}
	k, err := v.resolve(schema, 0)
	if err != nil {
		return dst, err
	}
	if raw, ok := k["const"]; ok {
		return appendCompact(dst, raw)
	}
	if raw, ok := k["enum"]; ok {
		var of []json.RawMessage
		if err := json.Unmarshal(raw, &of); err != nil || len(of) == 0 {
			return dst, errors.New("enum has no values")
		}
		return appendCompact(dst, of[v.below(len(of))])
	}
	switch v.typeOf(k) {
	case "object":
		return v.object(dst, k, depth)
	case "array":
		return v.array(dst, k, depth)
	case "integer":
		return v.number(dst, k, true)
	case "number":
		return v.number(dst, k, false)
	case "boolean":
		return strconv.AppendBool(dst, v.below(2) == 1), nil
	case "null":
		return append(dst, "null"...), nil
	}
	return v.text(dst, k)
}

func appendCompact(dst []byte, raw []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return append(dst, b.Bytes()...), err
}

// resolve puts a schema's keywords together with those of its $ref, its allOf
// and one each of its anyOf and oneOf.
func (v *values) resolve(schema []byte, depth int) (keywords, error) {
	if depth > maxSchemaDepth {
		return nil, errors.New("references lead nowhere")
	}
	k := keywords{}
	if text := bytes.TrimSpace(schema); len(text) == 0 || text[0] != '{' { // true, or false
		return k, nil
	}
	if err := json.Unmarshal(schema, &k); err != nil {
		return nil, fmt.Errorf("read the JSON schema: %w", err)
	}
	var parts []json.RawMessage
	if raw, ok := k["$ref"]; ok {
		to, err := v.pointer(raw)
		if err != nil {
			return nil, err
		}
		parts = append(parts, to)
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		var of []json.RawMessage
		if raw, ok := k[name]; !ok || json.Unmarshal(raw, &of) != nil || len(of) == 0 {
			continue
		}
		if name == "allOf" {
			parts = append(parts, of...)
		} else {
			parts = append(parts, of[v.below(len(of))])
		}
	}
	for _, name := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		delete(k, name)
	}
	for _, part := range parts {
		more, err := v.resolve(part, depth+1)
		if err != nil {
			return nil, err
		}
		k.merge(more)
	}
	return k, nil
}

// merge takes keywords over: objects and required names join, of bounds the
// narrower counts, of the rest the first.
func (k keywords) merge(more keywords) {
	for name, raw := range more {
		have, ok := k[name]
		switch {
		case !ok:
			k[name] = raw
		case name == "required":
			k[name] = joined(have, raw)
		case name == "properties":
			k[name] = joined(have, raw)
		case strings.HasPrefix(name, "min") || name == "exclusiveMinimum":
			k[name] = narrower(have, raw, 1)
		case strings.HasPrefix(name, "max") || name == "exclusiveMaximum":
			k[name] = narrower(have, raw, -1)
		}
	}
}

// joined is the text of two arrays or two objects as one.
func joined(a, b json.RawMessage) json.RawMessage {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if len(a) <= 2 || len(b) <= 2 || a[0] != b[0] {
		if len(a) <= 2 {
			return b
		}
		return a
	}
	return slices.Concat(a[:len(a)-1], []byte{','}, b[1:])
}

func narrower(a, b json.RawMessage, sign float64) json.RawMessage {
	var x, y float64
	if json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && (y-x)*sign > 0 {
		return b
	}
	return a
}

// pointer finds what a reference within the schema points to (RFC 6901).
func (v *values) pointer(raw []byte) (json.RawMessage, error) {
	var ref string
	if err := json.Unmarshal(raw, &ref); err != nil {
		return nil, fmt.Errorf("read $ref: %w", err)
	}
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("found $ref %q, expected one within the schema", ref)
	}
	at := json.RawMessage(v.root)
	unescape := strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%20", " ")
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		var object keywords
		var list []json.RawMessage
		if json.Unmarshal(at, &object) == nil && object[unescape.Replace(step)] != nil {
			at = object[unescape.Replace(step)]
		} else if n, err := strconv.Atoi(step); err == nil && json.Unmarshal(at, &list) == nil && n >= 0 && n < len(list) {
			at = list[n]
		} else {
			return nil, fmt.Errorf("found $ref %q, which points to nothing", ref)
		}
	}
	return at, nil
}

// typeOf is the type of the value to be drawn: the schema's, or what its
// keywords hint at.
func (v *values) typeOf(k keywords) string {
	var one string
	var many []string
	if raw, ok := k["type"]; ok {
		if json.Unmarshal(raw, &one) == nil {
			return one
		}
		if json.Unmarshal(raw, &many) == nil && len(many) > 0 {
			return many[v.below(len(many))]
		}
	}
	for _, hint := range []struct{ kind, names string }{
		{"object", "properties required additionalProperties minProperties"}, {"array", "items prefixItems minItems"},
		{"string", "pattern minLength maxLength format"}, {"number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"},
	} {
		for name := range strings.FieldsSeq(hint.names) {
			if _, ok := k[name]; ok {
				return hint.kind
			}
		}
	}
	return "string"
}

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
