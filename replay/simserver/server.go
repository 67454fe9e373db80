package simserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a simulated inference server. Make it with New, then either Start
// it on an address or serve its Handler, and Close it in the end.
type Server struct {
	cfg     Config
	tok     *tokenizer
	engine  *engine
	mux     *http.ServeMux
	started time.Time
	number  atomic.Uint64 // generation requests so far

	responses responseStore

	entry    sync.Mutex // orders the entry of handlers and the closing
	handlers sync.WaitGroup
	closing  chan struct{}
	close    sync.Once

	http     *http.Server
	listener net.Listener
	served   chan struct{}
}

// New makes a server and starts its engine.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("make simulated server: %w", err)
	}
	cfg.fill()
	s := &Server{cfg: cfg, tok: newTokenizer(cfg.VocabSize), started: time.Now(), closing: make(chan struct{})}
	var err error
	if s.engine, err = newEngine(&s.cfg, s.tok); err != nil {
		return nil, fmt.Errorf("make simulated server: %w", err)
	}
	s.mux = s.routes()
	go s.engine.run()
	return s, nil
}

// Config is the server's configuration, defaults filled in.
func (s *Server) Config() Config { return s.cfg }

// Handler is the server's API.
func (s *Server) Handler() http.Handler { return s.mux }

// Start listens on an address, as "127.0.0.1:0", and serves in the background.
// It can be called once.
func (s *Server) Start(addr string) error {
	if s.listener != nil {
		return errors.New("start simulated server: it is started already")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("start simulated server: %w", err)
	}
	s.listener, s.served = l, make(chan struct{})
	s.http = &http.Server{Handler: s.mux, ReadHeaderTimeout: time.Minute, ErrorLog: nil}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // ends with ErrServerClosed
	}()
	return nil
}

// Addr is the address on which the server listens, "" before Start.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// URL is the server's base URL, "" before Start.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	return "http://" + s.Addr()
}

// Shutdown stops listening, lets the requests that run come to their end, as
// long as ctx lasts, and closes the server.
func (s *Server) Shutdown(ctx context.Context) error {
	var err error
	if s.http != nil {
		err = s.http.Shutdown(ctx)
	}
	s.Close()
	return err
}

// Close ends every request and the engine, and waits for their goroutines.
// Closing twice does nothing more.
func (s *Server) Close() {
	s.close.Do(func() {
		s.entry.Lock()
		close(s.closing)
		s.entry.Unlock()
		if s.http != nil {
			_ = s.http.Close() // its listener may be closed already
			<-s.served
		}
		s.handlers.Wait()
		s.engine.close()
	})
}

// enter lets a generation handler begin, and says false where the server closes.
func (s *Server) enter() bool {
	s.entry.Lock()
	defer s.entry.Unlock()
	select {
	case <-s.closing:
		return false
	default:
		s.handlers.Add(1)
		return true
	}
}
