package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"retrace/openai"
)

// Prompt is what a request's prefix blocks are made of.
type Prompt struct {
	// Scope keeps prompts apart that share nothing whatever they hold: those
	// under another cache salt, or after another response.
	Scope string
	// Text is the prompt where IsTokens is false: of a chat its messages as
	// ChatML, whatever the model's own template.
	Text string
	// Tokens are the prompt's ids where IsTokens is true.
	Tokens   []uint32
	IsTokens bool
}

// ReadPrompt reads the prompt of a request's body. ok is false where there is not
// exactly one: of several prompts, of a ranking, of a body that is not its API's.
func ReadPrompt(api openai.API, body []byte) (p Prompt, ok bool) {
	if api == openai.Invocations || api == openai.InvocationsStream {
		shape, err := openai.InvocationShape(body)
		if err != nil {
			return p, false
		}
		if shape == openai.Invocations {
			return readInputs(body)
		}
		api = shape
	}
	switch api {
	case openai.Completions:
		var r openai.CompletionRequest
		err := openai.ParseCompletion(body, &r)
		return single(r.Prompts, r.CacheSalt, err)
	case openai.Embeddings:
		var r openai.EmbeddingRequest
		err := openai.ParseEmbedding(body, &r)
		return single(r.Inputs, r.CacheSalt, err)
	case openai.Chat:
		var r openai.ChatRequest
		if err := openai.ParseChat(body, &r); err != nil || len(r.Messages) == 0 {
			return p, false
		}
		return Prompt{Scope: scopeOf(r.CacheSalt, ""), Text: chatText(&r, "")}, true
	case openai.Responses:
		var r openai.ResponsesRequest
		if err := openai.ParseResponses(body, &r); err != nil || len(r.Messages) == 0 {
			return p, false
		}
		return Prompt{Scope: scopeOf(r.CacheSalt, r.Previous), Text: chatText(&r.ChatRequest, r.Instructions)}, true
	}
	return p, false
}

func readInputs(body []byte) (Prompt, bool) {
	var r openai.GenerateRequest
	err := openai.ParseGenerate(body, &r)
	return single([]openai.Prompt{{Text: r.Inputs}}, r.CacheSalt, err)
}

func single(prompts []openai.Prompt, cacheSalt string, err error) (Prompt, bool) {
	if err != nil || len(prompts) != 1 {
		return Prompt{}, false
	}
	p := prompts[0]
	return Prompt{Scope: scopeOf(cacheSalt, ""), Text: p.Text, Tokens: p.Tokens, IsTokens: p.IsTokens}, true
}

func scopeOf(cacheSalt, previous string) string {
	if cacheSalt == "" && previous == "" {
		return ""
	}
	return cacheSalt + "\x00" + previous
}

// chatText is a chat as ChatML: tools and instructions first, then the messages,
// so that a conversation's next turn begins as this one does.
func chatText(r *openai.ChatRequest, instructions string) string {
	var b strings.Builder
	if len(r.Tools) > 0 || instructions != "" {
		b.WriteString("<|im_start|>system\n")
		b.WriteString(instructions)
		b.Write(r.Tools)
		b.WriteString("<|im_end|>\n")
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		b.WriteString("<|im_start|>" + m.Role + "\n")
		writeContent(&b, m)
		b.Write(m.ToolCalls)
		b.WriteString("<|im_end|>\n")
	}
	return b.String()
}

// writeContent writes a message's text, and at their places the digests of its
// media.
func writeContent(b *strings.Builder, m *openai.Message) {
	at := 0
	for i := range m.Media {
		medium := &m.Media[i]
		b.WriteString(m.Content[at:medium.At])
		at = medium.At
		sum := sha256.Sum256(medium.Content())
		b.WriteString("<|media|>" + hex.EncodeToString(sum[:]))
	}
	b.WriteString(m.Content[at:])
}
