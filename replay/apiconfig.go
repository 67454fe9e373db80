package replay

import (
	"errors"
	"fmt"
	"slices"

	"retrace/openai"
)

// StreamMode says which answers are asked for as a stream.
type StreamMode string

// The modes of streaming.
const (
	// StreamOwn asks for a stream, but of a body that says "stream": false,
	// and of one of SageMaker's /invocations that does not say.
	StreamOwn StreamMode = "own"
	// StreamAlways and StreamNever set what bodies say.
	StreamAlways StreamMode = "always"
	StreamNever  StreamMode = "never"
)

// ContextPolicy says what becomes of a request whose prompt and output
// together exceed the model's context.
type ContextPolicy string

// The policies of --over-context.
const (
	ContextSend       ContextPolicy = "send"        // sent as it is
	ContextSkip       ContextPolicy = "skip"        // not sent
	ContextTrimOutput ContextPolicy = "trim-output" // sent with the output that fits
	ContextTrimPrompt ContextPolicy = "trim-prompt" // sent with the prompt's beginning that fits
)

// RequestConfig says how requests are made beyond their prompts.
type RequestConfig struct {
	// Stream is which answers are streamed; default StreamOwn.
	Stream StreamMode
	// ModelFromTrace sends each request's own model, where it has one.
	ModelFromTrace bool
	// LoRA are adapters, one of which each session asks for as its model.
	LoRA []string
	// RerankDocuments is how many documents a generated rerank request has;
	// default 1.
	RerankDocuments int
	// ContextLimit is the model's context in tokens, OverContext the policy for
	// what exceeds it; default ContextSend. 0 takes the limit that the server
	// tells, where the policy needs one.
	ContextLimit int64
	OverContext  ContextPolicy
	// MediaDir is where the files are that bodies name: the file of a
	// transcription, and "file:NAME" for the URL or the data of a content part;
	// "" reads none.
	MediaDir string
}

func (c *RequestConfig) fill() {
	setDefault(&c.Stream, StreamOwn)
	setDefault(&c.RerankDocuments, 1)
	setDefault(&c.OverContext, ContextSend)
}

// validateRequests says what of the API and of Requests cannot be.
func (c *Config) validateRequests() error {
	r := &c.Requests
	if c.API != "" {
		if _, err := openai.ParseAPI(string(c.API)); err != nil {
			return err
		}
	}
	switch {
	case c.Prompt == Tokens && c.API != "" && !takesTokens(c.API):
		return fmt.Errorf("prompts of token ids need the completions or the embeddings API, not %s", c.API)
	case c.Prompt != Literal && c.Prompt != "" && c.API == openai.Transcriptions:
		return errNoAudio
	case r.RerankDocuments < 0:
		return fmt.Errorf("%d documents: want 1 or more", r.RerankDocuments)
	case r.ContextLimit < 0:
		return fmt.Errorf("context of %d tokens: want 1 or more", r.ContextLimit)
	case r.Stream != "" && !slices.Contains([]StreamMode{StreamOwn, StreamAlways, StreamNever}, r.Stream):
		return fmt.Errorf("stream mode %q: want own, always or never", r.Stream)
	case r.OverContext != "" && !slices.Contains([]ContextPolicy{ContextSend, ContextSkip, ContextTrimOutput, ContextTrimPrompt}, r.OverContext):
		return fmt.Errorf("context policy %q: want send, skip, trim-output or trim-prompt", r.OverContext)
	case r.ModelFromTrace && len(r.LoRA) > 0:
		return errors.New("models from the trace and LoRA adapters exclude each other")
	case slices.Contains(r.LoRA, ""):
		return errors.New("LoRA adapters: found an empty name")
	}
	return nil
}

// errNoAudio says that no audio is made up.
var errNoAudio = errors.New("transcriptions need the trace's own bodies: no audio is made up")

// takesTokens says whether an API's prompts may be token ids.
func takesTokens(api openai.API) bool { return api == openai.Completions || api == openai.Embeddings }

// DefaultPrompt is the kind of prompts made for an API: token ids where it
// takes them.
func DefaultPrompt(api openai.API) PromptMode {
	if api == "" || takesTokens(api) {
		return Tokens
	}
	return Text
}

// PredictsHits says whether prefix-cache hits are predicted for the prompts of
// an API: where one prompt a request runs through a prefix cache.
func PredictsHits(api openai.API) bool {
	switch api {
	case openai.Embeddings, openai.Rerank, openai.Transcriptions:
		return false
	}
	return true
}
