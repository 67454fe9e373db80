package replay

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"retrace/record"
	"retrace/replay/prompt"
)

const (
	// idleSuspect is how long a connection must have been idle for its sudden
	// end to be taken as the end of its idle time.
	idleSuspect = 900 * time.Millisecond
	// quickEnd is how soon after the request that must show.
	quickEnd = 250 * time.Millisecond
	// maxAttempts bounds how often one request is made: once for each reason
	// there is.
	maxAttempts = 2 + len(optionalFields)
	// errorBody is how much of an error's body is read.
	errorBody = 64 << 10
)

// errDrained ends the wait for the end of a body whose last event has come.
var errDrained = errors.New("answer is over")

// attempt is one try of a request.
type attempt struct {
	clock    *clock
	getConn  time.Duration
	connect  time.Duration
	idle     time.Duration
	reused   bool
	conn     *account // nil before there is a connection
	own      account
	answered atomic.Bool
	// tlsFailed is set from the dialling goroutine.
	tlsFailed atomic.Bool
	first     atomic.Int64
}

// trace fills in the attempt from net/http's transport.
func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { a.getConn = a.clock.now() },
		GotConn: func(info httptrace.GotConnInfo) {
			a.reused, a.idle = info.Reused, info.IdleTime
			if !a.reused {
				a.connect = a.clock.now() - a.getConn
			}
			if c := connOf(info.Conn); c != nil {
				a.own.clock, a.conn = a.clock, &a.own
				c.account.Store(&a.own)
			}
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				a.tlsFailed.Store(true)
			}
		},
		GotFirstResponseByte: func() {
			if a.conn != nil {
				a.first.Store(a.conn.read.Load())
			}
			a.answered.Store(true)
		},
	}
}

// exchange makes j's request and fills in its result.
func (e *engine) exchange(life context.Context, j *job) {
	ctx, done := context.WithTimeoutCause(life, e.cfg.Timeout, errTimeout)
	defer done()
	res := &j.res
	res.Replica = e.replica(j)
	began := e.clock.now()
	for {
		e.attempts(ctx, j)
		if !e.retry(ctx, j, began) {
			break
		}
	}
	if e.cfg.IgnoreEOS && generates(j.api) && res.Mark == record.Planned && res.State == record.Completed &&
		res.CompletionTokens != record.Unknown && res.CompletionTokens < res.WantedOutput {
		e.tally.short.Add(1)
	}
	res.Error = e.scrub.clean(res.Error)
}

// attempts makes j's request, and again where that is no retry: a connection
// that was closed meanwhile, a field that the server refuses.
func (e *engine) attempts(ctx context.Context, j *job) {
	res := &j.res
	s := &e.client.servers[res.Replica]
	for range maxAttempts {
		res.Attempts++
		if j.body == nil || e.bodies.stale(j.fields) {
			if j.body, j.err = e.body(j); j.err != nil {
				res.State, res.Class, res.Error = record.Failed, record.ClassBadResponse, j.err.Error()
				break
			}
		}
		if !e.try(ctx, s.posts[j.api], j) {
			break
		}
	}
	if res.State == 0 { // a server that refuses what it was not sent
		res.State, res.Class = record.Failed, record.ClassHTTP4xx
	}
}

// replica is the index of the server whose turn j is.
func (e *engine) replica(j *job) int { return int(j.seq % int64(len(e.client.servers))) }

// try makes one attempt, and is true where another is called for.
func (e *engine) try(ctx context.Context, to message, j *job) (again bool) {
	res := &j.res
	a := &attempt{clock: e.clock, connect: record.NoTime}
	ctx, drained := context.WithCancelCause(ctx)
	defer drained(nil)
	if res.Sent == record.NoTime && res.Mark == record.Planned {
		a.own.tally = &e.tally.sent // counted as soon as it is, for the progress
	}
	resp, err := e.client.do(ctx, a, e.message(to, j))
	e.account(a, res)
	if j.sent = record.NoTime; a.conn != nil {
		j.sent = a.conn.sentAt()
	}
	if err != nil {
		if ctx.Err() == nil && !j.once && a.closedIdle(err, e.clock.now()) && !e.retriedIdle(res) {
			return true
		}
		e.failed(ctx, a, res, err)
		return false
	}
	defer resp.Body.Close() // what matters of it was read
	defer func() { res.BytesReceived = a.got() }()
	res.Status = resp.StatusCode
	if first := a.first.Load(); first != 0 {
		res.FirstByte = e.clock.offset(first)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return e.refused(ctx, resp, j)
	}
	e.bodies.learn(j.without) // without them it went
	e.answer(ctx, a, resp, j, drained)
	return false
}

// retriedIdle counts a repetition after a closed idle connection; true where
// the request has had its one.
func (e *engine) retriedIdle(res *record.Result) bool {
	if res.Attempts > 1 {
		return true
	}
	e.tally.retried.Add(1)
	return false
}

// message is j's, and takes its body over.
func (e *engine) message(m message, j *job) message {
	held := j.held
	m.body = &payload{buf: j.body, release: func() { e.drafts.give(held) }}
	j.body, j.held = nil, 0
	if j.once {
		j.prompt, j.source = prompt.Prompt{}, nil
	}
	return m
}

func (a *attempt) got() int64 {
	if a.conn == nil {
		return 0
	}
	return a.conn.got.Load()
}

// account takes over what the connection knows of the sending.
func (e *engine) account(a *attempt, res *record.Result) {
	if a.conn == nil {
		return
	}
	res.Reused = a.reused
	if a.reused {
		e.tally.reused.Add(1)
	} else {
		e.tally.opened.Add(1)
		res.Connect = a.connect
	}
	res.BytesSent += a.conn.sent.Load()
	if res.Sent != record.NoTime {
		return
	}
	if res.Sent = a.conn.sentAt(); res.Sent != record.NoTime && res.Mark == record.Planned {
		e.tally.late(res.Sent - max(res.Scheduled, res.Granted))
	}
}

// failed settles a request that got no response.
func (e *engine) failed(ctx context.Context, a *attempt, res *record.Result, err error) {
	res.End = e.clock.now()
	res.BytesReceived = a.got()
	if first := a.first.Load(); first != 0 {
		res.FirstByte = e.clock.offset(first)
	}
	res.Error = err.Error()
	if cut(ctx, res) {
		res.Error = cutSentence(res, e.cfg.Timeout)
		return
	}
	res.State, res.Class = record.Failed, a.classify(err)
}

func cutSentence(res *record.Result, timeout time.Duration) string {
	if res.State == record.Cancelled {
		return errKilled.Error()
	}
	switch {
	case res.Sent == record.NoTime:
		return fmt.Sprintf("no connection within %v", timeout)
	case res.Status == 0:
		return fmt.Sprintf("no response within %v", timeout)
	}
	return fmt.Sprintf("the answer was not over within %v", timeout)
}

// refused settles a response whose status is no success.
func (e *engine) refused(ctx context.Context, resp *http.Response, j *job) (again bool) {
	res := &j.res
	var body []byte
	decoded, err := e.decoded(resp)
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(decoded, errorBody))
	}
	res.End = e.clock.now()
	if err != nil && cut(ctx, res) {
		res.Error = cutSentence(res, e.cfg.Timeout)
		return false
	}
	j.patience = retryAfter(resp.Header)
	message := refusal(body)
	code := resp.StatusCode
	if code == http.StatusBadRequest || code == http.StatusUnprocessableEntity {
		if field := refusedField(string(body), j.fields); field != 0 && !j.once {
			j.without |= field
			return true
		} else if field != 0 { // it cannot be made again: the next ones fare better
			e.bodies.learn(field)
		}
	}
	res.State = record.Failed
	res.Error = fmt.Sprintf("HTTP %d: %s", code, message)
	switch {
	case code >= 300 && code < 400:
		res.Class = record.ClassRedirect
		res.Error = fmt.Sprintf("HTTP %d: redirected to %s", code, MaskURL(resp.Header.Get("Location")))
		if resp.Header.Get("Location") == "" {
			res.Error = fmt.Sprintf("HTTP %d: a redirect without a target", code)
		}
	case code == http.StatusTooManyRequests:
		res.Class = record.ClassHTTP429
	case code >= 400 && code < 500:
		res.Class = record.ClassHTTP4xx
	case code >= 500 && code < 600:
		res.Class = record.ClassHTTP5xx
	default:
		res.Class = record.ClassBadResponse
	}
	return false
}

// refusal is the sentence in the body of an error.
func refusal(body []byte) string {
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &doc) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var text string
		switch {
		case json.Unmarshal(doc.Error, &inner) == nil && inner.Message != "":
			return clip(inner.Message)
		case json.Unmarshal(doc.Error, &text) == nil && text != "":
			return clip(text)
		case doc.Message != "":
			return clip(doc.Message)
		}
	}
	return clip(string(body))
}

// clip bounds a sentence that comes from a server.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "…"
	}
	if s == "" {
		return "no message"
	}
	return s
}
