package replay

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"retrace/record"
)

const (
	// idleTimeout closes an idle connection before servers do (uvicorn, and
	// so vLLM, after 5 s), so that a request seldom meets a closing one.
	idleTimeout = 4 * time.Second
	// connBuffer is the size of a connection's read buffer: a head, or a few
	// events. Larger reads pass it by.
	connBuffer = 1 << 10
	// maxHead bounds a response's head, as net/http's client does.
	maxHead = 10 << 20
	// maxInterim bounds the 1xx responses before the response.
	maxInterim = 5
	// inlineBody is the largest body that is written before its response is
	// waited for. A socket's buffers take it, or most of it, at once; for a
	// larger one the server may have answered before it has read all.
	inlineBody = 64 << 10
)

// errHeadTooLarge is the end of a head beyond maxHead.
var errHeadTooLarge = fmt.Errorf("the response's head has more than %d bytes", maxHead)

// wire is HTTP/1.1 with one goroutine a request, and another only while it
// dials or writes a large body: net/http's transport has three, and with thousands of requests in flight their stacks
// and its buffers are most of what a replay would hold.
type wire struct {
	dial dialFunc
	tls  *tls.Config
	// keep is the number of idle connections that are kept a server.
	keep int
	now  func() time.Duration

	mu     sync.Mutex
	idle   map[string][]*line // by scheme and host, the longest idle first
	closed bool
}

// line is a connection to a server.
type line struct {
	net.Conn           // TLS, or own
	own      *conn     // what counts the bytes
	reader   *headGate // of Conn
	buf      *bufio.Reader
	place    string
	since    time.Duration // idle
}

// headGate lets a head through to its limit, and a body without one.
type headGate struct {
	net.Conn
	left int64
}

// Read is io.Reader's.
func (g *headGate) Read(b []byte) (int, error) {
	if g.left <= 0 {
		return 0, errHeadTooLarge
	}
	n, err := g.Conn.Read(b)
	g.left -= int64(n)
	return n, err
}

// message is a request as it is written: a head without its last lines.
type message struct {
	method string
	to     *url.URL
	head   []byte
	header http.Header // that head has
	body   *payload    // nil for none
}

// exchange writes a message and reads the head of its response, whose body must
// be closed. It fills in a.
func (w *wire) exchange(ctx context.Context, a *attempt, m message) (*http.Response, error) {
	l, err := w.get(ctx, a, m.to)
	if err != nil {
		m.body.free()
		return nil, err
	}
	own := &a.own
	own.clock, a.conn = a.clock, own
	l.own.account.Store(own)
	x := &exchange{wire: w, line: l}
	// A context that is done ends reads and writes under way.
	x.stop = context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })
	x.write(m)
	resp, err := x.head(a, m.method)
	if err != nil {
		x.close(false)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	resp.Body = &wireBody{ReadCloser: resp.Body, x: x, last: resp.Close}
	return resp, nil
}

// exchange is a message under way.
type exchange struct {
	wire *wire
	line *line
	stop func() bool
	// written is closed when the body is, nil where it was written at once;
	// writeErr is there by then.
	written  chan struct{}
	writeErr error
}

// write writes the message, a large one in the background. What goes wrong
// shows in the response: a server may answer and close before it has read all.
func (x *exchange) write(m message) {
	if m.body == nil {
		_, x.writeErr = x.line.Write(append(m.head, "\r\n"...))
		return
	}
	head := fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n", m.head, m.body.size())
	send := func() error {
		defer m.body.free()
		if c, ok := x.line.Conn.(*conn); ok {
			return c.writeAll(head, m.body.bytes())
		}
		if _, err := x.line.Write(head); err != nil {
			return err
		}
		_, err := x.line.Write(m.body.bytes())
		return err
	}
	if m.body.size() <= inlineBody {
		x.writeErr = send()
		return
	}
	x.written = make(chan struct{})
	go func() {
		defer close(x.written)
		x.writeErr = send()
	}()
}

// head reads the response's head.
func (x *exchange) head(a *attempt, method string) (*http.Response, error) {
	l := x.line
	l.reader.left = maxHead
	if _, err := l.buf.Peek(1); err != nil {
		return nil, err
	}
	a.first.Store(a.own.read.Load())
	a.answered.Store(true)
	for range maxInterim + 1 {
		resp, err := http.ReadResponse(l.buf, &http.Request{Method: method})
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			l.reader.left = 1<<63 - 1
			return resp, nil
		}
	}
	return nil, fmt.Errorf("more than %d interim responses", maxInterim)
}

// close ends the exchange; its connection goes on where whole says that the
// response was read to its end.
func (x *exchange) close(whole bool) {
	whole = x.stop() && whole && x.line.buf.Buffered() == 0
	if x.written != nil {
		select {
		case <-x.written:
		default:
			whole = false
		}
	}
	if whole && x.writeErr == nil {
		x.wire.put(x.line)
		return
	}
	_ = x.line.Close() // nothing more is read or written
	if x.written != nil {
		<-x.written
	}
}

// wireBody is the body of a response.
type wireBody struct {
	io.ReadCloser
	x     *exchange
	last  bool // the connection ends with this response
	ended bool
	once  sync.Once
}

// Read is io.Reader's.
func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// Close gives the connection back where the body was read to its end, and
// closes it elsewise.
func (b *wireBody) Close() error {
	b.once.Do(func() { b.x.close(b.ended && !b.last) })
	return nil
}

// get is an idle connection, or a new one.
func (w *wire) get(ctx context.Context, a *attempt, to *url.URL) (*line, error) {
	place := to.Scheme + "://" + to.Host
	for l := w.take(place); l != nil; l = w.take(place) {
		if l.own.alive() {
			a.reused, a.idle = true, w.now()-l.since
			return l, nil
		}
		_ = l.Close() // the server has
	}
	start := w.now()
	made := make(chan dialled, 1)
	// Not here: the depth of a dial would double the stack that a request
	// waits for its answer with.
	go func() {
		var d dialled
		d.line, d.tlsFailed, d.err = w.open(ctx, to)
		made <- d
	}()
	d := <-made
	if d.err != nil {
		settle(ctx, d.err)
		a.tlsFailed.Store(d.tlsFailed)
		return nil, d.err
	}
	d.line.place = place
	a.connect = w.now() - start
	return d.line, nil
}

// dialled is what became of a new connection.
type dialled struct {
	line      *line
	tlsFailed bool
	err       error
}

// open makes a connection, and says whether it was TLS that failed.
func (w *wire) open(ctx context.Context, to *url.URL) (l *line, tlsFailed bool, err error) {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	raw, err := w.dial(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return nil, false, err
	}
	l = &line{Conn: raw}
	l.own, _ = raw.(*conn)
	if to.Scheme == "https" {
		cfg := w.tls.Clone()
		cfg.ServerName = to.Hostname()
		secured := tls.Client(raw, cfg)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = raw.Close() // the handshake's error says why
			return nil, true, err
		}
		l.Conn = secured
	}
	l.reader = &headGate{Conn: l.Conn}
	l.buf = bufio.NewReaderSize(l.reader, connBuffer)
	return l, false, nil
}

// settle waits for a context whose deadline ended what err is of: a socket's
// own timer may be a little earlier.
func settle(ctx context.Context, err error) {
	end, has := ctx.Deadline()
	if has && errors.Is(err, os.ErrDeadlineExceeded) && time.Until(end) < time.Millisecond {
		<-ctx.Done()
	}
}

// take is the connection that was idle last, nil where there is none.
func (w *wire) take(place string) *line {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(place)
	list := w.idle[place]
	if len(list) == 0 {
		return nil
	}
	l := list[len(list)-1]
	list[len(list)-1] = nil
	w.idle[place] = list[:len(list)-1]
	return l
}

// put keeps a connection for the next request.
func (w *wire) put(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(l.place)
	if w.closed || len(w.idle[l.place]) >= w.keep {
		_ = l.Close() // nothing is under way
		return
	}
	l.since = w.now()
	w.idle[l.place] = append(w.idle[l.place], l)
}

// expire closes the connections that were idle for long. w.mu is held.
func (w *wire) expire(place string) {
	list := w.idle[place]
	n := 0
	for n < len(list) && w.now()-list[n].since > idleTimeout {
		_ = list[n].Close() // nothing is under way
		n++
	}
	if n > 0 {
		w.idle[place] = append(list[:0], list[n:]...)
		clear(list[len(list)-n:])
	}
}

// close closes what is idle, and what will be.
func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, list := range w.idle {
		for _, l := range list {
			_ = l.Close() // nothing is under way
		}
	}
	clear(w.idle)
}

// conn notes when bytes pass, to the point where the kernel has or gives them,
// in the account of the request that has the connection.
type conn struct {
	net.Conn
	account atomic.Pointer[account]
}

// writeAll writes two buffers as one.
func (c *conn) writeAll(head, body []byte) error {
	a := c.begin()
	buffers := net.Buffers{head, body}
	n, err := buffers.WriteTo(c.Conn)
	a.sent.Add(n)
	return err
}

// begin notes the moment of the first write.
func (c *conn) begin() *account {
	a := c.account.Load()
	if a.wrote.CompareAndSwap(0, a.clock.raw()) && a.tally != nil {
		a.tally.Add(1)
	}
	return a
}

// Write is net.Conn's.
func (c *conn) Write(b []byte) (int, error) {
	a := c.begin()
	n, err := c.Conn.Write(b)
	a.sent.Add(int64(n))
	return n, err
}

// Read is net.Conn's.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	a := c.account.Load() // a read may have begun before the request did
	a.read.Store(a.clock.raw())
	a.got.Add(int64(n))
	if err != nil {
		a.ended.Store(true)
	}
	return n, err
}

// offset is a moment of an account from the schedule's origin.
func (a *account) offset(raw int64) time.Duration {
	if raw == 0 {
		return record.NoTime
	}
	return a.clock.offset(raw)
}
