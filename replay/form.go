package replay

import (
	"retrace/openai"
	"retrace/record"
)

// form is what a body looks like, and so which members do what in it.
type form struct {
	// lengths are the members that limit the answer: those that the body has,
	// else the first. within is the object that they stand in, "" for the body.
	lengths []string
	within  string
	// streams says that "stream" asks for events, usage which member then asks
	// for a usage, where one is needed.
	streams bool
	usage   int
	// forced are the members that force the length.
	forced fields
	// named says that a model is asked for by "model".
	named bool
}

const noOption = -1

// The members that limit an answer's length; of a chat's two the newer one
// wins where a body has both.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
	maxOutputTokens     = "max_output_tokens"
	maxNewTokens        = "max_new_tokens"
)

// forms are the bodies of each API; openai.Invocations stands for TGI's.
var forms = map[openai.API]form{
	openai.Completions:    {lengths: []string{maxTokens, maxCompletionTokens}, streams: true, usage: optStreamOptions, forced: 1<<optIgnoreEOS | 1<<optMinTokens, named: true},
	openai.Chat:           {lengths: []string{maxTokens, maxCompletionTokens}, streams: true, usage: optStreamOptions, forced: 1<<optIgnoreEOS | 1<<optMinTokens, named: true},
	openai.Responses:      {lengths: []string{maxOutputTokens}, streams: true, usage: noOption, forced: 1 << optIgnoreEOS, named: true},
	openai.Embeddings:     {usage: noOption, named: true},
	openai.Rerank:         {usage: noOption, named: true},
	openai.Transcriptions: {streams: true, usage: optStreamUsage, named: true},
	openai.Invocations:    {lengths: []string{maxNewTokens}, within: "parameters", streams: true, usage: noOption},
}

// formOf is the form of a body sent to an API, which at SageMaker's endpoints
// its members tell; nil stands for a generated one.
func formOf(api openai.API, body []byte) openai.API {
	if api != openai.Invocations && api != openai.InvocationsStream {
		return api
	}
	if body == nil {
		return openai.Invocations
	}
	shape, err := openai.InvocationShape(body)
	if err != nil || shape == "" {
		return openai.Invocations // what rendering or the server makes of it
	}
	return shape
}

// Destination is where a body goes that is of the API own ("" where that is not
// known) in a run of the API run: to its own, but to SageMaker's endpoints,
// which take the bodies of all but forms, where the run is of one of them.
func Destination(run, own openai.API) openai.API {
	everyBody := run == openai.Invocations || run == openai.InvocationsStream
	if own == "" || everyBody && own.Path() != "" && own != openai.Transcriptions {
		return run
	}
	return own
}

// generates says whether an API's answers have a length that is asked for.
func generates(api openai.API) bool {
	return api != openai.Embeddings && api != openai.Rerank && api != openai.Transcriptions
}

// asksStream says whether a body of the form asks for a stream; own is its own
// "stream", "" where it has none; extra that of --extra, which wins.
func (c *Config) asksStream(api openai.API, f *form, own string, extra []byte) bool {
	switch {
	case extra != nil && f.streams:
		return string(extra) == "true"
	case !f.streams || c.Requests.Stream == StreamNever:
		return false
	case c.Requests.Stream == StreamAlways || api == openai.InvocationsStream:
		return true
	case own == "true" || own == "false":
		return own == "true"
	}
	return api != openai.Invocations
}

// bodyLimit is the limit that a body sets to the length of its answer, Unknown
// where it sets none.
func bodyLimit(api openai.API, body []byte) int64 {
	f := forms[formOf(api, body)]
	list, _, err := spans(body)
	if err != nil {
		return record.Unknown // which rendering will tell
	}
	if f.within != "" {
		raw := valueOf(body, list, f.within)
		if list, _, err = spans(raw); err != nil {
			return record.Unknown
		}
		body = raw
	}
	limit := record.Unknown
	for _, key := range f.lengths { // the newer name wins
		if n := countIn(valueOf(body, list, key)); n > 0 {
			limit = n
		} else if has(list, key) && key != maxTokens {
			limit = record.Unknown
		}
	}
	return limit
}
