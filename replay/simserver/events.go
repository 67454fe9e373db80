package simserver

import (
	"retrace/openai"
)

// eventWriter writes the stream of one API.
type eventWriter interface {
	// begin appends what stands before all choices.
	begin(dst []byte) []byte
	// open appends what opens a choice.
	open(dst []byte, c *openai.Chunk) []byte
	// chunk appends one token, the i-th of its choice.
	chunk(dst []byte, c *openai.Chunk, i int) []byte
	// end appends what follows the last token; done says whether the stream's
	// terminal event is part of that.
	end(dst []byte, done bool) []byte
}

// newEvents makes the writer of a request's stream.
func (s *Server) newEvents(g *generation) eventWriter {
	switch g.api {
	case openai.Responses:
		return &responseEvents{s: s, g: g, w: s.responsesWriter(g)}
	case openai.Transcriptions:
		return &transcriptEvents{g: g, head: openai.TranscriptHead(g.id, g.model, g.created)}
	case openai.Invocations:
		return &generateEvents{g: g}
	}
	return &choiceEvents{s: s, g: g, w: openai.NewResponseWriter(g.api, g.id, g.model, g.created)}
}

// choiceEvents is the stream of completions and chats.
type choiceEvents struct {
	s *Server
	g *generation
	w *openai.ResponseWriter
}

func (e *choiceEvents) begin(dst []byte) []byte { return dst }

func (e *choiceEvents) open(dst []byte, c *openai.Chunk) []byte {
	if e.g.api == openai.Chat {
		return e.w.AppendRole(dst, c)
	}
	return dst
}

func (e *choiceEvents) chunk(dst []byte, c *openai.Chunk, _ int) []byte {
	return e.w.AppendChunk(dst, c)
}

func (e *choiceEvents) end(dst []byte, done bool) []byte {
	if e.g.params.IncludeUsage {
		dst = e.w.AppendUsage(dst, e.s.tail(e.g))
	}
	if done {
		dst = openai.AppendDone(dst)
	}
	return dst
}

// transcriptEvents is the stream of a transcription.
type transcriptEvents struct {
	g    *generation
	head []byte
}

func (e *transcriptEvents) begin(dst []byte) []byte                 { return dst }
func (e *transcriptEvents) open(dst []byte, _ *openai.Chunk) []byte { return dst }

func (e *transcriptEvents) chunk(dst []byte, c *openai.Chunk, _ int) []byte {
	return openai.AppendTranscriptChunk(dst, e.head, c)
}

func (e *transcriptEvents) end(dst []byte, done bool) []byte {
	if e.g.params.IncludeUsage {
		u := e.g.usage()
		dst = openai.AppendTranscriptUsage(dst, e.head, &u)
	}
	if done {
		dst = openai.AppendDone(dst)
	}
	return dst
}

// generateEvents is the stream of TGI: no event but those of the tokens, the
// last of which has the whole text.
type generateEvents struct {
	g    *generation
	text []byte
}

func (e *generateEvents) begin(dst []byte) []byte                 { return dst }
func (e *generateEvents) open(dst []byte, _ *openai.Chunk) []byte { return dst }
func (e *generateEvents) end(dst []byte, _ bool) []byte           { return dst }

func (e *generateEvents) chunk(dst []byte, c *openai.Chunk, i int) []byte {
	e.text = append(e.text, c.Text...)
	if c.Finish == "" || e.g.fault == "no_done" {
		return openai.AppendGeneratedToken(dst, i+1, c.TokenIDs[0], c.Text, nil)
	}
	last := e.g.generated(c.Finish, c.Stop, i+1)
	last.Text = e.text
	return openai.AppendGeneratedToken(dst, i+1, c.TokenIDs[0], c.Text, &last)
}

// generated is what TGI says at the end of an answer of so many tokens.
func (g *generation) generated(finish, stop string, tokens int) openai.Generated {
	names := map[string]string{finishLength: "length", finishStop: "eos_token"}
	d := openai.Generated{Finish: names[finish], Tokens: int64(tokens), Prefill: int64(g.call.seqs[0].promptLen), Details: g.generate.Details}
	if stop != "" {
		d.Finish = "stop_sequence"
	}
	return d
}

// tail is the end of an answer of completions or chats.
func (s *Server) tail(g *generation) *openai.Tail {
	t := &openai.Tail{Usage: g.usage(), Fingerprint: fingerprint}
	if s.cfg.RequestMetrics && len(g.call.seqs) == 1 { // as vLLM, of one sequence only
		at := &g.call.seqs[0].times
		s.engine.mu.Lock()
		t.Times = &openai.ServerTimes{Queue: at.scheduled.Sub(at.arrived), Prefill: at.first.Sub(at.scheduled), Decode: at.last.Sub(at.first)}
		s.engine.mu.Unlock()
	}
	return t
}
