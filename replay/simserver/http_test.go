package simserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// oddReader gives its text in pieces of 1, 2, 3, … bytes.
type oddReader struct {
	text string
	n    int
}

func (r *oddReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	r.n++
	n := copy(p, r.text[:min(r.n, len(r.text))])
	r.text = r.text[n:]
	return n, nil
}

// A body may come in any pieces, with its length known or not.
func TestReadBody(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	for _, length := range []int64{int64(len(text)), -1} {
		for _, buf := range [][]byte{nil, make([]byte, 0, 100), make([]byte, 7, 20_000)} {
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(&oddReader{text: text}))
			r.ContentLength = length
			got, fail := readBody(r, buf)
			if fail != nil || string(got) != text {
				t.Errorf("length %d, buffer of %d: %d bytes, %v", length, cap(buf), len(got), fail)
			}
		}
	}
}

func TestReadBodyErrors(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
	r.ContentLength = maxBody + 1
	if _, fail := readBody(r, nil); fail == nil || fail.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that says it is too large: %v", fail)
	}
	r = httptest.NewRequest(http.MethodPost, "/", io.LimitReader(zeros{}, maxBody+10))
	r.ContentLength = -1
	if _, fail := readBody(r, nil); fail == nil || fail.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %v", fail)
	}
	r = httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("{"), failing{}))
	if _, fail := readBody(r, nil); fail == nil || fail.status != 400 || !strings.Contains(fail.message, "broke") {
		t.Errorf("a body that breaks off: %v", fail)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broke") }

// An old client gets its stream without chunks, ended by the connection's end.
func TestHTTP10(t *testing.T) {
	s, _ := started(t, Config{})
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"prompt":"x","max_tokens":2,"stream":true}`
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasSuffix(string(text), "data: [DONE]\n\n") || !strings.HasPrefix(string(text), "data: {") {
		t.Errorf("%s, %v, %q", resp.Status, err, text)
	}
}

// One client's many requests on one connection, and many clients at once, half
// of which go away early: nothing is lost, and all blocks are free at the end.
func TestManyClients(t *testing.T) {
	s, client := started(t, Config{CacheBlocks: 200, MaxBatch: 8, DecodeStep: 50 * time.Microsecond})
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range 20 {
				if err := oneOfMany(s, client, r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		s.engine.mu.Lock()
		free, st := s.engine.pool.Free(), s.engine.stats
		s.engine.mu.Unlock()
		if free == 200 && st.lengthEnded+st.aborted == 320 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of 200 blocks are free, %d ended, %d aborted of 320", free, st.lengthEnded, st.aborted)
		}
	}
}

// oneOfMany makes one request of random size and, in half of the cases, leaves
// after the first bytes.
func oneOfMany(s *Server, client *http.Client, r *rand.Rand) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 1 + r.IntN(40)
	body := ask(r.IntN(3), 1+r.IntN(100), n, `,"stream":true`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if r.IntN(2) == 0 {
		_, err := resp.Body.Read(make([]byte, 10))
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if got := strings.Count(string(text), `"text":`); got != n {
		return fmt.Errorf("%d tokens, want %d", got, n)
	}
	return nil
}

// In real time too, the first token waits for the prefill and the others for
// their steps: 500 tokens at 10,000 a second are 50 ms. Being late is the
// machine's right, being early is a fault.
func TestRealTime(t *testing.T) {
	s, client := started(t, Config{PrefillTokensPerSecond: 10_000, DecodeStep: 5 * time.Millisecond})
	start := time.Now()
	resp, err := client.Post(s.URL()+"/v1/completions", "application/json", strings.NewReader(ask(0, 500, 5, `,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if head := time.Since(start); head > 45*time.Millisecond {
		t.Logf("the head came after %v: a slow machine, or it waits for the first token", head)
	}
	lines := bufio.NewScanner(resp.Body)
	for want := 55 * time.Millisecond; lines.Scan(); {
		if !strings.Contains(lines.Text(), `"text":`) {
			continue
		}
		if at := time.Since(start); at < want {
			t.Errorf("a token came after %v, before %v", at, want)
		}
		want += 5 * time.Millisecond
	}
}

// The head of a stream is there before its first token, as vLLM's is.
func TestHeadComesFirst(t *testing.T) {
	s, client := started(t, Config{DecodeStep: time.Hour})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/completions", strings.NewReader(`{"prompt":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
}

// Handler serves without Start, on a server of the caller's.
func TestHandler(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(`{"prompt":"x","max_tokens":2}`)))
	if w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Tools are part of a chat's prompt.
func TestToolsAreTokens(t *testing.T) {
	s, client := started(t, Config{})
	a := wholeAnswer(t, client, s.URL()+"/v1/chat/completions",
		`{"messages":[{"role":"user","content":"x y"}],"tools":[{"type": "function", "name": "f"}],"max_tokens":1}`)
	if a.Usage.Prompt != 2+4 { // [{"type":  "function",  "name":  "f"}]
		t.Errorf("%d prompt tokens, want 6", a.Usage.Prompt)
	}
}

// Running usage counts the choice's own tokens, and has no details (VLLM.md §2).
func TestContinuousUsage(t *testing.T) {
	s, client := started(t, Config{})
	all := events(t, client, s.URL()+"/v1/chat/completions",
		`{"messages":[{"role":"user","content":"x"}],"n":2,"max_tokens":2,"stream":true,"stream_options":{"continuous_usage_stats":true}}`)
	next := map[int]int{}
	for _, e := range all {
		c := e.Choices[0]
		if e.Usage.Completion != next[c.Index] || e.Usage.Prompt != 1 {
			t.Errorf("choice %d: usage %+v, want %d tokens", c.Index, e.Usage, next[c.Index])
		}
		next[c.Index]++
	}
	if len(all) != 6 {
		t.Errorf("%d events, want 2 roles and 4 tokens", len(all))
	}
}
