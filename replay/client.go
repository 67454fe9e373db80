package replay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"retrace/openai"
	"retrace/record"
)

const (
	// idleTimeout closes an idle connection before servers do (uvicorn, and
	// so vLLM, after 5 s), so that a request seldom meets a closing one.
	idleTimeout = 4 * time.Second
	// dialTimeout bounds one address of a name that has several.
	dialTimeout = 5 * time.Second
)

// client is the way to the servers: one pool of HTTP/1.1 connections.
type client struct {
	transport *http.Transport
	header    http.Header
	servers   []server
	names     *names
	proxy     string // masked
}

// server is one base URL and what is asked of it.
type server struct {
	base string
	urls map[openai.API]*url.URL
}

func newClient(cfg *Config, clock *clock) (*client, error) {
	c := &client{names: &names{}, header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"},
		"Accept-Encoding": {"identity"}, "User-Agent": {"retrace"},
	}}
	for name, values := range cfg.Client.Headers {
		c.header[http.CanonicalHeaderKey(name)] = values
	}
	if cfg.Client.APIKey != "" {
		c.header["Authorization"] = []string{"Bearer " + cfg.Client.APIKey}
	}
	for _, base := range cfg.URLs {
		s := server{base: base, urls: map[openai.API]*url.URL{}}
		for _, api := range []openai.API{openai.Completions, openai.Chat} {
			path, _ := endpointPath(api) // both are known
			u, err := endpoint(base, path)
			if err != nil {
				return nil, err
			}
			s.urls[api] = u
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
	c.transport = &http.Transport{
		DialContext:         c.dialer(cfg.dial, clock),
		TLSClientConfig:     tlsConfig,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 alone
		DisableCompression:  true,
		MaxIdleConnsPerHost: pool,
		IdleConnTimeout:     idleTimeout,
	}
	return c, c.setProxy(cfg.Client.Proxy)
}

func (c *client) setProxy(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fmt.Errorf("parse proxy URL: %w", maskURLError(err))
	}
	if u.Host == "" {
		return fmt.Errorf("proxy URL %s: want http://HOST:PORT", maskURL(u))
	}
	c.proxy = maskURL(u)
	c.transport.Proxy = http.ProxyURL(u)
	return nil
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

func (c *client) close() { c.transport.CloseIdleConnections() }

// names resolves each host once a run.
type names struct {
	mu    sync.Mutex
	known map[string]*name
}

type name struct {
	once  sync.Once
	addrs []string
	err   error
}

func (n *names) lookup(ctx context.Context, host string) ([]string, error) {
	if net.ParseIP(host) != nil {
		return []string{host}, nil
	}
	n.mu.Lock()
	if n.known == nil {
		n.known = map[string]*name{}
	}
	entry := n.known[host]
	if entry == nil {
		entry = &name{}
		n.known[host] = entry
	}
	n.mu.Unlock()
	entry.once.Do(func() {
		// The first request's end must not spoil it for all others.
		entry.addrs, entry.err = net.DefaultResolver.LookupHost(context.WithoutCancel(ctx), host)
	})
	return entry.addrs, entry.err
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

// conn notes when bytes pass, to the point where the kernel has or gives them.
type conn struct {
	net.Conn
	clock *clock
	wrote atomic.Int64 // the first write since begin, from the clock's base; 0 for none
	read  atomic.Int64 // the last read, likewise
	sent  atomic.Int64
	got   atomic.Int64
	ended atomic.Bool // a read met the end
}

func newConn(raw net.Conn, clock *clock) *conn { return &conn{Conn: raw, clock: clock} }

// begin starts the account of a request.
func (c *conn) begin() {
	c.wrote.Store(0)
	c.sent.Store(0)
	c.got.Store(0)
}

// Write is net.Conn's.
func (c *conn) Write(b []byte) (int, error) {
	if c.wrote.Load() == 0 {
		c.wrote.Store(c.clock.raw())
	}
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// Read is net.Conn's.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Store(c.clock.raw())
	c.got.Add(int64(n))
	if err != nil {
		c.ended.Store(true)
	}
	return n, err
}

// sentAt is when the first byte of the request was written, lastRead when the
// last read returned; NoTime where there was none.
func (c *conn) sentAt() time.Duration   { return c.offset(c.wrote.Load()) }
func (c *conn) lastRead() time.Duration { return c.offset(c.read.Load()) }

func (c *conn) offset(raw int64) time.Duration {
	if raw == 0 {
		return record.NoTime
	}
	return c.clock.offset(raw)
}

// connOf finds our connection under a transport's.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn)
	return own
}
