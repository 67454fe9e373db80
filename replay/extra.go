package replay

import (
	"errors"
	"fmt"
	"slices"

	"retrace/openai"
)

// parseExtra reads the object of --extra. Values keep their bytes.
func parseExtra(extra []byte) ([]member, error) {
	if len(extra) == 0 {
		return nil, nil
	}
	list, _, err := spans(extra)
	if err != nil {
		return nil, err
	}
	var members []member
	for _, s := range list {
		for _, m := range members {
			if m.key == s.key {
				return nil, fmt.Errorf("field %q: found twice", s.key)
			}
		}
		members = append(members, member{s.key, extra[s.start:s.end]})
	}
	return members, nil
}

// promptMembers are those that hold the prompt of a generated body.
func promptMembers(api openai.API) []string {
	switch api {
	case openai.Chat:
		return []string{"messages"}
	case openai.Responses, openai.Embeddings:
		return []string{"input"}
	case openai.Invocations, openai.InvocationsStream:
		return []string{"inputs"}
	case openai.Rerank:
		return []string{"query", "documents"}
	}
	return []string{"prompt"}
}

// ValidateExtra says what of Extra cannot be: two values for what is to be
// sent once.
func (c *Config) ValidateExtra() error {
	extra, err := parseExtra(c.Extra)
	if err != nil {
		return err
	}
	for _, m := range extra {
		switch {
		case m.key == "model" && (c.Requests.ModelFromTrace || len(c.Requests.LoRA) > 0):
			return errors.New("a model for every body, and models from the trace or LoRA adapters, exclude each other")
		case (c.Prompt == Tokens || c.Prompt == Text) && slices.Contains(promptMembers(c.API), m.key):
			return fmt.Errorf("field %q: it holds the generated prompts", m.key)
		}
	}
	return nil
}
