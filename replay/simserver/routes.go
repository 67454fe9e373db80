package simserver

import (
	"encoding/json"
	"errors"
	"io"
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
	mux.HandleFunc("POST /v1/completions", s.generation(openai.Completions))
	mux.HandleFunc("POST /v1/chat/completions", s.generation(openai.Chat))
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
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

// models lists the one model.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	b := openai.AppendQuoted([]byte(`{"object":"list","data":[{"id":`), s.cfg.Model)
	b = append(b, `,"object":"model","created":`...)
	b = strconv.AppendInt(b, s.started.Unix(), 10)
	b = openai.AppendQuoted(append(b, `,"owned_by":"retrace","root":`...), s.cfg.Model)
	b = append(b, `,"parent":null,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(s.cfg.MaxModelLen), 10)
	writeJSON(w, http.StatusOK, append(b, `}]}`...))
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
		a.Tokens = s.chatTokens(a.Tokens, &chat)
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
		buf = make([]byte, 0, n+1) // one more, to see the end without growing
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

func tooLarge() *apiError {
	return &apiError{http.StatusRequestEntityTooLarge, "BadRequestError", "the body is larger than " + strconv.Itoa(maxBody) + " bytes"}
}
