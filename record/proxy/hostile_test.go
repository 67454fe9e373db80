package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"retrace/record"
	"retrace/record/capture"
)

const (
	event    = `data: {"id":"c","choices":[{"index":0,"text":" x"}]}` + "\n\n"
	finished = `data: {"id":"c","choices":[{"index":0,"text":"","finish_reason":"length"}]}` + "\n\n"
	usage    = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}` + "\n\n"
	done     = "data: [DONE]\n\n"
)

// told is a member of a record's details.
func told(t *testing.T, q *record.Request, name string) any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(q.Extra, &all); err != nil {
		t.Fatalf("extra %s: %v", q.Extra, err)
	}
	return all[name]
}

// hijack writes raw bytes in place of an answer and closes the connection.
func hijack(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, raw)
		_ = conn.Close()
	}
}

// Every end of a request is one record, with its class, and passes as it is.
func TestEnds(t *testing.T) {
	chunked := func(body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body)
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name     string
		upstream http.Handler
		status   int
		broken   bool // the client sees the answer break off
		class    any
		in, out  int64
		outputs  any
	}{
		{"stream", says("text/event-stream", event+event+finished+usage+done), 200, false, nil, 7, 2, 2.0},
		{"stream without usage", says("text/event-stream", event+event+finished+done), 200, false, nil, 3, 2, 2.0},
		{"stream in lines' other ends", says("text/event-stream", strings.ReplaceAll(event+event+finished+usage+done, "\n", "\r\n")), 200, false, nil, 7, 2, 2.0},
		{"429", status(429, `{"error":{"message":"slow down"}}`), 429, false, "http_429", 3, 5, nil},
		{"400", status(400, `{}`), 400, false, "http_4xx", 3, 5, nil},
		{"500", status(500, `oops`), 500, false, "http_5xx", 3, 5, nil},
		{"302", status(302, ``), 302, false, "redirect", 3, 5, nil},
		{"page", says("text/html", "<html>"), 200, false, "bad_response", 3, 5, nil},
		{"no JSON", says("application/json", "{nonsense"), 200, false, "bad_response", 3, 5, nil},
		{"empty", says("application/json", ""), 200, false, "truncated", 3, 5, nil},
		{"error in the stream", says("text/event-stream", event+`data: {"error":{"message":"out of memory"}}`+"\n\n"), 200, false, "stream_error", 3, 1, 1.0},
		{"ended early", says("text/event-stream", event), 200, false, "truncated", 3, 1, 1.0},
		{"dies in mid-stream", hijack(chunked(event + event)), 200, true, "truncated", 3, 2, 2.0},
		{"dies within an event", hijack(chunked(event + event[:20])), 200, true, "truncated", 3, 1, 1.0},
		{"shorter than promised", hijack("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + whole), 200, true, "truncated", 3, 5, nil},
		{"no answer", hijack(""), 502, false, "connect", 3, 5, nil},
		{"no HTTP", hijack("SSH-2.0-OpenSSH\r\n\r\n"), 502, false, "connect", 3, 5, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.upstream, nil)
			r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			resp, err := r.client.Post(r.front.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt":[1,2,3],"max_tokens":5,"stream":true}`))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != c.status || (err != nil) != c.broken {
				t.Errorf("the client got %d, %v", resp.StatusCode, err)
			}
			all := r.records()
			if len(all) != 1 {
				t.Fatalf("%d records, want 1", len(all))
			}
			q := &all[0]
			wantStatus := c.status
			if c.class == "connect" {
				wantStatus = 0 // the server's, not ours
			}
			if q.Observed.Status != wantStatus || q.Observed.Failed != (c.class != nil) || q.InputTokens != c.in || q.OutputTokens != c.out {
				t.Errorf("got %+v, %d in, %d out; want %d, %d", q.Observed, q.InputTokens, q.OutputTokens, c.in, c.out)
			}
			if class, outputs := told(t, q, "class"), told(t, q, "outputs"); class != c.class || outputs != c.outputs {
				t.Errorf("class %v, want %v; outputs %v, want %v", class, c.class, outputs, c.outputs)
			}
			if bytes.Contains(q.Extra, []byte("slow down")) || bytes.Contains(q.Extra, []byte("out of memory")) {
				t.Errorf("a message of the server's was kept: %s", q.Extra)
			}
		})
	}
}

// What a body does not say is not made up, whatever the body is.
func TestBodies(t *testing.T) {
	form := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nw\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"secret.wav\"\r\n\r\n0123456789\r\n--b--\r\n"
	for _, c := range []struct {
		path, contentType, body string
		api, model              string
		media                   int64
	}{
		{"/v1/completions", "", `{nonsense`, "completions", "", 0},
		{"/v1/completions", "", ``, "completions", "", 0},
		{"/v1/completions", "", `[]`, "completions", "", 0},
		{"/v1/completions", "", "\x00\xff", "completions", "", 0},
		{"/v1/chat/completions", "", `{"model":"m","messages":"none"}`, "chat", "", 0},
		{"/v1/chat/completions", "", strings.Repeat("[", 100_000), "chat", "", 0},
		{"/invocations", "", `{"model":"m","messages":[]}`, "chat", "m", 0},
		{"/invocations", "", `{"inputs":"x"}`, "invocations", "", 0},
		{"/invocations-response-stream", "", `5`, "invocations-response-stream", "", 0},
		{"/v1/audio/transcriptions", "multipart/form-data; boundary=b", form, "transcriptions", "w", 10},
		{"/v1/audio/transcriptions", "multipart/form-data", form, "transcriptions", "", 0},
		{"/v1/rerank", "", `{"model":"m","query":"q","documents":["a","b"]}`, "rerank", "m", 0},
	} {
		r := newRig(t, says("application/json", `{"error":"no"}`), func(cfg *Config) { cfg.Capture = capture.Full })
		resp, err := r.client.Post(r.front.URL+c.path, c.contentType, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		q := r.records()[0]
		if q.API != c.api || q.Model != c.model || q.OutputTokens != record.Unknown || told(t, &q, "max_tokens") != nil || told(t, &q, "temperature") != nil {
			t.Errorf("%s %.40s: got %+v %s", c.path, c.body, q, q.Extra)
		}
		if (len(q.Media) == 1) != (c.media > 0) || c.media > 0 && (q.Media[0].Bytes != c.media || q.Media[0].Kind != "audio") {
			t.Errorf("%s: media %+v", c.path, q.Media)
		}
		if kept := json.Valid([]byte(c.body)) && c.body[0] == '{'; (q.Body != nil) != kept || kept && string(q.Body) != c.body {
			t.Errorf("%s %.40s: body %.40q", c.path, c.body, q.Body)
		}
	}
}

// A server that is not there, and one that comes back.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	r := newRigAt(t, "http://"+l.Addr().String(), nil)
	if status, answer := r.post("/v1/chat/completions", `{}`); status != 502 || !strings.Contains(answer, `"error"`) {
		t.Errorf("got %d %s", status, answer)
	}
	if status, _ := r.post("/other", `{}`); status != 502 {
		t.Errorf("got %d", status)
	}
	if q := r.records()[0]; q.Observed.Status != 0 || told(t, &q, "class") != "connect" {
		t.Errorf("got %+v %s", q.Observed, q.Extra)
	}
}

// A client that goes away ends the request at the server at once, whether the
// answer has begun or not, and leaves a record of what came.
func TestClientAborts(t *testing.T) {
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprint("begun ", begun), func(t *testing.T) {
			arrived, ended := make(chan struct{}), make(chan struct{})
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				if begun {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, event)
					_ = http.NewResponseController(w).Flush()
				}
				close(arrived)
				<-req.Context().Done()
				close(ended)
			}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.front.URL+"/v1/completions", strings.NewReader(`{"prompt":[1],"max_tokens":9}`))
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if resp, err := r.client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
			<-arrived
			if begun { // until the event is with the proxy
				time.Sleep(20 * time.Millisecond)
			}
			cancel()
			<-gone
			select {
			case <-ended:
			case <-time.After(5 * time.Second):
				t.Fatal("the server was not told")
			}
			q := r.records()[0]
			want := int64(9)
			if begun {
				want = 1
			}
			if told(t, &q, "class") != "client_aborted" || !q.Observed.Failed || q.OutputTokens != want {
				t.Errorf("got %+v, %d out, %s", q.Observed, q.OutputTokens, q.Extra)
			}
		})
	}
}

// A compressed answer passes as it is, and is read in the copy.
func TestCompressed(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, event+event)
	_ = z.Flush()
	cut := b.Len() // two outputs, and no end
	_, _ = io.WriteString(z, finished+usage+done)
	_ = z.Close()
	for _, c := range []struct {
		encoding string
		body     []byte
		class    any
		out      int64
	}{
		{"gzip", b.Bytes(), nil, 2},
		{"gzip", b.Bytes()[:cut], "truncated", 2},
		{"gzip", []byte("no gzip at all"), "bad_response", record.Unknown},
		{"br", []byte("\x0b\x02\x80"), "bad_response", record.Unknown},
	} {
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Encoding", c.encoding)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(c.body)
		}), nil)
		status, answer := r.post("/v1/completions", `{"prompt":"x"}`)
		if status != 200 || answer != string(c.body) {
			t.Errorf("%s: the client got %d, %d bytes of %d", c.encoding, status, len(answer), len(c.body))
		}
		q := r.records()[0]
		if told(t, &q, "class") != c.class || q.OutputTokens != c.out {
			t.Errorf("%s: got %d out, %s", c.encoding, q.OutputTokens, q.Extra)
		}
	}
}

// Clients may speak HTTP/2, and so may the server.
func TestHTTP2(t *testing.T) {
	var seen string
	back := newBack(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = req.Proto
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, whole)
	}))
	r := newRigAt(t, "h2c://"+back, nil)
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Post(r.front.URL+"/v1/completions", "", strings.NewReader(`{"prompt":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	tr.CloseIdleConnections()
	if resp.Proto != "HTTP/2.0" || seen != "HTTP/2.0" || string(text) != whole {
		t.Errorf("client %s, server %s: %s", resp.Proto, seen, text)
	}
	if q := r.records()[0]; q.OutputTokens != 2 || q.Observed.Failed {
		t.Errorf("got %+v", q)
	}
}

// newBack is a server of HTTP/2 without TLS; its address.
func newBack(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-served })
	return l.Addr().String()
}

// An answer may come before the request is whole, and an upload goes through
// piece by piece.
func TestFullDuplex(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		in := bufio.NewReader(req.Body)
		for range 3 {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "got "+line)
			_ = http.NewResponseController(w).Flush()
		}
	}), nil)
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
	in := bufio.NewReader(conn)
	var resp *http.Response
	for i := range 3 {
		_, _ = fmt.Fprintf(conn, "5\r\npart\n\r\n")
		if i == 0 {
			if resp, err = http.ReadResponse(in, nil); err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
		}
		buf := make([]byte, 9)
		if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != "got part\n" {
			t.Fatalf("part %d: %q, %v", i, buf, err)
		}
	}
}

// A connection whose request was answered before it was read serves the next.
func TestEarlyAnswer(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { w.WriteHeader(413) }), nil)
	var complaints bytes.Buffer
	r.front.Config.ErrorLog = log.New(&complaints, "", 0)
	for i := range 50 {
		size := []int{10, 100_000, 200_000}[i%3]
		if status, _ := r.post("/v1/completions", strings.Repeat(" ", size)); status != 413 {
			t.Fatalf("request %d: got %d", i, status)
		}
	}
	if n := len(r.records()); n != 50 || complaints.Len() > 0 {
		t.Errorf("%d records, want 50; the server says %s", n, &complaints)
	}
}

// A protocol that is switched is passed on.
func TestUpgrade(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "echo" {
			w.WriteHeader(400)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	}), nil)
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "GET /v1/realtime HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("got %v, %v", resp, err)
	}
	_, _ = io.WriteString(conn, "hello")
	buf := make([]byte, 5)
	if _, err := io.ReadFull(in, buf); err != nil || string(buf) != "hello" {
		t.Errorf("echo %q, %v", buf, err)
	}
}
