package openai

import "strconv"

// EmbeddingRequest is the body of POST /v1/embeddings.
type EmbeddingRequest struct {
	Params
	// Inputs are the texts, or lists of ids, to be embedded.
	Inputs []Prompt
	// Base64 asks for base64 of little-endian 32-bit floats instead of numbers.
	Base64 bool
	// Dimensions is the length wanted of an embedding; Unset without.
	Dimensions int64
}

// ParseEmbedding reads the body of an embeddings request into r, under the
// rules of ParseCompletion.
func ParseEmbedding(body []byte, r *EmbeddingRequest) error {
	inputs := r.Inputs[:0]
	*r = EmbeddingRequest{Params: newParams(), Dimensions: Unset}
	return parseObject(body, func(s *scanner, key string) (err error) {
		switch key {
		case "input":
			r.Inputs, err = parsePrompts(s, key, inputs[:0])
		case "dimensions":
			r.Dimensions, err = s.integer(key)
		case "encoding_format":
			at := s.pos
			format, err := s.text(key)
			if err == nil && format != "" && format != "float" && format != "base64" {
				err = &RequestError{Field: key, Offset: at, Found: clip(format), Expected: "float or base64"}
			}
			r.Base64 = format == "base64"
			return err
		default:
			err = r.field(s, key)
		}
		return err
	})
}

// RerankRequest is the body of POST /v1/rerank.
type RerankRequest struct {
	Params
	// Query is what the documents are ranked by.
	Query string
	// Documents are the texts to be ranked.
	Documents []string
	// TopN is how many results are wanted; 0 is all.
	TopN int64
}

// ParseRerank reads the body of a rerank request into r, under the rules of
// ParseCompletion.
func ParseRerank(body []byte, r *RerankRequest) error {
	documents := r.Documents[:0]
	*r = RerankRequest{Params: newParams()}
	return parseObject(body, func(s *scanner, key string) (err error) {
		switch key {
		case "query":
			r.Query, err = s.text(key)
		case "documents":
			r.Documents, err = parseDocuments(s, documents[:0])
		case "top_n":
			r.TopN, err = s.integerOr(key, 0)
		default:
			err = r.field(s, key)
		}
		return err
	})
}

// parseDocuments reads documents, each a string or an object with a text.
func parseDocuments(s *scanner, dst []string) ([]string, error) {
	if s.null() {
		return dst, nil
	}
	if s.peek() == '"' {
		one, err := s.text("documents")
		return append(dst, one), err
	}
	err := s.array("documents", func() error {
		field := "documents[" + strconv.Itoa(len(dst)) + "]"
		text := ""
		var err error
		switch s.peek() {
		case '"':
			text, err = s.text(field)
		case '{':
			err = s.object(field, func(key string) (err error) {
				if key == "text" {
					text, err = s.text(field + ".text")
					return err
				}
				return s.skip()
			})
		default:
			err = s.mismatch(field, "a string, or an object with a text")
		}
		dst = append(dst, text)
		return err
	})
	return dst, err
}
