package simserver

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"retrace/openai"
)

// The finish reasons.
const (
	finishLength = "length"
	finishStop   = "stop"
)

// maxChoices bounds the answers of one request, as vLLM does.
const maxChoices = 16_384

// defaultMaxTokens is vLLM's max_tokens of a completion that names none.
const defaultMaxTokens = 16

// generation is the work on one generation request. Works are pooled; what
// the engine keeps of a request (its call) is not part of them.
type generation struct {
	api        openai.API
	id         string
	created    int64
	fault      string // that strikes in the middle, "" for none
	body       []byte
	completion openai.CompletionRequest
	chat       openai.ChatRequest
	params     *openai.Params
	tokens     []uint32
	prompts    int // their number
	call       *call
	out        []byte
	text       []byte
	ids        []uint32
}

var generations = sync.Pool{New: func() any { return new(generation) }}

// generation is the handler of one of the two generation APIs.
func (s *Server) generation(api openai.API) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.handlers.Done()
		n := s.number.Add(1)
		g := generations.Get().(*generation)
		defer g.recycle()
		g.api, g.created, g.call = api, time.Now().Unix(), nil
		g.fault = s.cfg.Faults.pick(s.cfg.Seed, n)
		g.id = responseID(api, r, n)

		var fail *apiError
		if g.body, fail = readBody(r, g.body); fail != nil {
			writeError(w, fail)
			return
		}
		if g.fault != "" && s.serveFault(w, r, g.fault) {
			return
		}
		if fail := s.prepare(g); fail != nil {
			writeError(w, fail)
			return
		}
		s.engine.submit(g.call)
		if g.params.Stream {
			s.stream(w, r, g)
		} else {
			s.answer(w, r, g)
		}
	}
}

// responseID is the id of an answer: the client's X-Request-Id, or the
// request's number.
func responseID(api openai.API, r *http.Request, n uint64) string {
	prefix := "cmpl-"
	if api == openai.Chat {
		prefix = "chatcmpl-"
	}
	if h := r.Header["X-Request-Id"]; len(h) > 0 && h[0] != "" {
		return prefix + h[0]
	}
	digits := strconv.FormatUint(n, 16)
	return prefix + "0000000000000000"[min(16, len(digits)):] + digits
}

// prepare parses and checks a request and makes its call.
func (s *Server) prepare(g *generation) *apiError {
	var err error
	if g.api == openai.Chat {
		err, g.params = openai.ParseChat(g.body, &g.chat), &g.chat.Params
	} else {
		err, g.params = openai.ParseCompletion(g.body, &g.completion), &g.completion.Params
	}
	if err != nil {
		return badRequest("%v", err)
	}
	if m := g.params.Model; m != "" && m != s.cfg.Model {
		return notFound("The model `%s` does not exist.", m)
	}
	if fail := checkParams(g.params); fail != nil {
		return fail
	}
	g.call = &call{bell: make(chan struct{}, 1)}
	if g.api == openai.Chat {
		return s.prepareChat(g)
	}
	return s.prepareCompletion(g)
}

func checkParams(p *openai.Params) *apiError {
	switch {
	case p.MaxTokens == 0:
		return badRequest("max_tokens must be at least 1, got 0.")
	case p.MaxTokens != openai.Unset && p.MinTokens > p.MaxTokens:
		return badRequest("min_tokens must be less than or equal to max_tokens=%d, got %d.", p.MaxTokens, p.MinTokens)
	case p.N < 1 || p.N > maxChoices:
		return badRequest("n must be from 1 to %d, got %d.", maxChoices, p.N)
	case (p.IncludeUsage || p.ContinuousUsage) && !p.Stream:
		return badRequest("Stream options can only be defined when `stream=True`.")
	}
	return nil
}

func (s *Server) prepareCompletion(g *generation) *apiError {
	prompts := g.completion.Prompts
	if len(prompts) == 0 {
		return badRequest("You must pass at least one prompt")
	}
	if int64(len(prompts))*g.params.N > maxChoices {
		return badRequest("n times the number of prompts must be at most %d", maxChoices)
	}
	g.prompts = len(prompts)
	for i := range prompts {
		tokens := prompts[i].Tokens
		if !prompts[i].IsTokens {
			tokens = s.tok.head(g.tokens[:0], s.cfg.BOSTokens)
			tokens = s.tok.append(tokens, prompts[i].Text)
			g.tokens = tokens
		}
		if fail := s.checkTokens(tokens); fail != nil {
			return fail
		}
		if fail := s.addPrompt(g, tokens); fail != nil {
			return fail
		}
	}
	return nil
}

func (s *Server) prepareChat(g *generation) *apiError {
	if len(g.chat.Messages) == 0 {
		return badRequest("You must pass at least one message")
	}
	for i := range g.chat.Messages {
		if m := &g.chat.Messages[i]; m.Parts > 0 {
			return badRequest("%s is not a multimodal model", s.cfg.Model)
		} else if m.Role == "" {
			return badRequest("messages[%d].role: Field required", i)
		}
	}
	g.prompts = 1
	g.tokens = s.chatTokens(g.tokens[:0], &g.chat)
	return s.addPrompt(g, g.tokens)
}

// chatTokens appends the tokens of a chat: the special ones, the tools, then
// the messages' words. Roles cost nothing beyond the template's constant.
func (s *Server) chatTokens(dst []uint32, chat *openai.ChatRequest) []uint32 {
	dst = s.tok.head(dst, s.cfg.BOSTokens+s.cfg.ChatTemplateTokens)
	if chat.Tools != nil {
		dst = s.tok.append(dst, string(chat.Tools))
	}
	for i := range chat.Messages {
		dst = s.tok.append(dst, chat.Messages[i].Content)
	}
	return dst
}

func (s *Server) checkTokens(tokens []uint32) *apiError {
	for _, id := range tokens {
		if id >= s.tok.vocab {
			return badRequest("Token id %d is out of vocabulary", id)
		}
	}
	return nil
}

// addPrompt adds the sequences of one prompt to the call.
func (s *Server) addPrompt(g *generation, tokens []uint32) *apiError {
	maxTokens, target, finish, fail := s.outputLength(g, len(tokens))
	if fail != nil {
		return fail
	}
	chain := s.engine.chain()
	if g.params.CacheSalt != "" {
		if err := chain.SetExtra([]any{"cache_salt", g.params.CacheSalt}); err != nil {
			return badRequest("%v", err)
		}
	}
	hashes := make([]uint64, 0, (len(tokens)+min(target, 1024))/s.cfg.BlockSize+1)
	first := min(len(tokens), s.cfg.BlockSize)
	hashes = chain.Append(hashes, tokens[:first])
	if first == s.cfg.BlockSize {
		_ = chain.SetExtra() // the salt is in the first block only
	}
	hashes = chain.Append(hashes, tokens[first:])
	seed := chain.Event()
	for _, id := range tokens[len(tokens)-chain.Pending():] {
		seed = (seed ^ uint64(id)) * 0x9e3779b97f4a7c15
	}
	for i := range int(g.params.N) {
		q := &sequence{call: g.call, index: len(g.call.seqs), promptLen: len(tokens), target: target,
			maxTokens: maxTokens, choices: int(g.params.N), finish: finish, textLen: -1, seed: seed + uint64(i)*0xd1342543de82ef95,
			hashes: hashes, chain: chain}
		if i > 0 {
			q.hashes = append(make([]uint64, 0, cap(hashes)), hashes...)
			q.chain = s.engine.chain()
			q.chain.CopyFrom(chain)
		}
		if g.params.ReturnTokenIDs {
			q.promptIDs = append([]uint32{}, tokens...)
		}
		q.times.arrived = time.Now()
		q.cached.Store(-1)
		s.applyStop(g, q)
		g.call.seqs = append(g.call.seqs, q)
	}
	return nil
}

// outputLength finds how many tokens the answers to a prompt of n tokens may
// have, how many they will have, and why they end there.
func (s *Server) outputLength(g *generation, n int) (maxTokens, target int, finish string, fail *apiError) {
	p := g.params
	room := s.cfg.MaxModelLen - n
	switch {
	case n == 0:
		return 0, 0, "", badRequest("The decoder prompt cannot be empty")
	case room < 1:
		return 0, 0, "", badRequest("This model's maximum context length is %d tokens. However, your prompt contains %d input tokens. "+
			"Please reduce the length of the input prompt.", s.cfg.MaxModelLen, n)
	case p.MaxTokens != openai.Unset && p.MaxTokens > int64(room):
		return 0, 0, "", badRequest("This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains "+
			"%d input tokens, for a total of %d tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
			s.cfg.MaxModelLen, p.MaxTokens, n, p.MaxTokens+int64(n))
	case p.MaxTokens != openai.Unset:
		return int(p.MaxTokens), int(p.MaxTokens), finishLength, nil
	case g.api == openai.Completions:
		m := min(max(defaultMaxTokens, int(min(p.MinTokens, int64(room)))), room)
		return m, m, finishLength, nil
	}
	target = max(s.cfg.AnswerTokens, int(min(p.MinTokens, int64(room))))
	if p.IgnoreEOS || target >= room {
		return room, room, finishLength, nil
	}
	return room, target, finishStop, nil
}

// recycle gives the work back for another request, without its call, which the
// engine may still hold.
func (g *generation) recycle() {
	g.call = nil
	generations.Put(g)
}
