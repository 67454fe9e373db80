package replay

import (
	"retrace/openai"
	"retrace/replay/prompt"
)

// PromptConfig says what generated prompts are made of, beside Config.Salt and
// the namespace of Config.Header.
type PromptConfig struct {
	// Vocabulary has the ids and words of prompts, as prompt.ChooseIDs and
	// prompt.ChooseWords do; its zero value is the usual one.
	Vocabulary prompt.Vocabulary
	// Frame is what the model's tokenizer puts around a text, nil where it is
	// not known.
	Frame *Frame
	// AskServer has the words of text prompts checked, and the template's
	// overhead told, by the server's /tokenize; then no probe goes to the API
	// itself.
	AskServer bool
	// Bodiless says that a trace whose own bodies are sent has requests without
	// one, so that prompts are made for these.
	Bodiless bool
}

// Frame is what stands around a prompt in the server, in tokens.
type Frame struct {
	Head, Tail int64
}

// makesText says whether prompts of text are made for Config.API, whose
// template's overhead is to be known.
func (c *Config) makesText() bool {
	switch {
	case c.API == openai.Rerank || c.API == openai.Transcriptions: // whose prompts are none
		return false
	case c.Prompt == Literal:
		return c.Prompts.Bodiless && !takesTokens(c.API)
	}
	return c.Prompt == Text
}

// newMaker makes the maker of prompts.
func (c *Config) newMaker(v prompt.Vocabulary) (*prompt.Maker, error) {
	return prompt.New(prompt.Config{
		Namespace: c.Header.Namespace, Salt: c.Salt, BlockSize: c.Header.TokensPerBlock(),
		VocabLo: c.VocabLo, VocabHi: c.VocabHi, Vocabulary: v,
	})
}
