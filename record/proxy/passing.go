package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// passing is the client's side of an exchange. It keeps net/http from adding
// headers that the server did not send.
type passing struct {
	http.ResponseWriter
	body *bodyEnd // nil where there is none, or in HTTP/2
}

// Unwrap lets http.ResponseController find what is within.
func (w *passing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader is http.ResponseWriter's. A connection whose request is answered
// before it was read serves no other: what net/http reads after a handler that
// is full duplex ends in a panic where it finds the body's end.
func (w *passing) WriteHeader(status int) {
	h := w.Header()
	if status >= 200 {
		for _, name := range [...]string{"Content-Type", "Date"} {
			if _, ok := h[name]; !ok {
				h[name] = nil
			}
		}
		if w.body != nil && !w.body.seen.Load() {
			h.Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// bodyEnd is a request's body that notes whether its end was seen.
type bodyEnd struct {
	io.ReadCloser
	seen atomic.Bool
}

// Read is io.Reader's.
func (b *bodyEnd) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.seen.Store(true)
	}
	return n, err
}
