package simserver

import (
	"encoding/json"
	"strings"

	"retrace/openai"
)

// tool is a function that a model may call.
type tool struct {
	name   string
	schema []byte // of its parameters
}

// arguments makes the call's arguments from a seed.
func (t *tool) arguments(seed uint64) (string, error) {
	if t.schema == nil {
		return "{}", nil
	}
	return fromSchema(t.schema, seed)
}

// wireTool is a tool as chat has it, or flat as responses has it.
type wireTool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Function   *struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// calledTool finds which tool the answer calls: the named one, the first where
// one is required, and under "auto" the one that the last message, of a user,
// asks for by the words "call NAME". nil is none.
func calledTool(chat *openai.ChatRequest) (*tool, *apiError) {
	var tools []tool
	if chat.Tools != nil {
		var wire []wireTool
		if err := json.Unmarshal(chat.Tools, &wire); err != nil {
			return nil, badRequest("tools: %v", err)
		}
		for _, w := range wire {
			if w.Function != nil {
				w.Name, w.Parameters = w.Function.Name, w.Function.Parameters
			}
			if w.Name == "" && (w.Type == "function" || w.Type == "") {
				return nil, badRequest("tools: a function has no name")
			}
			t := tool{name: w.Name}
			if len(w.Parameters) > 0 && string(w.Parameters) != "null" {
				t.schema = w.Parameters
			}
			tools = append(tools, t)
		}
	}
	return chooseTool(tools, chat)
}

func chooseTool(tools []tool, chat *openai.ChatRequest) (*tool, *apiError) {
	choice, named, fail := toolChoice(chat.ToolChoice)
	switch {
	case fail != nil:
		return nil, fail
	case len(tools) == 0 && (choice == "required" || named != ""):
		return nil, badRequest("When using `tool_choice`, `tools` must be set.")
	case len(tools) == 0 || choice == "none":
		return nil, nil
	case choice == "required":
		return &tools[0], nil
	}
	for i := range tools {
		if t := &tools[i]; t.name == named && named != "" || named == "" && asksFor(chat.Messages, t.name) {
			return t, nil
		}
	}
	if named != "" {
		return nil, badRequest("The tool `%s` of tool_choice is not among the tools", named)
	}
	return nil, nil
}

// toolChoice reads tool_choice: none, auto or required, or a function's name.
func toolChoice(raw []byte) (choice, named string, fail *apiError) {
	if raw == nil {
		return "auto", "", nil
	}
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &choice); err != nil || choice != "none" && choice != "auto" && choice != "required" {
			return "", "", badRequest("Invalid value for `tool_choice`: %s. Only named tools, \"none\", \"auto\" or \"required\" are supported.", raw)
		}
		return choice, "", nil
	}
	var w wireTool
	if err := json.Unmarshal(raw, &w); err != nil {
		return "", "", badRequest("tool_choice: %v", err)
	}
	if w.Function != nil {
		w.Name = w.Function.Name
	}
	if w.Name == "" {
		return "", "", badRequest("tool_choice: a function has no name")
	}
	return "", w.Name, nil
}

// asksFor says whether the last message is a user's and has the words
// "call NAME".
func asksFor(messages []openai.Message, name string) bool {
	if len(messages) == 0 {
		return false
	}
	m := &messages[len(messages)-1]
	words := strings.Fields(m.Content)
	for i := 1; i < len(words) && m.Role == "user"; i++ {
		if words[i-1] == "call" && words[i] == name {
			return true
		}
	}
	return false
}
