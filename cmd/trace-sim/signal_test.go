package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a command that runs in this process.
type running struct {
	url   string
	lines chan string // of stderr, after the ready line
	code  chan int
}

// start runs the command until it says that it is ready.
func start(t *testing.T, args ...string) running {
	t.Helper()
	r, w := io.Pipe()
	p := running{lines: make(chan string, 10), code: make(chan int, 1)}
	go func() {
		p.code <- run(context.Background(), append(args, "--listen", "127.0.0.1:0"), nil, io.Discard, w)
		w.Close()
	}()
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, url, ok := strings.Cut(line, "ready on ")
	p.url, _, _ = strings.Cut(url, " ")
	if !ok {
		t.Fatalf("the first line is %q", line)
	}
	go func() {
		defer close(p.lines)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			p.lines <- line
		}
	}()
	return p
}

// stream opens a stream and reads its first bytes.
func (p running) stream(t *testing.T) io.ReadCloser {
	t.Helper()
	resp, err := http.Post(p.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":100,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	return resp.Body
}

// awaitRunning waits until the server works on a request.
func (p running) awaitRunning(t *testing.T) {
	t.Helper()
	for {
		resp, err := http.Get(p.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(page), `vllm:num_requests_running{engine="0",model_name="sim"} 1.0`) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func raise(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
}

// SIGTERM lets a running request come to its end, and exits with 0.
func TestTerminateDrains(t *testing.T) {
	p := start(t, "--decode-step", "2ms", "--grace", "1m")
	body := p.stream(t)
	defer body.Close()
	raise(t, syscall.SIGTERM)
	rest, err := io.ReadAll(body)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream was not finished: %v", err)
	}
	if got := <-p.lines; got != "trace-sim: terminated: stopping\n" {
		t.Errorf("stderr %q", got)
	}
	if code := <-p.code; code != exitOK {
		t.Errorf("exit %d, want 0", code)
	}
	if got, more := <-p.lines; more {
		t.Errorf("stderr has %q too", got)
	}
}

// After --grace, or at a second signal, what still runs is cut off.
func TestStopCutsOff(t *testing.T) {
	for _, c := range []struct {
		name, grace string
		again       bool
	}{{"grace", "1ms", false}, {"second signal", "1m", true}} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, "--decode-step", "10s", "--grace", c.grace)
			resp := make(chan error, 1)
			go func() {
				r, err := http.Post(p.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x"}`))
				if err == nil {
					r.Body.Close()
				}
				resp <- err
			}()
			p.awaitRunning(t)
			raise(t, syscall.SIGINT)
			if got := <-p.lines; got != "trace-sim: interrupt: stopping\n" {
				t.Errorf("stderr %q", got)
			}
			if c.again {
				raise(t, syscall.SIGINT)
			}
			if code := <-p.code; code != exitInterrupted {
				t.Errorf("exit %d, want 130", code)
			}
			if got := <-p.lines; got != "trace-sim: requests that still ran were cut off\n" {
				t.Errorf("stderr %q", got)
			}
			if err := <-resp; err == nil {
				t.Error("the request got an answer")
			}
		})
	}
}
