package openai

// Prompt is one prompt of a completion request: text, or token ids.
type Prompt struct {
	// Text is the prompt where IsTokens is false.
	Text string
	// Tokens are the prompt's ids where IsTokens is true.
	Tokens []uint32
	// IsTokens says which of the two was sent.
	IsTokens bool
}

// Unset marks a number that the request did not give.
const Unset int64 = -1

// Params are the fields that completions and chat requests share. Fields that
// a request may leave out and whose zero means something are Unset.
type Params struct {
	// Model is the model asked for, "" where the request names none.
	Model string
	// Stream asks for server-sent events.
	Stream bool
	// IncludeUsage (stream_options.include_usage) asks for a last chunk with
	// the usage, ContinuousUsage (continuous_usage_stats) for usage in every chunk.
	IncludeUsage    bool
	ContinuousUsage bool
	// MaxTokens is the most output tokens wanted: max_completion_tokens where
	// given, else max_tokens; Unset without either.
	MaxTokens int64
	// MinTokens is the fewest output tokens wanted; 0 without.
	MinTokens int64
	// IgnoreEOS asks for output up to MaxTokens whatever the model says.
	IgnoreEOS bool
	// N is the number of answers to each prompt; 1 without.
	N int64
	// Stop holds the strings at which an answer ends.
	Stop []string
	// CacheSalt isolates the request's prefix-cache blocks.
	CacheSalt string
	// ReturnTokenIDs asks for the ids of prompt and output beside the text.
	ReturnTokenIDs bool
	// Priority orders waiting requests, lower first; 0 without.
	Priority int64
	// Sampling has the parameters that choose each token.
	Sampling Sampling
	// Structured is what the output must conform to.
	Structured Structured
	// Thinking says how much the model should think before it answers.
	Thinking Thinking
}

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Params
	// Prompts are the prompts: one for a string or an array of ids, several
	// for arrays of those, none where the request has none.
	Prompts []Prompt
}

// Message is one message of a chat request.
type Message struct {
	// Role is who speaks: system, user, assistant, tool, …
	Role string
	// Content is the text: the string, or the text parts joined by newlines.
	Content string
	// Parts is the number of content parts that are not text (images, audio, …).
	Parts int
	// Media are those of the Parts whose kind is known.
	Media []Media
	// ToolCalls is the raw JSON of an assistant's tool calls, nil without.
	ToolCalls []byte
}

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Params
	// Messages are the messages, oldest first.
	Messages []Message
	// Tools is the raw JSON of the tools array, nil without.
	Tools []byte
	// ToolChoice is the raw JSON of tool_choice, nil without.
	ToolChoice []byte
}

// ParseCompletion reads the body of a completion request into r, reusing r's
// memory. Unknown fields are accepted, null is absent, and of a key that comes
// twice the last counts. An error is a *RequestError.
func ParseCompletion(body []byte, r *CompletionRequest) error {
	prompts := r.Prompts[:0]
	r.Params, r.Prompts = newParams(), nil
	return parseObject(body, func(s *scanner, key string) error {
		if key != "prompt" {
			return r.field(s, key)
		}
		var err error
		r.Prompts, err = parsePrompts(s, key, prompts[:0])
		return err
	})
}

// ParseChat reads the body of a chat request into r, under the rules of
// ParseCompletion.
func ParseChat(body []byte, r *ChatRequest) error {
	messages := r.Messages[:0]
	r.Params, r.Messages, r.Tools, r.ToolChoice = newParams(), nil, nil, nil
	maxTokens, maxCompletion := Unset, Unset
	err := parseObject(body, func(s *scanner, key string) (err error) {
		switch key {
		case "messages":
			r.Messages, err = parseMessages(s, messages[:0])
		case "tools":
			r.Tools, err = s.raw(key)
		case "tool_choice":
			r.ToolChoice, err = s.raw(key)
		case "max_tokens":
			maxTokens, err = s.integer(key)
		case "max_completion_tokens":
			maxCompletion, err = s.integer(key)
		default:
			err = r.field(s, key)
		}
		return err
	})
	r.MaxTokens = maxTokens
	if maxCompletion != Unset {
		r.MaxTokens = maxCompletion
	}
	return err
}

func newParams() Params {
	return Params{MaxTokens: Unset, N: 1, Sampling: DefaultSampling(), Thinking: Thinking{Budget: Unset}}
}

// field reads one of the shared fields, or skips an unknown one.
func (p *Params) field(s *scanner, key string) (err error) {
	switch key {
	case "model":
		p.Model, err = s.text(key)
	case "stream":
		p.Stream, err = s.boolean(key)
	case "stream_options":
		p.IncludeUsage, p.ContinuousUsage, err = parseStreamOptions(s)
	case "max_tokens":
		p.MaxTokens, err = s.integer(key)
	case "min_tokens":
		p.MinTokens, err = s.integerOr(key, 0)
	case "ignore_eos":
		p.IgnoreEOS, err = s.boolean(key)
	case "n":
		p.N, err = s.integerOr(key, 1)
	case "stop":
		p.Stop, err = parseStop(s)
	case "cache_salt":
		p.CacheSalt, err = s.text(key)
	case "return_token_ids":
		p.ReturnTokenIDs, err = s.boolean(key)
	case "priority":
		p.Priority, err = s.signedOr(key, 0)
	case "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_json_object":
		err = p.Structured.field(s, key)
	case "chat_template_kwargs", "reasoning_effort", "thinking_token_budget", "reasoning":
		err = p.Thinking.field(s, key)
	default:
		err = p.Sampling.field(s, key)
	}
	return err
}

func parseStreamOptions(s *scanner) (include, continuous bool, err error) {
	if s.null() {
		return false, false, nil
	}
	err = s.object("stream_options", func(key string) (err error) {
		switch key {
		case "include_usage":
			include, err = s.boolean("stream_options.include_usage")
		case "continuous_usage_stats":
			continuous, err = s.boolean("stream_options.continuous_usage_stats")
		default:
			err = s.skip()
		}
		return err
	})
	return include, continuous, err
}

// parseStop reads a string or an array of strings.
func parseStop(s *scanner) ([]string, error) {
	if s.peek() != '[' {
		one, err := s.text("stop")
		if err != nil || one == "" {
			return nil, err
		}
		return []string{one}, nil
	}
	all, err := s.texts("stop")
	var stops []string
	for _, one := range all {
		if one != "" {
			stops = append(stops, one)
		}
	}
	return stops, err
}

// texts reads an array of strings.
func (s *scanner) texts(field string) ([]string, error) {
	var all []string
	err := s.array(field, func() error {
		if s.peek() != '"' {
			return s.mismatch(field, "a string")
		}
		one, err := s.text(field)
		all = append(all, one)
		return err
	})
	return all, err
}
