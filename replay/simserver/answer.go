package simserver

import (
	"net/http"
	"strconv"

	"retrace/openai"
)

// answer gives the whole answer at once.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, g *generation) {
	if !s.awaitAll(r, g) {
		return
	}
	choices := make([]openai.Chunk, len(g.call.seqs))
	for i, q := range g.call.seqs {
		s.fillChoice(g, q, &choices[i])
	}
	g.out = s.appendAnswer(g.out[:0], g, choices)
	s.send(w, r, g, g.contentType())
}

// awaitAll waits until all sequences have come to their ends, and says false
// where the client goes away before.
func (s *Server) awaitAll(r *http.Request, g *generation) bool {
	for !g.finished() {
		if !s.await(r, g) {
			return false
		}
	}
	return true
}

// send writes the whole answer in g.out, or what a fault makes of it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, g *generation, content []string) {
	if g.fault != "" && g.fault != "no_done" {
		s.breakAnswer(w, r, g, content)
		return
	}
	writeBody(w, http.StatusOK, content, g.out)
}

// contentType is the type of a whole answer.
func (g *generation) contentType() []string {
	if g.api == openai.Transcriptions && g.form.format == "text" {
		return contentPlain
	}
	return contentJSON
}

// fillChoice puts a finished sequence into a choice.
func (s *Server) fillChoice(g *generation, q *sequence, c *openai.Chunk) {
	c.Index, c.Finish, c.Stop = q.index, q.finish, q.stop
	for i := range q.lead {
		c.Reasoning = s.appendWord(c.Reasoning, g.api, q, i)
	}
	c.Text, _ = s.appendText(nil, g, q, textPart{q.lead, q.target, 0})
	if q.script != nil && q.script.call != nil && q.target > q.lead {
		call := *q.script.call
		call.Arguments = c.Text
		c.Tools, c.Text = []openai.Call{call}, nil
	}
	if g.params.ReturnTokenIDs {
		c.PromptIDs = q.promptIDs
		for k := range q.target {
			c.TokenIDs = append(c.TokenIDs, q.tokenID(s.tok, k))
		}
	}
}

// appendAnswer appends the answer of the request's API.
func (s *Server) appendAnswer(dst []byte, g *generation, choices []openai.Chunk) []byte {
	switch g.api {
	case openai.Responses:
		return s.appendResponse(dst, g, &choices[0])
	case openai.Transcriptions:
		return s.appendTranscript(dst, g, &choices[0])
	case openai.Invocations:
		last := g.generated(choices[0].Finish, choices[0].Stop, g.call.seqs[0].target)
		last.Text = choices[0].Text
		return openai.AppendGenerated(dst, &last)
	}
	write := openai.NewResponseWriter(g.api, g.id, g.model, g.created)
	return write.AppendAnswer(dst, choices, s.tail(g))
}

// finished says whether all answers have all their tokens.
func (g *generation) finished() bool {
	for _, q := range g.call.seqs {
		if int(q.shown.Load()) < q.target {
			return false
		}
	}
	return true
}

// breakAnswer is what the faults of streams do to a whole answer.
func (s *Server) breakAnswer(w http.ResponseWriter, r *http.Request, g *generation, content []string) {
	half := g.out[:len(g.out)/2]
	switch g.fault {
	case "error", "error_event":
		writeJSON(w, http.StatusOK, openai.AppendError(nil, "InternalServerError", brokenMessage, http.StatusInternalServerError))
	case "end", "badjson":
		writeBody(w, http.StatusOK, content, half)
	default: // cut, stall: the head promises the whole
		w.Header().Set("Content-Length", strconv.Itoa(len(g.out)))
		writeBody(w, http.StatusOK, content, half)
		s.endBroken(w, r, g.fault)
	}
}
