package simserver

import (
	"fmt"
	"net/http"

	"retrace/openai"
)

// apiError is an error that a request gets as its answer.
type apiError struct {
	status  int
	kind    string
	message string
}

// Error is the message.
func (e *apiError) Error() string { return e.message }

// badRequest is a 400 as vLLM words it.
func badRequest(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "BadRequestError", fmt.Sprintf(format, args...)}
}

// notFound is a 404 as vLLM words it.
func notFound(format string, args ...any) *apiError {
	return &apiError{http.StatusNotFound, "NotFoundError", fmt.Sprintf(format, args...)}
}

// writeError answers with an error object.
func writeError(w http.ResponseWriter, e *apiError) {
	writeJSON(w, e.status, openai.AppendError(nil, e.kind, e.message, e.status))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeBody(w, status, contentJSON, body)
}

func writeBody(w http.ResponseWriter, status int, content []string, body []byte) {
	w.Header()["Content-Type"] = content
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away needs no answer
}

// Header values, made once: a map entry costs an allocation otherwise.
var (
	contentJSON   = []string{"application/json"}
	contentEvents = []string{"text/event-stream; charset=utf-8"}
	contentHTML   = []string{"text/html; charset=utf-8"}
	contentText   = []string{"text/plain; version=0.0.4; charset=utf-8"}
	contentPlain  = []string{"text/plain; charset=utf-8"}
	chunked       = []string{"chunked"}
)
