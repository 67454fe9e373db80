package openai

// Unknown marks a count that the server did not tell. It is not zero.
const Unknown int64 = -1

// Usage is what a server says it counted, in tokens; Unknown where it does not
// say. Cached is the part of Prompt that came out of its prefix cache,
// Reasoning the part of Completion that was reasoning.
type Usage struct {
	Prompt     int64
	Completion int64
	Total      int64
	Cached     int64
	Reasoning  int64
}

// NoUsage is a Usage of which nothing is known.
func NoUsage() Usage {
	return Usage{Prompt: Unknown, Completion: Unknown, Total: Unknown, Cached: Unknown, Reasoning: Unknown}
}

// merge takes over what u knows: of several usages in one stream the last one
// counts, field by field, for vLLM's running usage lacks the details that its
// last one has.
func (old Usage) merge(u Usage) Usage {
	return Usage{
		Prompt:     known(u.Prompt, old.Prompt),
		Completion: known(u.Completion, old.Completion),
		Total:      known(u.Total, old.Total),
		Cached:     known(u.Cached, old.Cached),
		Reasoning:  known(u.Reasoning, old.Reasoning),
	}
}

func known(n, otherwise int64) int64 {
	if n != Unknown {
		return n
	}
	return otherwise
}
