package simserver

import (
	"strings"

	"retrace/openai"
)

// applyStop ends an answer at the first of the request's stop strings: with
// the token that completes it, and with the text before it.
func (s *Server) applyStop(g *generation, q *sequence) {
	if len(g.params.Stop) == 0 {
		return
	}
	var text strings.Builder
	var piece []byte
	for i := q.lead; i < q.target; i++ {
		piece = s.appendWord(piece[:0], g.api, q, i)
		text.Write(piece)
		if int64(i) < g.params.MinTokens {
			continue
		}
		for _, stop := range g.params.Stop {
			from := max(0, text.Len()-len(piece)-len(stop))
			if at := strings.Index(text.String()[from:], stop); at >= 0 {
				q.target, q.finish, q.stop, q.textLen = i+1, finishStop, stop, from+at
				return
			}
		}
	}
}

// appendWord appends the text of the i-th token of an answer. A completion
// goes on from its prompt, so each word has a space before it; a chat's answer
// begins with its first word, and so does what follows its reasoning.
func (s *Server) appendWord(dst []byte, api openai.API, q *sequence, i int) []byte {
	if q.script != nil && i >= q.lead {
		return append(dst, q.script.piece(i-q.lead)...)
	}
	if i > 0 && i != q.lead || api == openai.Completions || api == openai.Invocations {
		dst = append(dst, ' ')
	}
	return append(dst, s.tok.words[s.tok.output(q.seed, i)]...)
}

// appendText appends the shown text of the output tokens from one to another,
// all of them behind the reasoning.
// at is the length of the text before them; the new length is returned.
func (s *Server) appendText(dst []byte, g *generation, q *sequence, part textPart) ([]byte, int) {
	start := len(dst)
	for i := part.from; i < part.to; i++ {
		dst = s.appendWord(dst, g.api, q, i)
	}
	at := part.at + len(dst) - start
	if q.textLen >= 0 && at > q.textLen {
		dst = dst[:max(start, len(dst)-(at-q.textLen))]
	}
	return dst, at
}

// textPart is a run of output tokens and the length of the text before it.
type textPart struct{ from, to, at int }
