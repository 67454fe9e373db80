package simserver

import (
	"net/http"
	"strconv"

	"retrace/openai"
)

// answer gives the whole answer at once.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, g *generation) {
	for !g.finished() {
		if !s.await(r, g) {
			return
		}
	}
	choices := make([]openai.Chunk, len(g.call.seqs))
	for i, q := range g.call.seqs {
		c := &choices[i]
		c.Index, c.Finish, c.Stop = q.index, q.finish, q.stop
		c.Text, _ = s.appendText(nil, g, q, textPart{0, q.target, 0})
		if g.params.ReturnTokenIDs {
			c.PromptIDs = q.promptIDs
			for k := range q.target {
				c.TokenIDs = append(c.TokenIDs, s.tok.ids[s.tok.output(q.seed, k)])
			}
		}
	}
	write := openai.NewResponseWriter(g.api, g.id, s.cfg.Model, g.created)
	g.out = write.AppendAnswer(g.out[:0], choices, &openai.Tail{Usage: g.usage(), Fingerprint: fingerprint})
	if g.fault != "" && g.fault != "no_done" {
		s.breakAnswer(w, r, g)
		return
	}
	writeJSON(w, http.StatusOK, g.out)
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
func (s *Server) breakAnswer(w http.ResponseWriter, r *http.Request, g *generation) {
	half := g.out[:len(g.out)/2]
	switch g.fault {
	case "error", "error_event":
		writeJSON(w, http.StatusOK, openai.AppendError(nil, "InternalServerError", brokenMessage, http.StatusInternalServerError))
	case "end", "badjson":
		writeJSON(w, http.StatusOK, half)
	default: // cut, stall: the head promises the whole
		w.Header().Set("Content-Length", strconv.Itoa(len(g.out)))
		writeJSON(w, http.StatusOK, half)
		s.endBroken(w, r, g.fault)
	}
}
