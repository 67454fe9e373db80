package simserver

import (
	"net/http"

	"retrace/openai"
)

// fingerprint is the system_fingerprint of every answer.
const fingerprint = "retrace-sim"

// streamer writes one streamed answer.
type streamer struct {
	s       *Server
	g       *generation
	write   eventWriter
	chunk   openai.Chunk // the next to be written
	calls   [1]openai.Call
	flush   http.Flusher
	sent    []progress
	left    int // choices without their last token
	emitted int // tokens, of all choices
	strike  int // the fault strikes after that many
}

// progress is how far the stream of one choice has got.
type progress struct {
	tokens int
	text   int // bytes
}

// stream answers with server-sent events: each step's tokens in one write.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, g *generation) {
	w.Header()["Content-Type"] = contentEvents
	w.Header()["Transfer-Encoding"] = chunked
	st := &streamer{s: s, g: g, write: s.newEvents(g),
		sent: make([]progress, len(g.call.seqs)), left: len(g.call.seqs)}
	st.flush, _ = w.(http.Flusher)
	for _, q := range g.call.seqs {
		st.strike += q.target / 2
	}
	g.out = st.write.begin(g.out[:0])
	if !s.cfg.instant() && st.flush != nil {
		_, _ = w.Write(g.out)
		g.out = g.out[:0]
		st.flush.Flush()
	}
	for st.left > 0 {
		if !s.await(r, g) {
			return
		}
		g.out = st.appendNew(g.out)
		if g.fault != "" && st.emitted >= st.strike && st.fail(w, r) {
			return
		}
		if st.left == 0 {
			g.out = st.write.end(g.out, g.fault != "no_done")
		}
		if _, err := w.Write(g.out); err != nil {
			s.engine.drop(g.call)
			return
		}
		g.out = g.out[:0]
		if st.left > 0 && st.flush != nil {
			st.flush.Flush()
		}
	}
}

// await waits for the call's bell. When the client goes away first it drops the
// call and says false; when the server closes it cuts the connection, so that
// what was sent does not look whole.
func (s *Server) await(r *http.Request, g *generation) bool {
	select {
	case <-g.call.bell:
		return true
	case <-r.Context().Done():
		s.engine.drop(g.call)
		return false
	case <-s.closing:
		panic(http.ErrAbortHandler)
	}
}

// appendNew appends the events of the tokens that came since the last time.
func (st *streamer) appendNew(dst []byte) []byte {
	for i, q := range st.g.call.seqs {
		shown, at := int(q.shown.Load()), &st.sent[i]
		if at.tokens == shown {
			continue
		}
		if at.tokens == 0 {
			st.chunk = openai.Chunk{Index: q.index, PromptIDs: q.promptIDs, Usage: st.usage(q, 0)}
			dst = st.write.open(dst, &st.chunk)
		}
		for at.tokens < shown {
			if st.g.fault != "" && st.emitted >= st.strike && st.g.fault != "no_done" && st.g.fault != "badjson" {
				return dst
			}
			dst = st.appendToken(dst, q, at)
		}
		if shown == q.target {
			st.left--
		}
	}
	return dst
}

// appendToken appends the event of one token.
func (st *streamer) appendToken(dst []byte, q *sequence, at *progress) []byte {
	g, s, i := st.g, st.s, at.tokens
	st.chunk = openai.Chunk{Index: q.index}
	c := &st.chunk
	switch {
	case i < q.lead:
		g.text = s.appendWord(g.text[:0], g.api, q, i)
		c.Reasoning = g.text
	case q.script != nil && q.script.call != nil:
		g.text = s.appendWord(g.text[:0], g.api, q, i)
		st.calls[0] = openai.Call{Arguments: g.text}
		if i == q.lead {
			st.calls[0].ID, st.calls[0].Name = q.script.call.ID, q.script.call.Name
		}
		c.Tools = st.calls[:]
	default:
		g.text, at.text = s.appendText(g.text[:0], g, q, textPart{i, i + 1, at.text})
		c.Text = g.text
	}
	if g.params.ReturnTokenIDs {
		g.ids = append(g.ids[:0], q.tokenID(s.tok, i))
		c.TokenIDs = g.ids
		if i == 0 {
			c.PromptIDs = q.promptIDs
		}
	}
	at.tokens++
	st.emitted++
	if at.tokens == q.target {
		c.Finish, c.Stop = q.finish, q.stop
	}
	c.Usage = st.usage(q, at.tokens)
	return st.write.chunk(dst, c, i)
}

// usage is the running usage of one choice, nil where it is not wanted.
func (st *streamer) usage(q *sequence, output int) *openai.Usage {
	if !st.g.params.ContinuousUsage {
		return nil
	}
	u := openai.NoUsage()
	u.Prompt, u.Completion, u.Total = int64(q.promptLen), int64(output), int64(q.promptLen+output)
	return &u
}

// usage is the whole usage of a finished call: each prompt counts once.
func (g *generation) usage() openai.Usage {
	u := openai.NoUsage()
	u.Prompt, u.Completion, u.Cached = 0, 0, 0
	for i, q := range g.call.seqs {
		if !q.pooled {
			u.Completion += int64(q.target)
		}
		if int64(i)%g.params.N == 0 {
			u.Prompt += int64(q.promptLen)
			u.Cached += q.cached.Load()
		}
		if q.lead > 0 || g.api == openai.Responses {
			u.Reasoning = max(u.Reasoning, 0) + int64(q.lead)
		}
	}
	for i := range g.media {
		u.Media = max(u.Media, 0) + int64(g.media[i].to-g.media[i].from)
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// fail lets a fault strike in the middle of the stream and says whether that
// ended it.
func (st *streamer) fail(w http.ResponseWriter, r *http.Request) bool {
	g := st.g
	over := true
	switch g.fault {
	case "error":
		g.out = append(openai.AppendError(append(g.out, "data: "...), "InternalServerError", brokenMessage, http.StatusInternalServerError), "\n\n"...)
		g.out = openai.AppendDone(g.out)
	case "error_event":
		g.out = append(openai.AppendError(append(g.out, "event: error\ndata: "...), "InternalServerError", brokenMessage, http.StatusInternalServerError), "\n\n"...)
	case "badjson":
		g.out = append(g.out, "data: {\"id\":\"cmpl-broken\",\"choices\":[{\"ind\n\n"...)
		over = false
	case "no_done":
		return false
	}
	fault := g.fault
	g.fault = ""
	if !over {
		return false
	}
	st.s.engine.drop(g.call)
	_, _ = w.Write(g.out) // the answer is broken anyway
	st.s.endBroken(w, r, fault)
	return true
}

// endBroken ends an answer of which a part is written.
func (s *Server) endBroken(w http.ResponseWriter, r *http.Request, fault string) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	switch fault {
	case "cut":
		panic(http.ErrAbortHandler)
	case "stall":
		s.hang(r)
	}
}

// hang waits until the client goes away, or the server closes and cuts the
// connection.
func (s *Server) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing:
		panic(http.ErrAbortHandler)
	}
}
