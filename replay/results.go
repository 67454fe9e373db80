package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"retrace/openai"
	"retrace/record"
)

// expected is how many results the answer to j's body is to have: an embedding
// for each input, a score for each document, but no more than top_n. It is 0
// where nothing can be said. A generated body has no list.
func (b *bodies) expected(j *job, body []byte, list []span) int {
	switch j.api {
	case openai.Embeddings:
		input := b.value(body, list, "input")
		if input == nil && body == nil {
			return 1
		}
		return inputs(input)
	case openai.Rerank:
		documents := b.value(body, list, "documents")
		n := inputs(documents)
		if documents == nil && body == nil {
			_, docs := split(j.prompt.Tokens(), b.cfg.Requests.RerankDocuments)
			n = len(docs)
		}
		if top := countIn(b.value(body, list, "top_n")); top != record.Unknown && top < int64(n) {
			n = int(top)
		}
		return n
	}
	return 0
}

// inputs is how many things an input is: a text, or the ids of one, is one; a
// list of either is as many as it has; 0 of all else.
func inputs(raw []byte) int {
	if len(raw) == 0 {
		return 0
	}
	if raw[0] == '"' {
		return 1
	}
	inside := bytes.TrimLeft(raw[1:], " \t\r\n")
	if raw[0] != '[' || len(inside) == 0 {
		return 0
	}
	if inside[0]-'0' < 10 {
		return 1
	}
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return 0
	}
	return len(all)
}

// miscounted is the sentence on an answer with another number of results than
// its request asked for, "" where there is none.
func miscounted(j *job, s *openai.Stream) string {
	if j.results == 0 || j.results == s.Results {
		return ""
	}
	return fmt.Sprintf("the answer has another number of results than was asked for: found %d, want %d", s.Results, j.results)
}
