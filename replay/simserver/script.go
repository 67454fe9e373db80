package simserver

import (
	"strconv"
	"unicode/utf8"

	"retrace/openai"
)

// pieceLen is the length of a token of structured text, in bytes: about what
// tokenizers make of JSON.
const pieceLen = 4

// script is the text of an answer that is not free words, a piece a token.
type script struct {
	pieces []string
	call   *openai.Call // of a tool: the first piece is its name
	filled bool         // behind its end white space may follow
}

// newScript cuts a text into pieces of pieceLen bytes, or a little more where
// a character stands across the cut.
func newScript(text string, filled bool) *script {
	sc := &script{filled: filled}
	for len(text) > 0 {
		n := min(pieceLen, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		sc.pieces = append(sc.pieces, text[:n])
		text = text[n:]
	}
	return sc
}

// piece is the text of the i-th token, a space behind the end.
func (sc *script) piece(i int) string {
	if i < len(sc.pieces) {
		return sc.pieces[i]
	}
	return " "
}

// maxScripted bounds the constrained text of one request, in bytes.
const maxScripted = 16 << 20

// answerPlan is what is known of a request's answers before its prompts are.
type answerPlan struct {
	pooled     bool
	lead       int                          // reasoning tokens
	natural    int                          // tokens of an answer that ends of itself, 0 where nothing says so
	constraint func(uint64) (string, error) // makes conforming text from a seed, nil for free words
	filled     bool                         // white space may follow that text
	tool       *tool                        // that is called, nil for none
	scripted   int                          // bytes of constrained text so far
	total      int                          // tokens of all answers so far
}

// planAnswer finds how a request's answers are made: its constraint, the tool
// that it calls, its reasoning. chat is nil where the API has none.
func (s *Server) planAnswer(g *generation, chat *openai.ChatRequest) *apiError {
	if chat != nil {
		g.plan.lead = s.reasoningTokens(&g.params.Thinking)
		called, fail := calledTool(chat)
		if fail != nil {
			return fail
		}
		if called != nil {
			g.plan.tool, g.plan.constraint, g.plan.filled = called, called.arguments, true
			return nil
		}
	}
	text, err := constraintOf(&g.params.Structured)
	if err != nil {
		return badRequest("%v", err)
	}
	g.plan.constraint = text
	kind := g.params.Structured.Kind
	g.plan.filled = kind == openai.JSONSchema || kind == openai.JSONObject
	return nil
}

// effortTokens are the reasoning tokens of each effort.
var effortTokens = map[string]int{"none": 0, "minimal": 16, "low": 32, "medium": 64, "high": 128}

// reasoningTokens is how many tokens of reasoning a request gets.
func (s *Server) reasoningTokens(t *openai.Thinking) int {
	n := s.cfg.ReasoningTokens
	if t.On && n == 0 {
		n = effortTokens["medium"]
	}
	if of, ok := effortTokens[t.Effort]; ok {
		n = of
	}
	if t.Off {
		n = 0
	}
	if t.Budget != openai.Unset {
		n = int(min(int64(n), t.Budget))
	}
	return n
}

// shape gives a sequence the form of its answer: reasoning, a script, the stop
// strings.
func (s *Server) shape(g *generation, q *sequence) *apiError {
	q.lead, q.pooled = min(g.plan.lead, q.target), g.plan.pooled
	if q.pooled {
		s.engine.recycle(q)
		return nil
	}
	if g.plan.constraint != nil {
		if fail := s.applyScript(g, q); fail != nil {
			return fail
		}
	}
	s.applyStop(g, q)
	return nil
}

// applyScript makes the text of a constrained answer and ends the answer
// behind it, unless more tokens are wanted and white space may follow.
func (s *Server) applyScript(g *generation, q *sequence) *apiError {
	text, err := g.plan.constraint(q.seed)
	if err != nil {
		return badRequest("%v", err)
	}
	if g.plan.scripted += len(text); g.plan.scripted > maxScripted {
		return badRequest("the structured outputs of a request may have %d bytes together", maxScripted)
	}
	q.script = newScript(text, g.plan.filled)
	if t := g.plan.tool; t != nil {
		q.script.pieces = append([]string{""}, q.script.pieces...)
		q.script.call = &openai.Call{ID: "chatcmpl-tool-" + strconv.FormatUint(q.seed, 16), Name: t.name}
	}
	natural := q.lead + max(1, len(q.script.pieces))
	want := natural
	if q.script.filled {
		want = max(natural, int(min(g.params.MinTokens, int64(q.maxTokens))))
	}
	switch {
	case natural > q.maxTokens, g.params.IgnoreEOS && q.script.filled:
		q.target, q.finish = q.maxTokens, finishLength
	default:
		q.target, q.finish = want, finishStop
		if q.script.call != nil {
			q.finish = finishTools
		}
	}
	q.lead = min(q.lead, q.target)
	return nil
}
