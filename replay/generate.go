package replay

import (
	"retrace/openai"
	"retrace/replay/prompt"
)

// generate renders a body around a prompt that was planned.
func (b *bodies) generate(dst []byte, j *job) []byte {
	dst = append(dst, '{')
	switch j.api {
	case openai.Chat:
		dst = append(b.maker.AppendText(append(dst, `"messages":[{"role":"user","content":"`...), j.prompt), `"}]`...)
	case openai.Responses:
		dst = append(b.maker.AppendText(append(dst, `"input":"`...), j.prompt), '"')
	case openai.Invocations, openai.InvocationsStream:
		dst = append(b.maker.AppendText(append(dst, `"inputs":"`...), j.prompt), '"')
	case openai.Rerank:
		dst = b.ranking(dst, j.prompt)
	case openai.Embeddings:
		dst = b.input(append(dst, `"input":`...), j.prompt)
	default:
		dst = b.input(append(dst, `"prompt":`...), j.prompt)
	}
	set, _ := b.members(j, nil, nil) // there is no body to edit
	for _, m := range set {
		if m.value != nil {
			dst = append(dst, ',', '"')
			dst = append(append(append(dst, m.key...), '"', ':'), m.value...)
		}
	}
	return append(dst, '}')
}

// input is a prompt as token ids or text, as the run has it.
func (b *bodies) input(dst []byte, p prompt.Prompt) []byte {
	if b.cfg.Prompt == Text {
		return append(b.maker.AppendText(append(dst, '"'), p), '"')
	}
	return b.maker.AppendTokens(dst, p)
}

// queryTokens is the most that a generated query has.
const queryTokens = 16

// split shares a prompt's tokens out to a query and documents so that a server
// that reads the query with each document reads as many tokens as the prompt
// has: at least two. Earlier documents get what does not go round.
func split(tokens, documents int) (query int, docs []int) {
	documents = max(1, min(documents, tokens/2))
	query = max(1, min(queryTokens, tokens/(2*documents)))
	rest := max(tokens-documents*query, documents)
	docs = make([]int, documents)
	for i := range docs {
		docs[i] = rest / documents
		if i < rest%documents {
			docs[i]++
		}
	}
	return query, docs
}

// documentStep sets the keys of a request's documents apart: 2^64 divided by
// the golden ratio.
const documentStep = 0x9e3779b97f4a7c15

// ranking renders a query, which is the beginning of p, and documents whose
// texts p's end names.
func (b *bodies) ranking(dst []byte, p prompt.Prompt) []byte {
	query, docs := split(p.Tokens(), b.cfg.Requests.RerankDocuments)
	dst = append(b.maker.AppendText(append(dst, `"query":"`...), p.Truncate(query)), `","documents":[`...)
	segs := p.Segments()
	last := prompt.Segment{Kind: prompt.Tail}
	if len(segs) > 0 {
		last = segs[len(segs)-1]
	}
	for i, n := range docs {
		if i > 0 {
			dst = append(dst, ',')
		}
		doc := prompt.NewPrompt(prompt.Segment{Key: last.Key + uint64(i+1)*documentStep, N: uint32(n), Kind: last.Kind})
		dst = append(b.maker.AppendText(append(dst, '"'), doc), '"')
	}
	return append(dst, ']')
}
