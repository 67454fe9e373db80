package replay

import (
	"retrace/record"
)

// reasonContext is why a request that does not fit is not sent.
const reasonContext = "prompt and output exceed the model's context"

// fit applies the policy to a request that exceeds the context, and gives the
// reason where it is not sent. What is left has at least one token in and out.
func (e *engine) fit(j *job) (why string) {
	limit, policy := e.target.ContextLimit, e.cfg.Requests.OverContext
	input, output := j.res.WantedInput, j.output
	if limit <= 0 || input == record.Unknown {
		return ""
	}
	if output == record.Unknown && generates(j.api) {
		output = 1
	}
	output = max(output, 0)
	if input+output <= limit {
		return ""
	}
	switch {
	case policy == ContextSend, policy == ContextTrimPrompt && j.source != nil: // a body's prompt is its own
		j.count(&e.tally.overContext)
		return ""
	case policy == ContextTrimOutput && generates(j.api) && limit-input >= 1:
		j.count(&e.tally.trimmedOutput)
		j.output, j.trimmed = limit-input, true
		return ""
	case policy == ContextTrimPrompt && limit-output >= 1:
		j.count(&e.tally.trimmedPrompt)
		j.prompt = j.prompt.Truncate(j.prompt.Tokens() - int(input-(limit-output)))
		if j.prompt.Tokens() < 1 {
			return reasonContext
		}
		j.res.WantedInput = limit - output
		return ""
	}
	return reasonContext
}
