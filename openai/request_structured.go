package openai

import "encoding/json"

// StructuredKind says in which language a constraint of the output is written.
type StructuredKind uint8

// The kinds of constraints.
const (
	// FreeText is no constraint.
	FreeText StructuredKind = iota
	// JSONObject asks for any JSON object.
	JSONObject
	// JSONSchema asks for JSON that a schema describes.
	JSONSchema
	// Regex asks for text that a regular expression matches as a whole.
	Regex
	// Choice asks for one of several texts.
	Choice
	// Grammar asks for a sentence of a grammar (GBNF or Lark).
	Grammar
)

// Structured is what the output of a request must conform to: by OpenAI's
// response_format, vLLM's structured_outputs or its older guided_ fields. A
// request may have one constraint only.
type Structured struct {
	// Kind is the kind of the constraint.
	Kind StructuredKind
	// Schema is the raw JSON of a JSONSchema.
	Schema []byte
	// Text is the expression of a Regex or the text of a Grammar.
	Text string
	// Choices are those of a Choice.
	Choices []string
}

// field reads one of the fields that hold a constraint.
func (c *Structured) field(s *scanner, key string) error {
	switch key {
	case "response_format":
		return c.responseFormat(s)
	case "structured_outputs":
		if s.peek() == 'n' {
			return s.skip()
		}
		return s.object(key, func(inner string) error { return c.constraint(s, key+"."+inner, inner) })
	}
	return c.constraint(s, key, key[len("guided_"):])
}

// set takes a constraint over, unless there is one already.
func (c *Structured) set(s *scanner, field string, found Structured) error {
	if c.Kind != FreeText {
		return &RequestError{Field: field, Offset: s.pos, Found: "a further constraint",
			Expected: "only one kind of structured outputs constraint"}
	}
	*c = found
	return nil
}

// constraint reads one constraint by its kind's name.
func (c *Structured) constraint(s *scanner, field, kind string) error {
	if s.peek() == 'n' {
		return s.skip()
	}
	switch kind {
	case "json":
		return c.schema(s, field)
	case "json_object":
		on, err := s.boolean(field)
		if err != nil || !on {
			return err
		}
		return c.set(s, field, Structured{Kind: JSONObject})
	case "regex", "grammar":
		text, err := s.text(field)
		if err != nil {
			return err
		}
		if kind == "regex" {
			return c.set(s, field, Structured{Kind: Regex, Text: text})
		}
		return c.set(s, field, Structured{Kind: Grammar, Text: text})
	case "choice":
		choices, err := s.texts(field)
		if err != nil {
			return err
		}
		return c.set(s, field, Structured{Kind: Choice, Choices: choices})
	case "structural_tag":
		return s.mismatch(field, "one of json, json_object, regex, choice, grammar")
	}
	return s.skip()
}

// schema reads a schema, as JSON or as a string that holds JSON.
func (c *Structured) schema(s *scanner, field string) error {
	start := s.pos
	raw, err := s.raw(field)
	if err != nil || raw == nil {
		return err
	}
	if raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) != nil || !json.Valid([]byte(text)) {
			return &RequestError{Field: field, Offset: start, Found: clip(string(raw)), Expected: "a JSON schema"}
		}
		raw = []byte(text)
	}
	return c.set(s, field, Structured{Kind: JSONSchema, Schema: raw})
}

// responseFormat reads OpenAI's response_format: {"type": …, "json_schema":
// {"schema": …}}, or text.format of a responses request, which has the schema
// beside the type.
func (c *Structured) responseFormat(s *scanner) error {
	if s.peek() == 'n' {
		return s.skip()
	}
	kind, at := "", s.pos
	var inner Structured
	err := s.object("response_format", func(key string) (err error) {
		switch key {
		case "type":
			kind, err = s.text("response_format.type")
		case "schema":
			err = inner.schema(s, "response_format.schema")
		case "json_schema":
			if s.peek() == 'n' {
				return s.skip()
			}
			err = s.object("response_format.json_schema", func(key string) error {
				if key != "schema" {
					return s.skip()
				}
				return inner.schema(s, "response_format.json_schema.schema")
			})
		default:
			err = s.skip()
		}
		return err
	})
	switch {
	case err != nil, kind == "text":
		return err
	case kind == "json_object":
		return c.set(s, "response_format", Structured{Kind: JSONObject})
	case kind == "json_schema" && inner.Kind == JSONSchema:
		return c.set(s, "response_format", inner)
	case kind == "json_schema":
		return &RequestError{Field: "response_format.json_schema", Offset: at, Found: "no schema", Expected: "a JSON schema"}
	}
	return &RequestError{Field: "response_format.type", Offset: at, Found: clip(kind), Expected: "text, json_object or json_schema"}
}
