package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"retrace/cmd/internal/cli"
	"retrace/record/proxy"
)

// name is the command's.
const name = "trace-record"

// run is the command: it serves until a signal comes or ctx ends.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var o options
	flags := o.bind()
	tool := cli.Command{Name: name, Out: stdout, Err: stderr}
	if code, done := tool.ParseOnly(flags, args, func(w io.Writer) error { return usage(w, flags) }, o.validate); done {
		return code
	}
	return serve(ctx, &o, tool)
}

// serve records until a signal comes.
func serve(ctx context.Context, o *options, tool cli.Command) int {
	signals := cli.NotifyStop()
	defer signals.Release()

	s, err := start(o, tool)
	if err != nil {
		tool.Complain(err, hint(err))
		return cli.Failed
	}
	tool.Tell("", "ready on http://%s, before %s, writing %s", s.listener.Addr(), o.config.Upstream, o.config.Output)
	if s.admin != nil {
		tool.Tell("", "metrics on http://%s/-/metrics", s.admin.Addr())
	}

	drain, cancel, code := signals.Await(ctx, tool, o.grace)
	defer cancel()
	return s.stop(drain, tool, code)
}

// hint is a way out of an error, "" where none is known.
func hint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another server has that port; port 0 picks a free one"
	case errors.Is(err, os.ErrExist):
		return "--force overwrites it"
	}
	return ""
}

// service is the running proxy.
type service struct {
	proxy           *proxy.Proxy
	listener, admin net.Listener
	servers         []*http.Server
}

// start reads the files that flags name, and starts the proxy.
func start(o *options, tool cli.Command) (*service, error) {
	if err := o.load(); err != nil {
		return nil, err
	}
	s := &service{}
	if err := s.open(o, tool); err != nil {
		for _, l := range []net.Listener{s.listener, s.admin} {
			if l != nil {
				_ = l.Close() // nothing was served
			}
		}
		return nil, err
	}
	s.serve(s.listener, s.proxy)
	if s.admin != nil {
		s.serve(s.admin, s.proxy.Admin())
	}
	return s, nil
}

// open listens before it makes the trace, so that a port in use leaves no file.
func (s *service) open(o *options, tool cli.Command) (err error) {
	if s.listener, err = net.Listen("tcp", o.listen); err != nil {
		return fmt.Errorf("start proxy: %w", err)
	}
	if o.admin != "" {
		if s.admin, err = net.Listen("tcp", o.admin); err != nil {
			return fmt.Errorf("start metrics: %w", err)
		}
	}
	o.config.Warn = func(sentence string) { tool.Tell("warning", "%s", sentence) }
	s.proxy, err = proxy.New(o.config)
	return err
}

// serve starts a server of HTTP/1.1 and of HTTP/2 without TLS.
func (s *service) serve(l net.Listener, h http.Handler) {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: time.Minute, DisableGeneralOptionsHandler: true,
		ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	s.servers = append(s.servers, server)
	go func() { _ = server.Serve(l) }() // ends with ErrServerClosed
}

// stop lets the requests end, as long as ctx lasts, and completes the trace.
func (s *service) stop(ctx context.Context, tool cli.Command, code int) int {
	for _, server := range s.servers {
		if server.Shutdown(ctx) != nil {
			tool.Tell("warning", "requests that still ran were cut off")
			_ = server.Close() // what it fails at is over anyhow
		}
	}
	s.proxy.Wait()
	err := s.proxy.Close()
	written, dropped := s.proxy.Written()
	tool.Tell("", "%d requests recorded", written)
	for reason, n := range dropped {
		tool.Tell("warning", "%d records dropped: %s", n, reason)
		if code == cli.Done {
			code = cli.Losses
		}
	}
	if err != nil {
		tool.Complain(err, "")
		if code != cli.Interrupted {
			code = cli.Failed
		}
	}
	return code
}
