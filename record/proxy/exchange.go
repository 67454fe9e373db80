package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"retrace/openai"
	"retrace/record"
)

// classClient is the class of a request that its client gave up; the others
// are those of a replay.
const classClient = "client_aborted"

// exchange is one generation request under way.
type exchange struct {
	p           *Proxy
	row         int64
	api         openai.API
	arrival     time.Duration
	contentType string
	session     string // from the header of choice
	request     copied

	status    int // 0 where the server did not answer
	firstByte time.Duration
	lastByte  time.Duration
	end       time.Duration
	answer    *answer
	sent      bool  // the answer's body was passed on to its end
	broken    error // what the answer's body ended with instead
	class     string
}

// copied is the copy of a request's body. The transport reads the body while
// the handler may be done already.
type copied struct {
	mu     sync.Mutex
	body   []byte
	over   bool // there was no room for all of it
	closed bool
}

// add appends to the copy where the budget has room.
func (c *copied) add(b []byte, held *budget) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.over {
		return
	}
	if len(c.body)+len(b) > record.MaxRequestBytes/2 || !held.take(len(b)) {
		held.give(len(c.body))
		c.body, c.over = nil, true
		return
	}
	c.body = append(c.body, b...)
}

// take ends the copying.
func (c *copied) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.body
}

// tee is a request's body that is copied as it is read.
type tee struct {
	io.ReadCloser
	x *exchange
}

// Read is io.Reader's.
func (t *tee) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	t.x.request.add(b[:n], &t.x.p.recorder.held)
	return n, err
}

// watched is an answer's body that is read by the record too: what one Read
// brought is looked at in the next, when the client has it.
type watched struct {
	io.ReadCloser
	x    *exchange
	last []byte
	now  time.Duration
}

// Read is io.Reader's.
func (w *watched) Read(b []byte) (int, error) {
	w.look()
	n, err := w.ReadCloser.Read(b)
	if n > 0 {
		w.now = w.x.p.now()
		w.x.lastByte = w.now
		if w.x.answer != nil {
			w.last = b[:n]
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		w.x.sent = true
	case err != nil:
		w.x.broken = err
	}
	if err != nil {
		w.look()
	}
	return n, err
}

func (w *watched) look() {
	if len(w.last) > 0 {
		w.x.answer.push(w.last, w.now)
		w.last = nil
	}
}

// answered begins the answer's record.
func (x *exchange) answered(resp *http.Response) {
	x.status, x.firstByte = resp.StatusCode, x.p.now()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	if resp.StatusCode/100 == 2 {
		x.answer = newAnswer(x.api, resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"), true)
	}
	resp.Body = &watched{ReadCloser: resp.Body, x: x}
}

// failed notes that the server gave no answer.
func (x *exchange) failed(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		x.class = classClient
	default:
		x.class = record.ClassConnect
	}
	x.broken = err
}

// settle says how and when the exchange ended.
func (x *exchange) settle(ctx context.Context) {
	x.end = x.p.now()
	if x.sent && x.lastByte != record.NoTime { // when the client may have had all of it
		x.end = x.lastByte
	}
	gone := x.status != 0 && !x.sent && (x.broken == nil || ctx.Err() != nil)
	switch {
	case x.class != "":
	case x.status == 0 || gone:
		x.class = classClient
	case x.status == http.StatusTooManyRequests:
		x.class = record.ClassHTTP429
	case x.status >= 500:
		x.class = record.ClassHTTP5xx
	case x.status >= 400:
		x.class = record.ClassHTTP4xx
	case x.status >= 300:
		x.class = record.ClassRedirect
	}
}

// judge ends the reading of the answer; it is for the recorder's goroutine.
func (x *exchange) judge() {
	if x.answer == nil {
		return
	}
	end := x.broken
	if end == nil && x.sent {
		end = io.EOF
	} else if end == nil {
		end = io.ErrUnexpectedEOF
	}
	x.answer.finish(end)
	if x.class != "" {
		return
	}
	switch x.answer.verdict {
	case openai.StreamError:
		x.class = record.ClassStreamError
	case openai.Truncated:
		x.class = record.ClassTruncated
	case openai.BadResponse:
		x.class = record.ClassBadResponse
	}
}

// drop releases what an exchange holds whose record is not written.
func (x *exchange) drop() {
	if x.answer != nil {
		x.answer.finish(errDropped)
	}
	x.p.recorder.held.give(len(x.request.take()))
}
