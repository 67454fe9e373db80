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
	finishTools  = "tool_calls"
)

// maxChoices bounds the answers of one request, as vLLM does.
const maxChoices = 16_384

// defaultMaxTokens is vLLM's max_tokens of a completion that names none.
const defaultMaxTokens = 16

// generation is the work on one request. Works are pooled; what the engine
// keeps of a request (its call) is not part of them.
type generation struct {
	path       openai.API // that was asked
	api        openai.API // whose body it was: another for /invocations only
	id         string
	model      string // as the answer names it
	adapter    string // "" for the base model
	created    int64
	fault      string // that strikes in the middle, "" for none
	body       []byte
	completion openai.CompletionRequest
	chat       openai.ChatRequest
	response   openai.ResponsesRequest
	generate   openai.GenerateRequest
	embedding  openai.EmbeddingRequest
	rerank     openai.RerankRequest
	form       transcription
	params     *openai.Params
	tokens     []uint32
	prompts    int // their number
	media      []placed
	plan       answerPlan
	history    []openai.Message // what a stored response keeps
	call       *call
	out        []byte
	text       []byte
	ids        []uint32
}

var generations = sync.Pool{New: func() any { return new(generation) }}

// generation is the handler of one of the APIs.
func (s *Server) generation(api openai.API) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.handlers.Done()
		n := s.number.Add(1)
		g := generations.Get().(*generation)
		defer g.recycle()
		g.path, g.api, g.created, g.call = api, api, time.Now().Unix(), nil
		g.fault = s.cfg.Faults.pick(s.cfg.Seed, n)

		var fail *apiError
		if g.body, fail = readBody(r, g.body); fail != nil {
			writeError(w, fail)
			return
		}
		if g.fault != "" && s.serveFault(w, r, g.fault) {
			return
		}
		if fail := s.prepare(g, r, n); fail != nil {
			s.discard(g)
			writeError(w, fail)
			return
		}
		s.engine.submit(g.call)
		switch {
		case g.api == openai.Embeddings:
			s.answerEmbeddings(w, r, g)
		case g.api == openai.Rerank:
			s.answerRanking(w, r, g)
		case g.params.Stream:
			s.stream(w, r, g)
		default:
			s.answer(w, r, g)
		}
	}
}

// idPrefixes are what the ids of answers begin with.
var idPrefixes = map[openai.API]string{
	openai.Completions: "cmpl-", openai.Chat: "chatcmpl-", openai.Responses: "resp_", openai.Embeddings: "embd-",
	openai.Rerank: "rerank-", openai.Transcriptions: "trsc-", openai.Invocations: "gen-",
}

// responseID is the id of an answer: the client's X-Request-Id, or the
// request's number.
func responseID(api openai.API, r *http.Request, n uint64) string {
	prefix := idPrefixes[api]
	if h := r.Header["X-Request-Id"]; len(h) > 0 && h[0] != "" {
		return prefix + h[0]
	}
	digits := strconv.FormatUint(n, 16)
	return prefix + "0000000000000000"[min(16, len(digits)):] + digits
}

// prepare parses and checks a request and makes its call.
func (s *Server) prepare(g *generation, r *http.Request, n uint64) *apiError {
	if fail := s.parse(g, r); fail != nil {
		return fail
	}
	g.id = responseID(g.api, r, n)
	if g.path == openai.Invocations || g.path == openai.InvocationsStream {
		if h := r.Header.Get("X-Amzn-SageMaker-Adapter-Identifier"); h != "" {
			g.params.Model = h
		}
	}
	if fail := s.resolveModel(g); fail != nil {
		return fail
	}
	if fail := checkParams(g.params); fail != nil {
		return fail
	}
	g.call = &call{bell: make(chan struct{}, 1)}
	g.media, g.plan, g.history = g.media[:0], answerPlan{}, nil
	switch g.api {
	case openai.Completions:
		return s.prepareCompletion(g)
	case openai.Chat:
		return s.prepareChat(g)
	case openai.Responses:
		return s.prepareResponse(g)
	case openai.Embeddings:
		return s.prepareEmbeddings(g)
	case openai.Rerank:
		return s.prepareRanking(g)
	case openai.Transcriptions:
		return s.prepareTranscription(g)
	}
	return s.prepareGenerate(g)
}

// parse reads the body into the request of its API.
func (s *Server) parse(g *generation, r *http.Request) *apiError {
	if g.path == openai.Transcriptions {
		g.params = &g.form.Params
		return parseTranscription(g.body, r.Header.Get("Content-Type"), &g.form)
	}
	if fail := checkContent(r); fail != nil {
		return fail
	}
	var err error
	switch g.path {
	case openai.Invocations, openai.InvocationsStream:
		if g.api, err = openai.InvocationShape(g.body); err != nil {
			return badRequest("%v", err)
		}
	}
	switch g.api {
	case openai.Completions:
		err, g.params = openai.ParseCompletion(g.body, &g.completion), &g.completion.Params
	case openai.Chat:
		err, g.params = openai.ParseChat(g.body, &g.chat), &g.chat.Params
	case openai.Responses:
		err, g.params = openai.ParseResponses(g.body, &g.response), &g.response.Params
	case openai.Embeddings:
		err, g.params = openai.ParseEmbedding(g.body, &g.embedding), &g.embedding.Params
	case openai.Rerank:
		err, g.params = openai.ParseRerank(g.body, &g.rerank), &g.rerank.Params
	case openai.Invocations:
		err, g.params = openai.ParseGenerate(g.body, &g.generate), &g.generate.Params
	default:
		return badRequest("Cannot find suitable handler for request. Expected one of: completions, chat, responses, embeddings, rerank, generate")
	}
	if err != nil {
		return badRequest("%v", err)
	}
	if g.path == openai.InvocationsStream {
		g.params.Stream = true
	}
	return nil
}

// discard gives back what a refused request had taken already.
func (s *Server) discard(g *generation) {
	if g.call == nil {
		return
	}
	for _, q := range g.call.seqs {
		s.engine.recycle(q)
	}
}

func (s *Server) prepareCompletion(g *generation) *apiError {
	prompts := g.completion.Prompts
	if len(prompts) == 0 {
		return badRequest("You must pass at least one prompt")
	}
	if int64(len(prompts))*g.params.N > maxChoices {
		return badRequest("n times the number of prompts must be at most %d", maxChoices)
	}
	if fail := s.planAnswer(g, nil); fail != nil {
		return fail
	}
	return s.addPrompts(g, prompts)
}

// addPrompts adds the sequences of prompts of either kind.
func (s *Server) addPrompts(g *generation, prompts []openai.Prompt) *apiError {
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

func (s *Server) prepareGenerate(g *generation) *apiError {
	if fail := s.planAnswer(g, nil); fail != nil {
		return fail
	}
	g.params.ReturnTokenIDs = g.params.Stream // its events have them
	return s.addPrompts(g, []openai.Prompt{{Text: g.generate.Inputs}})
}

func (s *Server) prepareChat(g *generation) *apiError {
	if len(g.chat.Messages) == 0 {
		return badRequest("You must pass at least one message")
	}
	if fail := s.planAnswer(g, &g.chat); fail != nil {
		return fail
	}
	return s.addChat(g, &g.chat)
}

// addChat adds the sequences of a chat's messages.
func (s *Server) addChat(g *generation, chat *openai.ChatRequest) *apiError {
	for i := range chat.Messages {
		m := &chat.Messages[i]
		if m.Role == "" {
			return badRequest("messages[%d].role: Field required", i)
		}
		if m.Parts > len(m.Media) {
			return badRequest("messages[%d].content: Unknown part type, expected text, image_url, input_audio, audio_url, video_url or file", i)
		}
	}
	g.prompts = 1
	var fail *apiError
	if g.tokens, g.media, fail = s.chatTokens(g.tokens[:0], g.media[:0], chat); fail != nil {
		return fail
	}
	return s.addPrompt(g, g.tokens)
}

// maxKept is the largest buffer that a work keeps for another request, in bytes.
const maxKept = 1 << 20

// recycle gives the work back for another request, without its call, which the
// engine may still hold, and without what would keep much memory alive.
func (g *generation) recycle() {
	g.call = nil
	if cap(g.body) > maxKept || cap(g.out) > maxKept || cap(g.text) > maxKept || cap(g.tokens) > maxKept/4 {
		return
	}
	g.form, g.history, g.plan = transcription{}, nil, answerPlan{}
	generations.Put(g)
}
