package analysis

import "retrace/record"

// tokenSums adds up the tokens of the completed requests.
type tokenSums struct {
	input, output, cached Total
	reasoning, media      Total
	// inputTrace and outputHere are the requests whose tokens the server did
	// not count: the trace's length and our own count of output chunks stand in.
	inputTrace, outputHere int64
	// both counts, where both are known, to be compared.
	bothServer, bothHere, bothRequests int64
}

// Total is a sum that does not exist where nothing was known to add.
type Total struct {
	// Sum is the sum of the Known addends, 0 of none.
	Sum   int64
	Known int64
}

// Add takes one addend; record.Unknown adds nothing.
func (t *Total) Add(n int64) {
	if n == record.Unknown {
		return
	}
	t.Sum += n
	t.Known++
}

// MarshalJSON writes the sum, or null where nothing was known.
func (t Total) MarshalJSON() ([]byte, error) {
	if t.Known == 0 {
		return []byte("null"), nil
	}
	return appendInt(nil, t.Sum), nil
}

func (s *tokenSums) add(r *record.Result) {
	input := promptTokens(r)
	if r.PromptTokens == record.Unknown && input != record.Unknown {
		s.inputTrace++
	}
	s.input.Add(input)
	output, here := r.OutputTokens()
	if here && output != record.Unknown {
		s.outputHere++
	}
	s.output.Add(output)
	s.cached.Add(r.CachedTokens)
	s.reasoning.Add(r.ReasoningTokens)
	s.media.Add(r.MediaTokens)
	if r.CompletionTokens != record.Unknown && r.CountedOutput != record.Unknown {
		s.bothServer += r.CompletionTokens
		s.bothHere += r.CountedOutput
		s.bothRequests++
	}
}

// promptTokens is the prompt's length as the server counted it, else the
// trace's.
func promptTokens(r *record.Result) int64 {
	if r.PromptTokens != record.Unknown {
		return r.PromptTokens
	}
	return r.WantedInput
}

// prefixSums adds up cache hits. The predicted ones are kept twice: for all
// completed requests, and for those whose hits the server reported, so that
// predicted and observed rates speak of the same requests.
type prefixSums struct {
	observed, observedPrompt   int64
	predicted, predictedPrompt int64
	paired, pairedPrompt       int64
	reported, both             int64 // requests
}

func (s *prefixSums) add(r *record.Result) {
	prompt := promptTokens(r)
	if prompt == record.Unknown {
		return
	}
	if r.CachedTokens != record.Unknown {
		s.reported++
		s.observed += r.CachedTokens
		s.observedPrompt += prompt
	}
	if r.PredictedHit == record.Unknown {
		return
	}
	s.predicted += r.PredictedHit
	s.predictedPrompt += prompt
	if r.CachedTokens != record.Unknown {
		s.both++
		s.paired += r.PredictedHit
		s.pairedPrompt += prompt
	}
}

func (s *prefixSums) report() RunPrefix {
	p := RunPrefix{
		Predicted: Ratio(float64(s.predicted), float64(s.predictedPrompt)),
		Observed:  Ratio(float64(s.observed), float64(s.observedPrompt)),
	}
	hits := s.predicted
	if s.both > 0 {
		p.Predicted = Ratio(float64(s.paired), float64(s.pairedPrompt))
		hits = s.paired
	}
	if p.Predicted.OK {
		p.PredictedTokens = Some(float64(hits))
	}
	if p.Observed.OK {
		p.ObservedTokens = Some(float64(s.observed))
	}
	return p
}
