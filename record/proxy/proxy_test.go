package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"retrace/record"
	"retrace/record/capture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a proxy before a server.
type rig struct {
	t      *testing.T
	proxy  *Proxy
	front  *httptest.Server
	path   string
	client *http.Client
	closed bool
}

// newRig starts a proxy before a handler; change may adapt the configuration.
func newRig(t *testing.T, upstream http.Handler, change func(*Config)) *rig {
	t.Helper()
	back := httptest.NewServer(upstream)
	t.Cleanup(back.Close)
	return newRigAt(t, back.URL, change)
}

func newRigAt(t *testing.T, upstream string, change func(*Config)) *rig {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "out.trace")}
	cfg := Config{Upstream: u, Output: r.path, Capture: capture.Blocks, BlockSize: 4, Salt: capture.NewSalt()}
	if change != nil {
		change(&cfg)
	}
	if r.proxy, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(r.proxy)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	r.front, r.client = server, server.Client()
	r.client.Transport.(*http.Transport).DisableCompression = true
	t.Cleanup(func() { r.finish() })
	return r
}

// finish stops the proxy.
func (r *rig) finish() {
	if r.closed {
		return
	}
	r.closed = true
	r.client.CloseIdleConnections()
	r.front.Close()
	r.proxy.Wait()
	if err := r.proxy.Close(); err != nil {
		r.t.Errorf("close: %v", err)
	}
}

// records stops the proxy and reads the trace.
func (r *rig) records() []record.Request {
	r.t.Helper()
	r.finish()
	rd, err := record.Open(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	var all []record.Request
	for q, err := range rd.Requests() {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

// post sends a body and gives the whole answer.
func (r *rig) post(path, body string) (status int, answer string) {
	r.t.Helper()
	resp, err := r.client.Post(r.front.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// says answers every request with a body.
func says(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

const whole = `{"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":" a b","finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`

// One request is one record, with what it says and how it went.
func TestRecord(t *testing.T) {
	r := newRig(t, says("application/json", whole), nil)
	body := `{"model":"m","prompt":[1,2,3,4,5,6,7,8,9],"max_tokens":2,"temperature":0.5}`
	if status, answer := r.post("/v1/completions", body); status != 200 || answer != whole {
		t.Fatalf("got %d %s", status, answer)
	}
	all := r.records()
	if len(all) != 1 {
		t.Fatalf("%d records, want 1", len(all))
	}
	q := all[0]
	// Nine tokens in blocks of four: two whole ones and a part.
	if q.API != "completions" || q.Model != "m" || q.InputTokens != 9 || q.OutputTokens != 2 || len(q.Blocks) != 3 {
		t.Errorf("got %+v", q)
	}
	o := q.Observed
	if o.Status != 200 || o.Failed || o.InputTokens != 9 || o.OutputTokens != 2 || o.Latency <= 0 || q.Arrival <= 0 || q.Arrival > time.Minute {
		t.Errorf("observed %+v, arrival %v", o, q.Arrival)
	}
	for _, want := range []string{`"temperature":0.5`, `"max_tokens":2`, `"finish_reason":"length"`} {
		if !bytes.Contains(q.Extra, []byte(want)) {
			t.Errorf("extra %s lacks %s", q.Extra, want)
		}
	}
	if q.Body != nil {
		t.Errorf("a body was kept: %s", q.Body)
	}
}

// Bytes pass as they are: body, query, headers, trailers.
func TestTransparent(t *testing.T) {
	body := "{ \"b\" : 1,\r\n\t\"a\":\"\\u0041\", \"a\":2 }\n"
	var got *http.Request
	var gotBody []byte
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got = req.Clone(context.Background())
		gotBody, _ = io.ReadAll(req.Body)
		got.Trailer = req.Trailer
		w.Header()["Date"] = nil
		w.Header()["Content-Type"] = nil
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Add("X-Many", "1")
		w.Header().Add("X-Many", "2")
		w.WriteHeader(203)
		_, _ = w.Write([]byte("\x00\xff<html>"))
		w.Header().Set("X-Sum", "7")
	}), nil)
	req, err := http.NewRequest(http.MethodPost, r.front.URL+"/v1/chat/completions?a=%zz;b&c=1&&", io.MultiReader(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "10.1.2.3")
	req.Header.Set("Accept-Encoding", "br")
	req.Header.Set("Connection", "X-Hop")
	req.Header.Set("X-Hop", "1")
	req.Header["User-Agent"] = nil
	req.Trailer = http.Header{"X-End": {"e"}}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(answer) != "\x00\xff<html>" || resp.StatusCode != 203 {
		t.Errorf("answer %q, %d, %v", answer, resp.StatusCode, err)
	}
	if resp.Trailer.Get("X-Sum") != "7" || len(resp.Header["X-Many"]) != 2 {
		t.Errorf("headers %v, trailers %v", resp.Header, resp.Trailer)
	}
	if h := resp.Header; h["Date"] != nil || h["Content-Type"] != nil {
		t.Errorf("headers were added: %v", h)
	}
	if string(gotBody) != body || got.URL.RawQuery != "a=%zz;b&c=1&&" || got.URL.Path != "/v1/chat/completions" {
		t.Errorf("the server got %q at %s", gotBody, got.URL)
	}
	h := got.Header
	if h.Get("X-Forwarded-For") != "10.1.2.3" || h.Get("Accept-Encoding") != "br" || h.Get("X-Hop") != "" || h["User-Agent"] != nil {
		t.Errorf("the server got the headers %v", h)
	}
	if got.Trailer.Get("X-End") != "e" {
		t.Errorf("the server got the trailers %v", got.Trailer)
	}
}

// An event is with the client before the server sends the next.
func TestFlushed(t *testing.T) {
	for _, contentType := range []string{"text/event-stream", "text/event-stream; charset=utf-8", "application/x-ndjson", "application/json"} {
		t.Run(contentType, func(t *testing.T) {
			next := make(chan struct{})
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Type", contentType)
				_ = http.NewResponseController(w).Flush()
				for range 5 {
					<-next
					_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"text":"x"}]}`+"\n\n")
					_ = http.NewResponseController(w).Flush()
				}
			}), nil)
			resp, err := r.client.Post(r.front.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","stream":true}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			buf := make([]byte, 4096)
			for range 5 { // would wait for ever where anything is held back
				next <- struct{}{}
				if n, err := resp.Body.Read(buf); n == 0 {
					t.Fatal(err)
				}
			}
		})
	}
}

// No text, credential or query is in the file, in any mode but full's bodies.
func TestPrivacy(t *testing.T) {
	const secrets = "sk-credential hunter2-query plain-prompt-words my-session my-user my-key X-Private-Header answer-words"
	answer := `{"id":"resp-id","choices":[{"index":0,"message":{"role":"assistant","content":"answer-words"},"finish_reason":"answer-words"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`
	for _, mode := range []capture.Mode{capture.Lengths, capture.Blocks} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t, says("application/json", answer), func(c *Config) { c.Capture, c.SessionHeader = mode, "X-Session" })
			body := `{"model":"m","messages":[{"role":"user","content":"plain-prompt-words"}],"session_id":"my-session","user":"my-user","prompt_cache_key":"my-key"}`
			req, _ := http.NewRequest(http.MethodPost, r.front.URL+"/v1/chat/completions?k=hunter2-query", strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer sk-credential")
			req.Header.Set("X-Private-Header", "X-Private-Header")
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			q := r.records()[0]
			if q.Session == "" || (len(q.Blocks) > 0) != (mode == capture.Blocks) {
				t.Errorf("session %q, blocks %v", q.Session, q.Blocks)
			}
			text := q.Session + q.Parent + q.ID + q.Model + string(q.Extra) + string(q.Body)
			raw, err := os.ReadFile(r.path)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range strings.Fields(secrets) {
				if strings.Contains(text, secret) || bytes.Contains(raw, []byte(secret)) {
					t.Errorf("%q is in the trace: %s", secret, text)
				}
			}
		})
	}
}

// Full keeps bodies and identities as they are.
func TestFull(t *testing.T) {
	r := newRig(t, says("application/json", whole), func(c *Config) { c.Capture = capture.Full })
	body := `{"model":"m", "prompt":"text",  "session_id":"mine"}`
	r.post("/v1/completions", body)
	if q := r.records()[0]; string(q.Body) != body || q.Session != "mine" {
		t.Errorf("got body %s, session %q", q.Body, q.Session)
	}
}
