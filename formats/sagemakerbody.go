package formats

import (
	"bytes"
	"encoding/json"

	"retrace/openai"
	"retrace/record"
)

// inputFacts is what a request body tells.
type inputFacts struct {
	api   string // "" where the shape is unknown: then the body is no request to replay
	model string
	// input is the prompt's length in tokens, known only of a prompt of token
	// ids; wanted is the limit that the caller set.
	input, wanted int64
}

// readInputBody tells the API and the lengths of a request body. A body of
// unknown shape (CSV, several JSON lines, any other JSON) gives no API; its
// lengths are unknown but for a limit that it sets.
func readInputBody(data []byte) inputFacts {
	facts := inputFacts{input: record.Unknown, wanted: record.Unknown}
	obj := jsonObject(data)
	if obj == nil {
		return facts
	}
	facts.api = bodyShape(data, obj)
	switch openai.API(facts.api) {
	case openai.Chat:
		facts.wanted = firstCount(obj, "max_completion_tokens", "max_tokens")
	case openai.Invocations:
		facts.wanted = firstCount(jsonObject(obj["parameters"]), "max_new_tokens")
	case openai.Responses:
		facts.wanted = firstCount(obj, "max_output_tokens")
	case openai.Embeddings:
		facts.input = countTokenIDs(obj["input"])
	case openai.Rerank, openai.Transcriptions:
	default:
		facts.wanted = firstCount(obj, "max_tokens", "max_completion_tokens")
		facts.input = countTokenIDs(obj["prompt"])
	}
	facts.model = jsonText(obj["model"])
	return facts
}

// bodyShape is the API that a body is of by its members, "" where they tell
// none: TGI's and LMI's {"inputs": …} is SageMaker's own (invocations).
func bodyShape(data []byte, obj map[string]json.RawMessage) string {
	if m := obj["messages"]; present(m) && !isArray(m) {
		return ""
	}
	shape, err := openai.InvocationShape(data)
	switch {
	case err != nil:
		return ""
	case shape == "" && jsonText(obj["file"]) != "":
		return string(openai.Transcriptions)
	}
	return string(shape)
}

// outputFacts is what a captured answer tells.
type outputFacts struct {
	// input and output are the server's own token counts, or Unknown.
	input, output int64
	// failed says that the answer is an error object.
	failed bool
	// id is the answer's own, "" where it tells none.
	id string
}

// readOutputBody tells the token counts of an answer: one JSON object or
// array, JSON lines, or the events of a stream.
func readOutputBody(data []byte) outputFacts {
	facts := outputFacts{input: record.Unknown, output: record.Unknown}
	data = bytes.TrimSpace(data)
	if json.Valid(data) {
		facts.addJSON(data)
		return facts
	}
	tokens := int64(0)
	for line := range bytes.Lines(data) {
		event := eventData(line)
		obj := jsonObject(event)
		if obj == nil {
			continue
		}
		facts.addObject(obj)
		if jsonObject(obj["token"]) != nil {
			tokens++
		}
	}
	// A stream of token events carries one token an event.
	if facts.output == record.Unknown && tokens > 0 {
		facts.output = tokens
	}
	return facts
}

// addJSON takes what a whole JSON value tells; TGI wraps its answer in an array.
func (f *outputFacts) addJSON(data []byte) {
	if obj := jsonObject(data); obj != nil {
		f.addObject(obj)
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) == 1 {
		f.addObject(jsonObject(list[0]))
	}
}

// addObject takes what one object of an answer tells. Later objects of a
// stream override earlier ones: usage counts are running totals.
func (f *outputFacts) addObject(obj map[string]json.RawMessage) {
	if inner := jsonObject(obj["response"]); inner != nil { // of an event of the responses API
		f.addObject(inner)
	}
	if id := jsonText(obj["id"]); id != "" {
		f.id = id
	}
	if usage := jsonObject(obj["usage"]); usage != nil {
		f.input = orCount(usage["prompt_tokens"], orCount(usage["input_tokens"], f.input))
		f.output = orCount(usage["completion_tokens"], orCount(usage["output_tokens"], f.output))
	}
	if details := jsonObject(obj["details"]); details != nil {
		f.output = orCount(details["generated_tokens"], f.output)
	}
	if present(obj["error"]) || jsonText(obj["object"]) == "error" {
		f.failed = true
	}
}

// eventData is the payload of a line of a stream: what follows "data:" in
// server-sent events, else the line itself.
func eventData(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		return bytes.TrimSpace(rest)
	}
	return line
}

// jsonObject is the fields of a JSON object, nil where data is none. Keys are
// taken as they stand, upper and lower case apart.
func jsonObject(data []byte) map[string]json.RawMessage {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	var obj map[string]json.RawMessage
	if json.Unmarshal(data, &obj) != nil {
		return nil
	}
	return obj
}

// jsonText is the content of a JSON string, "" where raw is none.
func jsonText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// present says that a field is there and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func isArray(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '[' }

// firstCount is the first of the named fields that holds a token count.
func firstCount(obj map[string]json.RawMessage, names ...string) int64 {
	for _, name := range names {
		if n := orCount(obj[name], record.Unknown); n != record.Unknown {
			return n
		}
	}
	return record.Unknown
}

// orCount is the token count in raw, or otherwise where raw is no
// non-negative integer.
func orCount(raw json.RawMessage, otherwise int64) int64 {
	n, err := ParseCount(raw)
	if err != nil || !isNumber(raw) {
		return otherwise
	}
	return n
}

// countTokenIDs is the number of ids in a prompt of token ids, one prompt or
// several; Unknown where the prompt is text.
func countTokenIDs(raw json.RawMessage) int64 {
	var ids []int64
	if !isArray(raw) {
		return record.Unknown
	}
	if json.Unmarshal(raw, &ids) == nil {
		return int64(len(ids))
	}
	var lists [][]int64
	if json.Unmarshal(raw, &lists) != nil {
		return record.Unknown
	}
	n := int64(0)
	for _, ids := range lists {
		n += int64(len(ids))
	}
	return n
}
