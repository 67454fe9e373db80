package replay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"retrace/openai"
)

const (
	// dialTimeout bounds one address of a name that has several.
	dialTimeout = 5 * time.Second
)

// client is the way to the servers: one pool of HTTP/1.1 connections.
type client struct {
	wire *wire
	// transport takes the place of wire where there is a proxy, nil elsewise.
	transport *http.Transport
	header    http.Header
	servers   []server
	names     *names
	proxy     string // masked
}

// server is one base URL and what is asked of it.
type server struct {
	base  string
	posts map[openai.API]message // without bodies
}

func newClient(cfg *Config, clock *clock) (*client, error) {
	c := &client{names: &names{ask: cfg.resolve, refresh: cfg.Client.RefreshNames}, header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream, application/json"},
		"Accept-Encoding": {"identity"}, "User-Agent": {"retrace"},
	}}
	for name, values := range cfg.Client.Headers {
		c.header[http.CanonicalHeaderKey(name)] = values
	}
	if cfg.Client.APIKey != "" && c.header.Get("Authorization") == "" {
		c.header["Authorization"] = []string{"Bearer " + cfg.Client.APIKey}
	}
	for _, base := range cfg.URLs {
		s := server{base: base, posts: map[openai.API]message{}}
		for _, api := range openai.APIs() {
			u, err := endpoint(base, api.Path())
			if err != nil {
				return nil, err
			}
			s.posts[api] = newMessage(http.MethodPost, u, headerFor(api, c.header, cfg.Client.Headers))
		}
		c.servers = append(c.servers, s)
	}
	pool := cfg.MaxInFlight
	if cfg.MaxConcurrency > 0 {
		pool = cfg.MaxConcurrency
	}
	tlsConfig, err := clientTLS(&cfg.Client)
	if err != nil {
		return nil, err
	}
	c.wire = &wire{dial: c.dialer(cfg.dial, clock), tls: tlsConfig, keep: pool, now: clock.now, idle: map[string][]*line{}}
	if cfg.Client.Proxy != "" {
		return c, c.setProxy(cfg.Client.Proxy)
	}
	return c, nil
}

// headerFor is what requests of an API say of what they hold and want, where
// the user's own header does not.
func headerFor(api openai.API, common, own http.Header) http.Header {
	h := common.Clone()
	set := func(name, value string) {
		if own.Get(name) == "" {
			h.Set(name, value)
		}
	}
	switch api {
	case openai.Transcriptions:
		h.Set("Content-Type", formType) // its boundary is the body's
		set("Accept", "text/event-stream, application/json, text/*")
	case openai.Embeddings, openai.Rerank:
		set("Accept", "application/json")
	case openai.InvocationsStream:
		set("Accept", "*/*") // events, lines or binary frames, as the container has it
	}
	return h
}

// setProxy makes the transport that knows how to talk to proxies.
func (c *client) setProxy(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return fmt.Errorf("parse proxy URL: %w", maskURLError(err))
	}
	if u.Host == "" {
		return fmt.Errorf("proxy URL %s: want http://HOST:PORT", maskURL(u))
	}
	c.proxy = maskURL(u)
	c.transport = &http.Transport{
		Proxy:               http.ProxyURL(u),
		DialContext:         c.wire.dial,
		TLSClientConfig:     c.wire.tls,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 alone
		DisableCompression:  true,
		MaxIdleConnsPerHost: c.wire.keep,
		IdleConnTimeout:     idleTimeout,
	}
	return nil
}

// newMessage is a message without its body.
func newMessage(method string, to *url.URL, header http.Header) message {
	m := message{method: method, to: to, header: header.Clone()}
	host := header.Get("Host")
	if host == "" {
		host = to.Host
	}
	if to.User != nil && header.Get("Authorization") == "" {
		password, _ := to.User.Password()
		m.header.Set("Authorization", "Basic "+basic(to.User.Username(), password))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, to.RequestURI(), host)
	_ = m.header.WriteSubset(&b, map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true})
	m.head = b.Bytes() // a bytes.Buffer takes all that is written
	return m
}

// do makes one HTTP request and fills in a; the response's body must be closed.
func (c *client) do(ctx context.Context, a *attempt, m message) (*http.Response, error) {
	if c.transport == nil {
		return c.wire.exchange(ctx, a, m)
	}
	req := &http.Request{Method: m.method, URL: m.to, Host: m.header.Get("Host"), Header: m.header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if m.body != nil {
		req.Body, req.ContentLength = m.body, m.body.size()
	}
	return c.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, a.trace())))
}

func clientTLS(cfg *ClientConfig) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: cfg.Insecure, NextProtos: []string{"http/1.1"}}
	if cfg.CACert != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(cfg.CACert) {
			return nil, errors.New("read CA certificates: found no PEM certificate")
		}
	}
	return c, nil
}

func (c *client) close() {
	c.wire.close()
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer wraps the connections that dial, nil for the network's, makes.
func (c *client) dialer(dial dialFunc, clock *clock) dialFunc {
	if dial != nil {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			raw, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return newConn(raw, clock), nil
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		addrs, err := c.names.lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		d := net.Dialer{}
		if len(addrs) > 1 {
			d.Timeout = dialTimeout
		}
		for _, a := range addrs {
			var raw net.Conn
			if raw, err = d.DialContext(ctx, network, net.JoinHostPort(a, port)); err == nil {
				return newConn(raw, clock), nil
			}
		}
		return nil, err
	}
}

// account is what passed for one request. It stays the request's own when
// another has got the connection, which may be before the last of the answer
// has been looked at.
type account struct {
	clock *clock
	wrote atomic.Int64 // the first write, from the clock's base; 0 for none
	read  atomic.Int64 // the last read, likewise
	sent  atomic.Int64 // bytes
	got   atomic.Int64
	ended atomic.Bool // a read met the end
	// tally counts the requests that were sent, nil where this is none.
	tally *atomic.Int64
}

func newConn(raw net.Conn, clock *clock) *conn {
	c := &conn{Conn: raw}
	c.account.Store(&account{clock: clock})
	return c
}

// sentAt is when the first byte of the request was written, lastRead when the
// last read returned; NoTime where there was none.
func (a *account) sentAt() time.Duration   { return a.offset(a.wrote.Load()) }
func (a *account) lastRead() time.Duration { return a.offset(a.read.Load()) }

// connOf finds our connection under a transport's.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn)
	return own
}
