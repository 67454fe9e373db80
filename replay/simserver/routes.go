package simserver

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"retrace/openai"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 20

// version is what /version says: the vLLM whose API is imitated.
const version = "0.32.0"

// routes binds the API. The mux itself answers 404 and 405.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, api := range openai.APIs() {
		mux.HandleFunc("POST "+api.Path(), s.generation(api))
	}
	for _, path := range []string{"/rerank", "/v2/rerank"} {
		mux.HandleFunc("POST "+path, s.generation(openai.Rerank))
	}
	mux.HandleFunc("GET /v1/models", s.models)
	for _, path := range []string{"GET /health", "GET /ping", "POST /ping"} {
		mux.HandleFunc(path, func(http.ResponseWriter, *http.Request) {})
	}
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, []byte(`{"version":"`+version+`"}`))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = contentText
		_, _ = w.Write(s.engine.metrics())
	})
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /detokenize", s.detokenize)
	return mux
}

// tokenizeAnswer is the answer of /tokenize.
type tokenizeAnswer struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []uint32 `json:"tokens"`
	TokenStrs   []string `json:"token_strs"`
}

// tokenize turns a prompt, or the messages of a chat, into tokens.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r, nil)
	if err != nil {
		writeError(w, err)
		return
	}
	var q struct {
		Prompt          *string         `json:"prompt"`
		Messages        json.RawMessage `json:"messages"`
		ReturnTokenStrs bool            `json:"return_token_strs"`
		AddSpecial      *bool           `json:"add_special_tokens"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		writeError(w, badRequest("%v", err))
		return
	}
	a := tokenizeAnswer{MaxModelLen: s.cfg.MaxModelLen, Tokens: []uint32{}}
	switch {
	case q.Prompt != nil:
		if q.AddSpecial == nil || *q.AddSpecial {
			a.Tokens = s.tok.head(a.Tokens, s.cfg.BOSTokens)
		}
		a.Tokens = s.tok.append(a.Tokens, *q.Prompt)
	case q.Messages != nil:
		var chat openai.ChatRequest
		if err := openai.ParseChat(body, &chat); err != nil {
			writeError(w, badRequest("%v", err))
			return
		}
		var fail *apiError
		if a.Tokens, _, fail = s.chatTokens(a.Tokens, nil, &chat); fail != nil {
			writeError(w, fail)
			return
		}
	default:
		writeError(w, badRequest("either prompt or messages must be given"))
		return
	}
	a.Count = len(a.Tokens)
	if q.ReturnTokenStrs {
		for _, id := range a.Tokens {
			a.TokenStrs = append(a.TokenStrs, s.tok.word(id))
		}
	}
	answer(w, a)
}

// detokenize turns tokens into text that tokenises to the same tokens.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r, nil)
	if err != nil {
		writeError(w, err)
		return
	}
	var q struct {
		Tokens []uint32 `json:"tokens"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		writeError(w, badRequest("%v", err))
		return
	}
	if err := s.checkTokens(q.Tokens); err != nil {
		writeError(w, err)
		return
	}
	var text []byte
	for i, id := range q.Tokens {
		if i > 0 {
			text = append(text, ' ')
		}
		text = append(text, s.tok.word(id)...)
	}
	answer(w, map[string]string{"prompt": string(text)})
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		writeError(w, &apiError{http.StatusInternalServerError, "InternalServerError", err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// readBody reads a request's body into buf's memory.
func readBody(r *http.Request, buf []byte) ([]byte, *apiError) {
	if n := r.ContentLength; n > maxBody {
		return buf, tooLarge()
	} else if n >= int64(cap(buf)) {
		// One more, to see the end without growing; of a large body the client
		// must first send some.
		buf = make([]byte, 0, min(n+1, maxKept))
	}
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if len(buf) > maxBody {
			return buf, tooLarge()
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, badRequest("read body: %v", err)
		}
	}
}

// unsupported is a 415 as vLLM words it.
func unsupported(expected string) *apiError {
	return &apiError{http.StatusUnsupportedMediaType, "BadRequestError", "Unsupported Media Type: Only '" + expected + "' is allowed"}
}

// checkContent refuses a body that says that it is no JSON. One that says
// nothing is taken.
func checkContent(r *http.Request) *apiError {
	h := r.Header["Content-Type"]
	if len(h) == 0 || h[0] == "application/json" {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(h[0]); err != nil || kind != "application/json" {
		return unsupported("application/json")
	}
	return nil
}

func tooLarge() *apiError {
	return &apiError{http.StatusRequestEntityTooLarge, "BadRequestError", "the body is larger than " + strconv.Itoa(maxBody) + " bytes"}
}
