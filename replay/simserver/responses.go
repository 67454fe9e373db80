package simserver

import (
	"sync"

	"retrace/openai"
)

func (s *Server) responsesWriter(g *generation) *openai.ResponsesWriter {
	return openai.NewResponsesWriter(g.id, g.model, g.created, g.params.MaxTokens, g.response.Previous)
}

// prepareResponse puts together the conversation: what the response before had,
// then the instructions and the input. Instructions are not carried over.
func (s *Server) prepareResponse(g *generation) *apiError {
	q := &g.response
	if q.N != 1 {
		return badRequest("n must be 1, got %d.", q.N)
	}
	g.params.ReturnTokenIDs = false // responses have no place for them
	if len(q.Messages) == 0 {
		return badRequest("input: Field required")
	}
	var before []openai.Message
	if q.Previous != "" {
		stored := s.responses.get(q.Previous)
		if stored == nil {
			return notFound("Response with id '%s' not found.", q.Previous)
		}
		before = stored.messages
	}
	history := append(before[:len(before):len(before)], q.Messages...)
	chat := q.ChatRequest
	chat.Messages = history
	if q.Instructions != "" {
		chat.Messages = append([]openai.Message{{Role: "system", Content: q.Instructions}}, history...)
	}
	if !q.NoStore {
		g.history = history
	}
	if fail := s.planAnswer(g, &chat); fail != nil {
		return fail
	}
	return s.addChat(g, &chat)
}

// responseEvents is the stream of a response.
type responseEvents struct {
	s     *Server
	g     *generation
	w     *openai.ResponsesWriter
	text  []byte // of the answer, reasoning left out
	calls []byte
}

func (e *responseEvents) begin(dst []byte) []byte                 { return e.w.Open(dst) }
func (e *responseEvents) open(dst []byte, _ *openai.Chunk) []byte { return dst }

func (e *responseEvents) chunk(dst []byte, c *openai.Chunk, _ int) []byte {
	e.text = append(e.text, c.Text...)
	for i := range c.Tools {
		e.calls = append(append(e.calls, c.Tools[i].Name...), c.Tools[i].Arguments...)
	}
	return e.w.Chunk(dst, c)
}

func (e *responseEvents) end(dst []byte, done bool) []byte {
	u := e.g.usage()
	cut := e.g.call.seqs[0].finish == finishLength
	e.s.keep(e.g, e.text, e.calls)
	if !done {
		return dst
	}
	return e.w.Close(dst, &u, cut)
}

// appendResponse appends a whole response.
func (s *Server) appendResponse(dst []byte, g *generation, c *openai.Chunk) []byte {
	u := g.usage()
	w := s.responsesWriter(g)
	var calls []byte
	for i := range c.Tools {
		calls = append(append(calls, c.Tools[i].Name...), c.Tools[i].Arguments...)
	}
	dst = w.Whole(dst, c, &u, c.Finish == finishLength)
	s.keep(g, c.Text, calls)
	return dst
}

// keep stores a conversation under its response's id.
func (s *Server) keep(g *generation, text, calls []byte) {
	if g.history == nil {
		return
	}
	said := openai.Message{Role: "assistant", Content: string(text)}
	if len(calls) > 0 {
		said.ToolCalls = append([]byte(nil), calls...)
	}
	s.responses.put(g.id, append(g.history[:len(g.history):len(g.history)], said))
}

// The bounds of the store of responses.
const (
	maxResponses     = 1024
	maxResponseBytes = 64 << 20
)

// responseStore keeps the conversations of the latest responses. What they
// share is kept, and counted, once for each.
type responseStore struct {
	mu    sync.Mutex
	byID  map[string]*storedResponse
	line  []string // ids, oldest first
	bytes int
}

// storedResponse is a conversation, the answer last.
type storedResponse struct {
	messages []openai.Message
	size     int
}

func (st *responseStore) get(id string) *storedResponse {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.byID[id]
}

// put keeps a conversation, of media only copies of what the request had.
func (st *responseStore) put(id string, messages []openai.Message) {
	kept := &storedResponse{messages: make([]openai.Message, len(messages))}
	for i, m := range messages {
		media := append([]openai.Media(nil), m.Media...)
		for k := range media {
			media[k].Ref = append([]byte(nil), media[k].Ref...) // the request's body is not ours
			kept.size += len(media[k].Ref)
		}
		m.Media = media
		kept.messages[i] = m
		kept.size += len(m.Role) + len(m.Content) + len(m.ToolCalls) + 128
	}
	if kept.size > maxResponseBytes {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.byID == nil {
		st.byID = map[string]*storedResponse{}
	}
	if old := st.byID[id]; old != nil {
		st.bytes -= old.size
	} else {
		st.line = append(st.line, id)
	}
	st.byID[id] = kept
	st.bytes += kept.size
	for len(st.line) > maxResponses || st.bytes > maxResponseBytes {
		st.bytes -= st.byID[st.line[0]].size
		delete(st.byID, st.line[0])
		st.line = append(st.line[:0], st.line[1:]...)
	}
}
