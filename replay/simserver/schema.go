package simserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
