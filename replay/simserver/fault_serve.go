package simserver

import (
	"net"
	"net/http"

	"retrace/openai"
)

// brokenMessage is what the faults with an error object say.
const brokenMessage = "fault injected by the simulated server"

// serveFault answers with a fault that strikes at once and says whether it did.
func (s *Server) serveFault(w http.ResponseWriter, r *http.Request, kind string) bool {
	k, ok := faultKinds[kind]
	if !ok || k.stage != atOnce {
		return false
	}
	switch kind {
	case "reset", "close":
		closeConn(w, kind == "reset")
	case "hang":
		s.hang(r)
	case "html":
		w.Header()["Content-Type"] = contentHTML
		_, _ = w.Write([]byte("<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"))
	case "error_body":
		writeJSON(w, http.StatusOK, openai.AppendError(nil, "InternalServerError", brokenMessage, http.StatusInternalServerError))
	default:
		serveStatus(w, k.status)
	}
	return true
}

// serveStatus answers with a plain HTTP error.
func serveStatus(w http.ResponseWriter, status int) {
	switch status {
	case http.StatusFound:
		w.Header().Set("Location", "/elsewhere")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	writeError(w, &apiError{status, http.StatusText(status), brokenMessage})
}

// closeConn closes the client's connection under the response, with a reset
// or a normal end.
func closeConn(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // HTTP/2 has no connection to take: abort the stream
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // without it the close is merely not a reset
	}
	_ = conn.Close()
}
