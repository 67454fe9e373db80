package proxy

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"retrace/openai"
	"retrace/record"
)

// idleUpstream is how long a connection to the server is kept for another
// request: less than the five seconds after which common servers close theirs,
// so that no request is sent into a closing one.
const idleUpstream = 4 * time.Second

// Proxy is a reverse proxy that records. It is an http.Handler for any number
// of goroutines; Close it once none of them is in it.
type Proxy struct {
	cfg       Config
	upstream  *url.URL
	origin    time.Time
	forward   httputil.ReverseProxy
	transport *http.Transport
	recorder  *recorder
	rows      atomic.Int64
	running   sync.WaitGroup // exchanges under way
	counts    counts
}

// New makes a proxy and starts its trace.
func New(cfg Config) (*Proxy, error) {
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("make recording proxy: %w", err)
	}
	p := &Proxy{cfg: cfg, origin: time.Now(), transport: newTransport(cfg.Upstream.Scheme)}
	upstream := *cfg.Upstream
	if upstream.Scheme == "h2c" {
		upstream.Scheme = "http"
	}
	p.upstream = &upstream
	p.forward = httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p.transport, FlushInterval: -1, BufferPool: newBuffers(),
		ModifyResponse: modify, ErrorHandler: p.unreachable, ErrorLog: log.New(io.Discard, "", 0),
	}
	var err error
	if p.recorder, err = newRecorder(&p.cfg, p.origin); err != nil {
		return nil, fmt.Errorf("make recording proxy: %w", err)
	}
	return p, nil
}

// newTransport makes the client's side. It changes no body, uses no proxy and
// has no time limit: those are the client's and the server's affair.
func newTransport(scheme string) *http.Transport {
	t := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 1 << 14, IdleConnTimeout: idleUpstream,
		ExpectContinueTimeout: time.Second, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 1 << 20,
	}
	if scheme == "h2c" {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

// now is the time since the trace's origin.
func (p *Proxy) now() time.Duration { return time.Since(p.origin) }

// exchangeKey is the context's key of the exchange.
type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// ServeHTTP passes a request on, and records it where it asks a known API to
// generate.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrival := p.now()
	_ = http.NewResponseController(w).EnableFullDuplex() // of HTTP/2 it is a matter of course
	out := &passing{ResponseWriter: w}
	if r.ProtoMajor == 1 && r.Body != http.NoBody {
		out.body = &bodyEnd{ReadCloser: r.Body}
		in := *r
		in.Body, r = out.body, &in
	}
	if api := p.api(r); api != "" {
		p.record(out, r, api, arrival)
		return
	}
	p.counts.other(r.URL.Path)
	p.forward.ServeHTTP(out, r)
}

// record passes a request on and records it.
func (p *Proxy) record(w http.ResponseWriter, r *http.Request, api openai.API, arrival time.Duration) {
	p.running.Add(1)
	defer p.running.Done()
	p.counts.begin(api)
	x := &exchange{
		p: p, row: p.rows.Add(1) - 1, api: api, arrival: arrival,
		firstByte: record.NoTime, lastByte: record.NoTime, contentType: r.Header.Get("Content-Type"),
	}
	if p.cfg.SessionHeader != "" {
		x.session = r.Header.Get(p.cfg.SessionHeader)
	}
	defer func() { // also where the answer is broken off, which is a panic
		x.settle(r.Context())
		p.counts.end(api, x.status)
		p.recorder.add(x)
	}()
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// api is the API that a request asks to generate, "" where it does not.
func (p *Proxy) api(r *http.Request) openai.API {
	if r.Method != http.MethodPost {
		return ""
	}
	if api := openai.APIAt(r.URL.Path); api != "" {
		return api
	}
	return openai.APIAt(p.upstream.Path + r.URL.Path)
}

// rewrite sends the request on as it came: what ReverseProxy takes away beyond
// the headers of the connection is put back.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.upstream)
	r.Out.URL.RawQuery, r.Out.URL.ForceQuery = r.In.URL.RawQuery, r.In.URL.ForceQuery
	for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
	r.Out.Trailer = r.In.Trailer // which is filled when the body was read
	if x := exchangeOf(r.In); x != nil && r.Out.Body != nil {
		r.Out.Body = &tee{ReadCloser: r.Out.Body, x: x}
	}
}

func modify(resp *http.Response) error {
	if x := exchangeOf(resp.Request); x != nil {
		x.answered(resp)
	}
	return nil
}

// unreachable answers where the server did not.
func (p *Proxy) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if x := exchangeOf(r); x != nil {
		x.failed(r.Context(), err)
	}
	if r.Context().Err() != nil { // nobody is there to read it
		panic(http.ErrAbortHandler)
	}
	p.counts.unreachable.Add(1)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write(openai.AppendError(nil, "bad_gateway", "trace-record: the server did not answer", http.StatusBadGateway))
}

// Wait waits until the exchanges under way have been handed over, once no more
// can begin: a server that is closed does not wait for its handlers.
func (p *Proxy) Wait() { p.running.Wait() }

// Close writes what waits to be written and completes the trace.
func (p *Proxy) Close() error {
	p.transport.CloseIdleConnections()
	return p.recorder.close()
}

// Written is the number of records in the trace so far, Dropped are those that
// are not in it, by reason.
func (p *Proxy) Written() (written int64, dropped map[string]int64) {
	return p.recorder.stats.written.Load(), p.recorder.stats.dropped()
}
