package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Piece is one JSON object of an answer: an event of a stream, or a whole
// answer that came unstreamed.
type Piece struct {
	// Shape is the API's whose answer it is made like.
	Shape Shape
	// Over says that the answer ends with it: a terminal event, or a whole answer.
	Over bool
	// Parts are the choices, in the chunk's order.
	Parts []Part
	// HasChoices tells "choices": [] from none.
	HasChoices bool
	// Usage is what the chunk's usage tells; HasUsage is false where it has
	// none ("usage": null is none).
	Usage    Usage
	HasUsage bool
	// Times are what the server tells of its own times.
	Times ServerTimes
	// Results is how many embeddings or ranked documents it holds.
	Results int
	// Error is the message of an error object, HasError whether there is one
	// ("error": null is none).
	Error    string
	HasError bool
}

// Part is what a chunk brought to one choice. Content, Reasoning and Refusal
// are raw JSON values, nil where they are absent, null or empty.
type Part struct {
	Index        int
	Content      []byte
	Reasoning    []byte
	Refusal      []byte
	Tools        []ToolDelta
	FinishReason []byte // raw JSON string, nil where there is none
	// Tokens is how many tokens the chunk says it brought (token_ids, or TGI's
	// token), Unknown where it does not.
	Tokens int64
}

// ToolDelta is a fragment of a tool call: fragments of one Index belong together.
type ToolDelta struct {
	Index     int
	Name      string
	Arguments string
}

// reset empties the chunk and keeps its memory.
func (c *Piece) reset() {
	*c = Piece{Parts: c.Parts[:0], Usage: NoUsage(), Times: NoTimes()}
}

// Parse reads data into c, which is overwritten. What it keeps of data is not
// copied. A fast scan does the usual shapes; everything else, and every
// mistake, goes through encoding/json, with the same result.
func (c *Piece) Parse(data []byte) error {
	if c.parseFast(data) {
		return nil
	}
	return c.parseSlow(data)
}

type object = map[string]json.RawMessage

// errNotObject says that a chunk is JSON, but no object.
var errNotObject = errors.New("not a JSON object")

func (c *Piece) parseSlow(data []byte) error {
	c.reset()
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' {
		return c.parseArray(data)
	}
	var top object
	if err := json.Unmarshal(data, &top); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return fmt.Errorf("parse chunk: %w", errNotObject)
		}
		return fmt.Errorf("parse chunk: %w", err)
	}
	if top == nil {
		return fmt.Errorf("parse chunk: %w", errNotObject)
	}
	c.Error, c.HasError = errorOf(top)
	if u, ok := asObject(top["usage"]); ok {
		c.Usage, c.HasUsage = usageOf(u), true
	}
	c.Times = timesOf(top)
	raw := top["choices"]
	if isNull(raw) {
		return c.otherShape(top)
	}
	c.Shape = ShapeChoices
	var choices []json.RawMessage
	if err := json.Unmarshal(raw, &choices); err != nil {
		return errors.New("parse chunk: field choices: found no array")
	}
	c.HasChoices = true
	for i, raw := range choices {
		choice, ok := asObject(raw)
		if !ok {
			return fmt.Errorf("parse chunk: field choices[%d]: found no object", i)
		}
		c.Parts = append(c.Parts, partOf(choice))
	}
	return nil
}

func partOf(choice object) Part {
	p := Part{Index: indexOf(choice["index"]), FinishReason: nonEmptyString(choice["finish_reason"]), Tokens: lengthOf(choice["token_ids"])}
	delta, ok := asObject(choice["delta"])
	if !ok {
		delta, ok = asObject(choice["message"])
	}
	if ok {
		p.Content = nonEmpty(delta["content"])
		p.Refusal = nonEmpty(delta["refusal"])
		if p.Reasoning = nonEmpty(delta["reasoning_content"]); p.Reasoning == nil {
			p.Reasoning = nonEmpty(delta["reasoning"])
		}
		p.Tools = toolsOf(delta)
	}
	if text := nonEmpty(choice["text"]); text != nil {
		p.Content = text
	}
	return p
}

// toolsOf gives the fragments that bring a name or arguments; the others (an
// id alone, empty arguments) are no output.
func toolsOf(delta object) []ToolDelta {
	var calls []json.RawMessage
	_ = json.Unmarshal(delta["tool_calls"], &calls) // another type holds no call
	var tools []ToolDelta
	for _, raw := range calls {
		call, _ := asObject(raw)
		fn, ok := asObject(call["function"])
		if !ok {
			fn, _ = asObject(call["custom"])
		}
		tools = appendTool(tools, indexOf(call["index"]), fn)
	}
	fn, _ := asObject(delta["function_call"])
	return appendTool(tools, 0, fn)
}

func appendTool(tools []ToolDelta, index int, fn object) []ToolDelta {
	t := ToolDelta{Index: index, Name: Text(fn["name"]), Arguments: Text(fn["arguments"])}
	if t.Arguments == "" {
		t.Arguments = Text(fn["input"])
	}
	if t.Name == "" && t.Arguments == "" {
		return tools
	}
	return append(tools, t)
}

// errorOf finds an error object: under "error", or the object itself where its
// "object" is "error" (older vLLM).
func errorOf(top object) (string, bool) {
	if Text(top["object"]) == "error" {
		return errorText(top), true
	}
	raw := bytes.TrimSpace(top["error"])
	switch string(raw) {
	case "", "null", "false", `""`:
		return "", false
	}
	if raw[0] == '"' {
		return Text(raw), true
	}
	if obj, ok := asObject(raw); ok {
		return errorText(obj), true
	}
	return string(raw), true
}

// errorText is an error object's message with its type and code, or all of it
// where it has none.
func errorText(obj object) string {
	text := Text(obj["message"])
	if text == "" {
		all, _ := json.Marshal(obj)
		return string(all)
	}
	for _, key := range []string{"type", "code"} {
		if raw := obj[key]; !isNull(raw) {
			text += " (" + key + " " + string(bytes.Trim(raw, `"`)) + ")"
		}
	}
	return text
}

// Text decodes a raw JSON string; any other value is "".
func Text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if plain := raw[1 : len(raw)-1]; raw[len(raw)-1] == '"' && isPlain(plain) {
		return string(plain)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// isPlain says whether the inside of a JSON string stands for itself.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func asObject(raw []byte) (object, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	var obj object
	err := json.Unmarshal(raw, &obj)
	return obj, err == nil
}

func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

func nonEmptyString(raw []byte) []byte {
	if len(raw) > 2 && raw[0] == '"' {
		return raw
	}
	return nil
}

// nonEmpty is raw where it is a string, array or object with something in it.
func nonEmpty(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	switch raw[0] {
	case '"':
		return nonEmptyString(raw)
	case '[', '{':
		if len(bytes.TrimSpace(raw[1:len(raw)-1])) > 0 {
			return raw
		}
	}
	return nil
}

// maxCount is more tokens than any request has: what passes it is no count,
// and would bring the sums over many requests to overflow.
const maxCount = 1e12

// countOf is a count up to maxCount as an integer or a whole float; all else
// is Unknown.
func countOf(raw []byte) int64 {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 && n <= maxCount {
		return n
	}
	var f float64
	if len(raw) == 0 || (raw[0] < '0' || raw[0] > '9') || json.Unmarshal(raw, &f) != nil {
		return Unknown
	}
	if f != math.Trunc(f) || f > maxCount {
		return Unknown
	}
	return int64(f)
}

func indexOf(raw []byte) int {
	n := countOf(raw)
	if n == Unknown || n > 1<<20 {
		return 0
	}
	return int(n)
}
