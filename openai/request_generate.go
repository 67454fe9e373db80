package openai

// GenerateRequest is the body that TGI and LMI containers take:
// {"inputs": …, "parameters": {…}, "stream": …}.
type GenerateRequest struct {
	Params
	// Inputs is the prompt.
	Inputs string
	// Details asks for the counts of tokens beside the text.
	Details bool
}

// ParseGenerate reads such a body into r, under the rules of ParseCompletion.
func ParseGenerate(body []byte, r *GenerateRequest) error {
	*r = GenerateRequest{Params: newParams()}
	return parseObject(body, func(s *scanner, key string) (err error) {
		switch key {
		case "inputs":
			r.Inputs, err = s.text(key)
		case "parameters":
			if s.peek() == 'n' {
				return s.skip()
			}
			err = s.object(key, func(key string) error { return r.parameter(s, key) })
		default:
			err = r.field(s, key)
		}
		return err
	})
}

// parameter reads one of the parameters, whose names are TGI's where they
// differ from vLLM's.
func (r *GenerateRequest) parameter(s *scanner, key string) (err error) {
	switch key {
	case "max_new_tokens":
		r.MaxTokens, err = s.integer("parameters.max_new_tokens")
	case "details":
		r.Details, err = s.boolean("parameters.details")
	case "stop", "stop_sequences":
		if s.peek() == 'n' {
			return s.skip()
		}
		r.Stop, err = parseStop(s)
	default:
		err = r.field(s, key)
	}
	return err
}

// InvocationShape says which API's body stands in the body of an invocation:
// by its fields, Completions where "prompt" is there, Chat for "messages",
// Rerank for "query" and "documents", Responses for "input" beside a field that
// only generation has (or of items with a role), else Embeddings; Invocations
// itself for TGI's "inputs"; "" where none of these is there.
func InvocationShape(body []byte) (API, error) {
	has := map[string]bool{}
	err := parseObject(body, func(s *scanner, key string) error {
		if key == "input" && s.peek() == '[' && s.peekInside() == '{' {
			has["items"] = true
		}
		has[key] = s.peek() != 'n'
		return s.skip()
	})
	if err != nil {
		return "", err
	}
	switch {
	case has["messages"]:
		return Chat, nil
	case has["prompt"]:
		return Completions, nil
	case has["inputs"]:
		return Invocations, nil
	case has["query"] && has["documents"]:
		return Rerank, nil
	case !has["input"]:
		return "", nil
	}
	for _, key := range []string{"items", "max_output_tokens", "instructions", "previous_response_id", "stream", "text", "reasoning", "tools", "store"} {
		if has[key] {
			return Responses, nil
		}
	}
	return Embeddings, nil
}
