package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Channel says what kind of output a chunk brought.
type Channel uint8

// The channels of an answer. A refusal's text is content.
const (
	Content Channel = iota
	Reasoning
	ToolCall
	channels
)

// Output is one output of a stream: one choice's share of one event.
type Output struct {
	Choice  int
	Channel Channel
	// Tokens is how many tokens it brought, tokens of earlier events without
	// text included: as the event says (token_ids), or by the difference of the
	// running usage since the last output. Unknown where the server tells
	// neither, or where a running usage is shared by several choices' outputs.
	Tokens int64
}

// Verdict says how an answer ended.
type Verdict uint8

// The verdicts on an answer.
const (
	Whole       Verdict = iota // it reached its end
	StreamError                // it carried an error object
	Truncated                  // it ended before its end
	BadResponse                // it is not the API's answer
)

// Stream adds up one answer from its events. The zero Stream is not ready;
// use NewStream, or Reset.
type Stream struct {
	// Capture asks for the text and the tool calls of choice 0.
	Capture bool
	// API, where set, is the one that was asked: an answer of another shape is
	// not its answer.
	API API

	// Usage is the last usage that the stream told, HasUsage whether there was one.
	Usage    Usage
	HasUsage bool
	// Times are what the stream told last of the server's own times.
	Times ServerTimes
	// Chunks counts the outputs by Channel, all choices.
	Chunks [channels]int64
	// Results is how many embeddings or ranked documents a whole answer held.
	Results int
	// Done says that [DONE] or another terminal event came.
	Done bool

	chunk   Piece
	outputs []Output
	choices []choice
	text    []byte
	tools   []ToolDelta

	events  int64
	known   int64 // events that were a chunk of the API
	running int64 // completion tokens so far where each chunk tells, else Unknown
	failure string
	failed  bool
	broken  string
	short   bool // what is broken is a whole answer that ends within its JSON
}

type choice struct {
	index  int
	finish string
	held   int64 // tokens that came without text
}

// NewStream is a Stream at its start.
func NewStream() *Stream {
	s := &Stream{}
	s.Reset()
	return s
}

// Reset makes s ready for another answer; it keeps its memory, Capture and API.
func (s *Stream) Reset() {
	*s = Stream{
		Capture: s.Capture, API: s.API, Usage: NoUsage(), Times: NoTimes(), chunk: s.chunk,
		outputs: s.outputs[:0], choices: s.choices[:0], text: s.text[:0], tools: s.tools[:0],
	}
}

// Feed takes in one event and says what outputs it brought: none for pings,
// role-only and empty chunks, usage, and everything after [DONE]. The slice is
// valid until the next call.
func (s *Stream) Feed(ev Event) []Output {
	s.outputs = s.outputs[:0]
	data := bytes.TrimSpace(ev.Data)
	if string(ev.Type) == "error" {
		s.fail(eventError(data))
		return nil
	}
	if len(data) == 0 || s.Done {
		return nil
	}
	if string(data) == "[DONE]" {
		s.Done = s.API != Responses // which has a terminal event of its own
		return nil
	}
	err := s.chunk.Parse(data)
	if err != nil && ev.Cut { // its rest never came
		return nil
	}
	s.events++
	if err != nil {
		if s.broken == "" {
			s.broken = fmt.Sprintf("event %d: %v: found %q", s.events, err, Snippet(data))
		}
		return nil
	}
	s.take(&s.chunk)
	return s.outputs
}

// FeedJSON takes in a whole answer that came as plain JSON, where no stream
// was sent. Its content counts, but has no times.
func (s *Stream) FeedJSON(body []byte) {
	s.events++
	if err := s.chunk.Parse(body); err != nil {
		s.broken = fmt.Sprintf("%v: found %q", err, Snippet(body))
		s.short = endsWithin(body)
		return
	}
	s.take(&s.chunk)
	if s.chunk.HasChoices {
		s.Done = true
	}
}

// endsWithin says whether a text begins a JSON value and ends within it.
func endsWithin(body []byte) bool {
	var value json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(body)).Decode(&value), io.ErrUnexpectedEOF)
}

func (s *Stream) take(c *Piece) {
	if c.HasError {
		s.fail(c.Error)
		return
	}
	if s.API != "" && c.Shape != ShapeNone && !c.Shape.answers(s.API) {
		s.outputs = s.outputs[:0]
		if s.broken == "" {
			s.broken = fmt.Sprintf("event %d: found %s, which is no answer of the %s API", s.events, c.Shape, s.API)
		}
		return
	}
	if c.Shape != ShapeNone || c.HasUsage && s.choicesOnly() {
		s.known++
	}
	s.outputs = s.outputs[:0]
	for i := range c.Parts {
		s.part(&c.Parts[i])
	}
	if c.HasUsage {
		s.Usage, s.HasUsage = s.Usage.merge(c.Usage), true
	}
	s.Times = s.Times.merge(c.Times)
	s.Results += c.Results
	s.count(c)
	s.Done = s.Done || c.Over
}

// choicesOnly says whether the API is one whose chunks may hold a usage alone.
func (s *Stream) choicesOnly() bool { return s.API == "" || ShapeChoices.answers(s.API) }

func (s *Stream) part(p *Part) {
	ch := s.choice(p.Index)
	if p.FinishReason != nil {
		ch.finish = Text(p.FinishReason)
		if ch.finish == "error" || ch.finish == "abort" { // vLLM, LMI: the engine gave up
			s.fail("finish_reason " + ch.finish)
		}
	}
	channel, tokens := Content, p.Tokens
	if tokens != Unknown {
		tokens += ch.held
	}
	ch.held = 0
	switch {
	case p.Content != nil || p.Refusal != nil:
	case p.Reasoning != nil:
		channel = Reasoning
	case len(p.Tools) > 0:
		channel = ToolCall
	default: // tokens that gave no text yet are the next output's
		ch.held = max(tokens, 0)
		return
	}
	s.Chunks[channel]++
	s.outputs = append(s.outputs, Output{Choice: p.Index, Channel: channel, Tokens: tokens})
	if s.Capture && p.Index == 0 {
		s.text = append(s.text, Text(p.Content)...)
		for _, t := range p.Tools {
			s.joinTool(t)
		}
	}
}

// count sets the outputs' tokens from the running usage.
func (s *Stream) count(c *Piece) {
	n := Unknown
	if c.HasUsage {
		n = c.Usage.Completion
	}
	if len(s.outputs) == 0 { // its tokens are the next output's
		return
	}
	if len(s.outputs) == 1 && s.outputs[0].Tokens == Unknown && n != Unknown && s.running != Unknown && n >= s.running {
		s.outputs[0].Tokens = n - s.running
	}
	s.running = n
}

func (s *Stream) choice(index int) *choice {
	for i := range s.choices {
		if s.choices[i].index == index {
			return &s.choices[i]
		}
	}
	s.choices = append(s.choices, choice{index: index})
	return &s.choices[len(s.choices)-1]
}

func (s *Stream) joinTool(t ToolDelta) {
	for i := range s.tools {
		if s.tools[i].Index == t.Index {
			s.tools[i].Name += t.Name
			s.tools[i].Arguments += t.Arguments
			return
		}
	}
	s.tools = append(s.tools, t)
}

func (s *Stream) fail(message string) {
	if s.failed {
		return
	}
	s.failed = true
	s.failure = message
	if message == "" {
		s.failure = "no message"
	}
}

// Verdict judges the answer once its body has ended, with a nil error for a
// clean end, and gives the sentence that belongs to it: the reason of a
// failure, or a note on a Whole answer, mostly empty.
func (s *Stream) Verdict(end error) (Verdict, string) {
	switch {
	case s.failed:
		return StreamError, "server sent an error: " + s.failure
	case s.short:
		return Truncated, "the answer ended within its JSON: " + s.broken
	case s.broken != "":
		return BadResponse, s.broken
	case s.known == 0 && (s.Done || s.events > 0):
		return BadResponse, "no event held an answer"
	case s.Done:
		return Whole, s.unfinished()
	case s.finished() && end != nil:
		return Whole, fmt.Sprintf("the connection broke after finish_reason: %v", end)
	case s.finished():
		return Whole, "no [DONE] after finish_reason"
	case end != nil:
		return Truncated, fmt.Sprintf("the answer broke off after %d outputs: %v", s.OutputChunks(), end)
	}
	last := "finish_reason or [DONE]"
	if s.API == Responses || s.chunk.Shape == ShapeResponse {
		last = "response.completed or another terminal event"
	}
	return Truncated, fmt.Sprintf("the answer ended after %d outputs without %s", s.OutputChunks(), last)
}

func (s *Stream) finished() bool { return len(s.choices) > 0 && s.open() == 0 }

// open is the number of choices without a finish_reason.
func (s *Stream) open() (n int) {
	for i := range s.choices {
		if s.choices[i].finish == "" {
			n++
		}
	}
	return n
}

// unfinished is the note on a whole answer some of whose choices have a
// finish_reason and others none.
func (s *Stream) unfinished() string {
	if n := s.open(); n > 0 && n < len(s.choices) {
		return fmt.Sprintf("%d of %d choices have no finish_reason", n, len(s.choices))
	}
	return ""
}

// OutputChunks is the number of outputs, all channels and choices.
func (s *Stream) OutputChunks() int64 {
	var n int64
	for _, c := range s.Chunks {
		n += c
	}
	return n
}

// FinishReason is that of the lowest choice, "" where none came.
func (s *Stream) FinishReason() string {
	reason, lowest := "", -1
	for _, c := range s.choices {
		if lowest < 0 || c.index < lowest {
			reason, lowest = c.finish, c.index
		}
	}
	return reason
}

// Take takes text as the answer's content, where it came as nothing else.
func (s *Stream) Take(text []byte) { s.text = append(s.text, text...) }

// Text is the content of choice 0, where Capture asked for it; valid until Reset.
func (s *Stream) Text() []byte { return s.text }

// ToolCalls are the tool calls of choice 0, fragments joined, where Capture
// asked for them; valid until Reset.
func (s *Stream) ToolCalls() []ToolDelta { return s.tools }

// eventError is the message of an event of type "error", whatever its data.
func eventError(data []byte) string {
	var c Piece
	if c.parseSlow(data) == nil && c.HasError {
		return c.Error
	}
	if obj, ok := asObject(data); ok {
		return errorText(obj)
	}
	return Snippet(data)
}

// Snippet is the start of an answer, at most 200 bytes of it, for a message.
func Snippet(b []byte) string {
	const most = 200
	b = bytes.TrimSpace(b)
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
