package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// instant is a server of completions that costs next to nothing: it reads each
// request as bytes, looks at none of them, and answers with the same events. It
// stamps the moment when the first byte of each request for an answer came.
type instant struct {
	answer []byte        // head and body, where all is written at once
	head   []byte        // of an answer in pieces
	events [][]byte      // its pieces
	gap    time.Duration // between two pieces

	mu     sync.Mutex
	stamps []int64 // wall clock, ns
}

// event is one streamed token, as vLLM sends it.
const event = `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"

// lastEvents end an answer: a finish reason, the usage, and the mark.
const lastEvents = `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":"length"}],"usage":null}` + "\n\n" +
	`data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":16,"completion_tokens":4,"total_tokens":20}}` + "\n\ndata: [DONE]\n\n"

const eventHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"

// newInstant answers with so many tokens, gap apart.
func newInstant(tokens int, gap time.Duration) *instant {
	s := &instant{head: []byte(eventHead), gap: gap}
	for range tokens - 1 {
		s.events = append(s.events, httpChunk(event))
	}
	s.events = append(s.events, append(httpChunk(lastEvents), "0\r\n\r\n"...))
	if gap == 0 {
		s.answer = bytes.Join(append([][]byte{s.head}, s.events...), nil)
	}
	return s
}

// httpChunk is a piece of a body in the chunked coding.
func httpChunk(text string) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(text), text) }

// runServe is the child process of a server. It prints its address, and ends
// with the signal, after it has written the stamps.
func runServe(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("bench serve", flag.ContinueOnError)
	f.SetOutput(stderr)
	tokens := f.Int("tokens", 4, "tokens of each answer")
	gap := f.Duration("gap", 0, "time between two tokens")
	stamps := f.String("stamps", "", "file for the moments of the requests")
	if f.Parse(args) != nil || *tokens < 1 {
		return 2
	}
	s := newInstant(*tokens, *gap)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintf(stderr, "bench serve: error: %v\n", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = l.Close() }) // which ends serve
	fmt.Fprintf(stdout, "ready on http://%s\n", l.Addr())
	if err := s.serve(l); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "bench serve: error: %v\n", err)
		return 1
	}
	if *stamps != "" {
		if err := s.save(*stamps); err != nil {
			fmt.Fprintf(stderr, "bench serve: error: %v\n", err)
			return 1
		}
	}
	return 0
}

// serve accepts connections until the listener is closed.
func (s *instant) serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go s.talk(conn)
	}
}

// save writes the stamps.
func (s *instant) save(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	buf := make([]byte, 0, 8*len(s.stamps))
	for _, at := range s.stamps {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(at))
	}
	if err := os.WriteFile(path, buf, 0o600); err != nil {
		return fmt.Errorf("write the stamps: %w", err)
	}
	return nil
}

// readStamps reads what save wrote.
func readStamps(path string) ([]int64, error) {
	buf, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the stamps: %w", err)
	}
	stamps := make([]int64, len(buf)/8)
	for i := range stamps {
		stamps[i] = int64(binary.LittleEndian.Uint64(buf[8*i:]))
	}
	return stamps, nil
}

// talk answers the requests of one connection.
func (s *instant) talk(conn net.Conn) {
	defer conn.Close() // nothing is under way
	in := bufio.NewReaderSize(conn, 16<<10)
	for {
		post, path, err := s.request(in)
		if err == nil {
			err = s.respond(conn, post, path)
		}
		if err != nil {
			return
		}
	}
}

// request reads one request to its end.
func (s *instant) request(in *bufio.Reader) (post bool, path string, err error) {
	if _, err := in.Peek(1); err != nil {
		return false, "", err
	}
	at := time.Now().UnixNano()
	var length int64
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return false, "", err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if first {
			method, rest, _ := bytes.Cut(line, []byte(" "))
			target, _, _ := bytes.Cut(rest, []byte(" "))
			if post = string(method) == "POST"; !post {
				path = string(target)
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && strings.EqualFold(string(name), "Content-Length"):
			if length, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err != nil {
				return false, "", err
			}
		case len(name) == len("Transfer-Encoding") && strings.EqualFold(string(name), "Transfer-Encoding"):
			return false, "", errors.New("body without a length")
		}
	}
	if post {
		s.mu.Lock()
		s.stamps = append(s.stamps, at)
		s.mu.Unlock()
	}
	_, err = in.Discard(int(length))
	return post, path, err
}

// respond writes the answer.
func (s *instant) respond(conn net.Conn, post bool, path string) error {
	switch {
	case post && s.answer != nil:
		_, err := conn.Write(s.answer)
		return err
	case post:
		return s.trickle(conn)
	}
	status, body := "404 Not Found", "{}"
	switch path {
	case "/health":
		status, body = "200 OK", ""
	case "/v1/models":
		status, body = "200 OK", `{"object":"list","data":[{"id":"m","object":"model"}]}`
	}
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	return err
}

// trickle writes the events one by one, by absolute deadlines.
func (s *instant) trickle(conn net.Conn) error {
	if _, err := conn.Write(s.head); err != nil {
		return err
	}
	start := time.Now()
	for i, piece := range s.events {
		time.Sleep(time.Duration(i+1)*s.gap - time.Since(start))
		if _, err := conn.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
