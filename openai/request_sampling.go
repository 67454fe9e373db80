package openai

// Sampling are the parameters that choose each token.
type Sampling struct {
	// Temperature is 0 for greedy, 1 for the model's own distribution.
	Temperature float64
	// TopP, TopK and MinP narrow the choice; 1, 0 and 0 do not.
	TopP float64
	TopK int64
	MinP float64
	// PresencePenalty and FrequencyPenalty are added, RepetitionPenalty is a
	// factor; 0, 0 and 1 do nothing.
	PresencePenalty   float64
	FrequencyPenalty  float64
	RepetitionPenalty float64
}

// DefaultSampling are the values of a request that names none.
func DefaultSampling() Sampling {
	return Sampling{Temperature: 1, TopP: 1, RepetitionPenalty: 1}
}

// field reads one of the parameters, or skips an unknown field.
func (p *Sampling) field(s *scanner, key string) (err error) {
	switch key {
	case "temperature":
		p.Temperature, err = s.floatOr(key, 1)
	case "top_p":
		p.TopP, err = s.floatOr(key, 1)
	case "top_k":
		p.TopK, err = s.signedOr(key, 0)
	case "min_p":
		p.MinP, err = s.floatOr(key, 0)
	case "presence_penalty":
		p.PresencePenalty, err = s.floatOr(key, 0)
	case "frequency_penalty":
		p.FrequencyPenalty, err = s.floatOr(key, 0)
	case "repetition_penalty":
		p.RepetitionPenalty, err = s.floatOr(key, 1)
	default:
		err = s.skip()
	}
	return err
}

// Thinking says how much the model should think before it answers.
type Thinking struct {
	// Effort is reasoning_effort (chat) or reasoning.effort (responses): none,
	// minimal, low, medium, high; "" without.
	Effort string
	// On and Off are the template's switch (chat_template_kwargs with
	// enable_thinking or thinking); both false without.
	On, Off bool
	// Budget is the most tokens of thinking (thinking_token_budget); Unset without.
	Budget int64
}

// field reads one of the fields that concern reasoning.
func (t *Thinking) field(s *scanner, key string) (err error) {
	switch key {
	case "reasoning_effort":
		t.Effort, err = s.text(key)
		return err
	case "thinking_token_budget":
		t.Budget, err = s.signedOr(key, Unset)
		return err
	}
	if s.peek() != '{' { // null, or what other servers take
		return s.skip()
	}
	return s.object(key, func(inner string) (err error) {
		switch {
		case key == "reasoning" && inner == "effort":
			t.Effort, err = s.text("reasoning.effort")
		case key == "chat_template_kwargs" && (inner == "enable_thinking" || inner == "thinking") && s.peek() != 'n':
			t.On, err = s.boolean(key + "." + inner)
			t.Off = !t.On
		default:
			err = s.skip()
		}
		return err
	})
}
