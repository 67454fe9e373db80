package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Shape tells the answers of the APIs apart by what they are made of.
type Shape uint8

// The shapes of an answer.
const (
	ShapeNone       Shape = iota // none that is known
	ShapeChoices                 // completions and chat: "choices"
	ShapeResponse                // responses: an event response.…, or object "response"
	ShapeEmbeddings              // "data" of objects with an "embedding"
	ShapeRerank                  // "results" of objects with a "relevance_score"
	ShapeTranscript              // an event transcript.…, or "text"
	ShapeGenerated               // TGI and LMI: "token", "generated_text"
)

var shapeNames = [...]string{"nothing known", "a completion", "a response", "embeddings", "a ranking", "a transcript", "generated text"}

// String says what the shape is, with its article.
func (s Shape) String() string { return shapeNames[s] }

// answers says whether an answer of the shape is one of the API. Both streams
// of chunks and whole answers have choices at transcriptions (vLLM).
func (s Shape) answers(api API) bool {
	switch api {
	case Completions, Chat:
		return s == ShapeChoices
	case Responses:
		return s == ShapeResponse
	case Embeddings:
		return s == ShapeEmbeddings
	case Rerank:
		return s == ShapeRerank
	case Transcriptions:
		return s == ShapeTranscript || s == ShapeChoices
	}
	return s != ShapeNone
}

// otherShape reads what has no choices.
func (c *Piece) otherShape(top object) error {
	kind := Text(top["type"])
	switch {
	case kind == "error":
		if !c.HasError {
			c.Error, c.HasError = errorText(top), true
		}
	case strings.HasPrefix(kind, "response."), strings.HasPrefix(kind, "transcript."):
		c.event(kind, top)
	case Text(top["object"]) == "response":
		c.response(top, true)
	case isObject(top["token"]) || Text(top["generated_text"]) != "" || string(top["generated_text"]) == `""`:
		c.generated(top)
	case !isNull(top["data"]):
		return c.list(top["data"], "data", "embedding", ShapeEmbeddings)
	case !isNull(top["results"]):
		return c.list(top["results"], "results", "relevance_score", ShapeRerank)
	case len(top["text"]) > 0 && top["text"][0] == '"':
		c.Shape, c.Over = ShapeTranscript, true
		c.add(Part{Content: nonEmptyString(top["text"])})
	}
	return nil
}

// add takes a part that says nothing of its tokens.
func (c *Piece) add(p Part) {
	p.Tokens = Unknown
	c.Parts = append(c.Parts, p)
}

// list checks an answer that is a list of results: every element must be an
// object with the field that makes it one. It brings no output.
func (c *Piece) list(raw []byte, name, field string, shape Shape) error {
	var elems []map[string]json.RawMessage
	if json.Unmarshal(raw, &elems) != nil || len(elems) == 0 {
		return fmt.Errorf("parse answer: field %s: found no array of objects", name)
	}
	for i, e := range elems {
		if v := e[field]; isNull(v) || string(v) == `""` || string(v) == "[]" {
			return fmt.Errorf("parse answer: field %s[%d]: found no %s", name, i, field)
		}
	}
	c.Shape, c.Over, c.Results = shape, true, len(elems)
	return nil
}

// generated reads an answer of TGI or LMI: a token's event, the last of which
// has the whole text beside it, or the whole text alone.
func (c *Piece) generated(top object) {
	c.Shape = ShapeGenerated
	whole := top["generated_text"]
	p := Part{Tokens: Unknown}
	if token, ok := asObject(top["token"]); ok {
		p.Content, p.Tokens = nonEmptyString(token["text"]), 1
	} else {
		p.Content = nonEmptyString(whole)
	}
	details, ok := asObject(top["details"])
	if ok {
		p.FinishReason = nonEmptyString(details["finish_reason"])
		c.Usage.Prompt, c.Usage.Completion = firstCount(details, "input_length", "prompt_tokens"), countOf(details["generated_tokens"])
		c.HasUsage = c.Usage != NoUsage()
	}
	c.Over = !isNull(whole) || ok
	c.Parts = append(c.Parts, p)
}

// parseArray reads an answer that is an array of one object, as TGI's.
func (c *Piece) parseArray(data []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil || len(list) != 1 || !isObject(list[0]) {
		return fmt.Errorf("parse chunk: %w", errNotObject)
	}
	err := c.parseSlow(list[0])
	if err == nil && c.Shape != ShapeGenerated && !c.HasError {
		return errors.New("parse answer: found an array, want an object")
	}
	return err
}

// lengthOf is the number of elements of an array, Unknown of anything else.
func lengthOf(raw []byte) int64 {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return Unknown
	}
	return int64(len(list))
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
