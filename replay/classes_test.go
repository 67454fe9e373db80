package replay

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"retrace/record"
)

// over replays requests against a URL, over real sockets.
func over(t *testing.T, url string, reqs []record.Request, change func(*Config)) (Outcome, []record.Result) {
	t.Helper()
	c := &collector{}
	cfg := Config{URLs: []string{url}, Sink: c.sink, Timeout: 5 * time.Second, ReadyTimeout: 10 * ms}
	if change != nil {
		change(&cfg)
	}
	out, err := Run(context.Background(), cfg, seq(reqs))
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return out, c.byID()
}

func serve(t *testing.T, generate http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answers(generate))
	t.Cleanup(s.Close)
	return s.URL
}

// raw answers each request by writing text and doing end to the connection.
func raw(text string, end func(*net.TCPConn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, text)
		end(c.(*net.TCPConn))
	}
}

func closeIt(c *net.TCPConn) { _ = c.Close() }

func resetIt(c *net.TCPConn) {
	time.Sleep(20 * ms) // let the text arrive: a reset overtakes it
	_ = c.SetLinger(0)
	_ = c.Close()
}

const (
	chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	html    = "<!doctype html><title>Log in</title>"
)

func frame(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Location", "/login?token=s3cret")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

var classCases = []struct {
	name    string
	answer  http.HandlerFunc
	class   string // "" for a completed request
	message string
}{
	{"whole", scripted(step{0, word + event("", "stop") + done}), "", ""},
	{"S11 B no DONE", scripted(step{0, word + event("", "stop")}), "", "no [DONE]"},
	{"reset before the response", raw("", resetIt), record.ClassConnect, ""},
	{"closed before the response", raw("", closeIt), record.ClassConnect, ""},
	{"half a head", raw("HTTP/1.1 200 OK\r\nConten", closeIt), record.ClassTruncated, ""},
	{"no HTTP", raw("SSH-2.0-OpenSSH\r\n\r\n", closeIt), record.ClassBadResponse, ""},
	{"redirect", status(302, ""), record.ClassRedirect, "/login?token=***"},
	{"not modified", status(304, ""), record.ClassRedirect, ""},
	{"redirect to nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTemporaryRedirect) }, record.ClassRedirect, "HTTP 307: a redirect without a target"},
	{"429", status(429, `{"error":{"message":"slow down"}}`), record.ClassHTTP429, "HTTP 429: slow down"},
	{"401", status(401, `{"error":"who are you"}`), record.ClassHTTP4xx, "HTTP 401: who are you"},
	{"400", status(400, `{"object":"error","message":"too long"}`), record.ClassHTTP4xx, "HTTP 400: too long"},
	{"500", status(500, "Internal Server Error"), record.ClassHTTP5xx, "HTTP 500: Internal Server Error"},
	{"503", status(503, ""), record.ClassHTTP5xx, "no message"},
	{"S09 error after content", scripted(step{0, word + word + word + `data: {"error":{"message":"engine died","code":500}}` + "\n\n" + done}),
		record.ClassStreamError, "engine died"},
	{"S09 error first", scripted(step{0, `data: {"error":"boom"}` + "\n\n" + done}), record.ClassStreamError, "boom"},
	{"S09 event: error", scripted(step{0, word + "event: error\ndata: gone\n\n"}), record.ClassStreamError, "gone"},
	{"S09 bare JSON body", typed("application/json", `{"error":{"message":"no"}}`), record.ClassStreamError, "no"},
	{"S09 bare JSON body as events", typed("text/event-stream", `{"error":{"message":"no"}}`), record.ClassStreamError, "no"},
	{"S09 bare JSON body as HTML", typed("text/html", ` {"object":"error","message":"no"}`), record.ClassStreamError, "no"},
	{"S09 null error", scripted(step{0, `data: {"error":null,"choices":[{"text":"x","finish_reason":"stop"}]}` + "\n\n" + done}), "", ""},
	{"S11 A clean end", scripted(step{0, word + word + word + word}), record.ClassTruncated, "after 4 outputs"},
	{"reset in the stream", raw(chunked+frame(word), resetIt), record.ClassTruncated, "after 1 outputs"},
	{"closed in the stream", raw(chunked+frame(word), closeIt), record.ClassTruncated, ""},
	{"closed within an event", raw(chunked+frame(word+`data: {"choi`), closeIt), record.ClassTruncated, ""},
	{"closed after finish_reason", raw(chunked+frame(word+event("", "stop")), closeIt), "", "after finish_reason"},
	{"closed after DONE", raw(chunked+frame(word+done), closeIt), "", ""},
	{"empty stream", typed("text/event-stream", ""), record.ClassTruncated, ""},
	{"JSON cut", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"choices\":[", closeIt), record.ClassTruncated, ""},
	{"S20 plain JSON", typed("application/json", `{"choices":[{"text":"hi","finish_reason":"stop"}]}`), "", "plain JSON"},
	{"S20 HTML", typed("text/html", html), record.ClassBadResponse, "Log in"},
	{"HTML as events", typed("text/event-stream", html), record.ClassBadResponse, ""},
	{"text", typed("text/plain", "hello"), record.ClassBadResponse, "hello"},
	{"other JSON", typed("application/json", `{"status":"ok"}`), record.ClassBadResponse, ""},
	{"JSON array", typed("application/json", `[1]`), record.ClassBadResponse, ""},
	{"broken event", scripted(step{0, word + "data: {oops\n\n" + done}), record.ClassBadResponse, "event 2"},
	{"only DONE", scripted(step{0, done}), record.ClassBadResponse, ""},
	{"unknown encoding", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		typed("text/event-stream", "x")(w, r)
	}, record.ClassBadResponse, "br"},
	{"text as events", typed("text/event-stream", "upstream connect error"), record.ClassBadResponse, "neither events nor JSON"},
	{"text that begins like an event", typed("text/plain", "database is down\n"), record.ClassBadResponse, ""},
	{"cut within the first field", typed("text/event-stream", "dat"), record.ClassTruncated, ""},
	{"only pings", typed("text/event-stream", ": ping\n\n"), record.ClassTruncated, ""},
	{"no known status", status(600, "x"), record.ClassBadResponse, "HTTP 600"},
	{"half a gzip head", raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 90\r\n\r\n\x1f\x8b", closeIt), record.ClassTruncated, ""},
	{"gzip error", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(400)
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"error":{"message":"too long"}}`)
		_ = z.Close()
	}, record.ClassHTTP4xx, "HTTP 400: too long"},
	{"control characters", status(500, "\x1b[2Jx\xff\r\ny"), record.ClassHTTP5xx, "HTTP 500: \ufffd[2Jx\ufffd  y"},
	{"interim responses", raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+chunked+frame(word+done), closeIt), "", ""},
	{"interim responses alone", raw(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9), closeIt), record.ClassBadResponse, "interim"},
	{"head of 1 MiB", raw(strings.Replace(chunked, "\r\n", "\r\nX-Big: "+strings.Repeat("x", 1<<20)+"\r\n", 1)+frame(word+done), closeIt), "", ""},
	{"head without end", raw("HTTP/1.1 200 OK\r\nX-Big: "+strings.Repeat("x", maxHead), closeIt), record.ClassBadResponse, "10485760"},
	{"HTTP/1.0", raw("HTTP/1.0 200 OK\r\n\r\n"+word+done, closeIt), "", ""},
	{"broken gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		typed("text/event-stream", "data: no gzip\n\n")(w, r)
	}, record.ClassBadResponse, "gzip"},
}

func TestClasses(t *testing.T) {
	for _, c := range classCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, results := over(t, serve(t, c.answer), every(ms, 2), nil)
			for _, r := range results {
				wantState := record.Failed
				if c.class == "" {
					wantState = record.Completed
				}
				if r.State != wantState || r.Class != c.class || !strings.Contains(r.Error, c.message) {
					t.Errorf("got %v, class %q, %q; want %v, %q, %q", r.State, r.Class, r.Error, wantState, c.class, c.message)
				}
				if r.Sent == record.NoTime || r.End < r.Sent || r.Attempts != 1 || r.BytesSent == 0 {
					t.Errorf("sent %v, end %v, %d attempts, %d bytes", r.Sent, r.End, r.Attempts, r.BytesSent)
				}
			}
			if (c.class != "") != out.Lost() {
				t.Errorf("lost: %v", out.Lost())
			}
		})
	}
}

func TestPartialTokensOfAFailureAreKept(t *testing.T) {
	_, results := over(t, serve(t, scripted(step{0, word + word + usage(7, 2) + `data: {"error":"x"}` + "\n\n"})), every(0, 1), nil)
	if r := results[0]; r.PromptTokens != 7 || r.CompletionTokens != 2 || r.CountedOutput != 2 || r.FirstOutput == record.NoTime {
		t.Errorf("%+v", r)
	}
}

func TestCompressedAnswer(t *testing.T) { // S19
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding: %q", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/event-stream")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, word+word+done)
		_ = z.Close()
	})
	out, results := over(t, url, every(0, 1), nil)
	if r := results[0]; r.State != record.Completed || r.CountedOutput != 2 {
		t.Errorf("%v %s", r.State, r.Error)
	}
	if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "compressed") {
		t.Errorf("notes %q", out.Notes)
	}
}

func TestTimeouts(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"no response": scripted(step{time.Minute, ""}),
		"in a stream": scripted(step{0, word}, step{time.Minute, word}),
		"in a gzip head": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Encoding", "gzip")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"in an error": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, results := over(t, serve(t, h), every(0, 1), func(c *Config) { c.Timeout = 100 * ms })
			if r := results[0]; r.Class != record.ClassTimeout || !strings.Contains(r.Error, "100ms") {
				t.Errorf("%v %s %q", r.State, r.Class, r.Error)
			}
		})
	}
}

// A body that stays open after [DONE] does not hold the request up.
func TestOpenBodyAfterDone(t *testing.T) {
	_, results := over(t, serve(t, scripted(step{0, word + done}, step{time.Minute, ""})), every(0, 1), nil)
	if r := results[0]; r.State != record.Completed || r.End > drainTime {
		t.Errorf("%v %q, end %v", r.State, r.Error, r.End)
	}
}

func TestTLS(t *testing.T) { // R13
	s := httptest.NewUnstartedServer(answers(scripted(step{0, word + done})))
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	out, results := over(t, s.URL, every(ms, 3), nil)
	for _, r := range results {
		if r.Class != record.ClassTLS {
			t.Errorf("untrusted: %v %s %q", r.State, r.Class, r.Error)
		}
	}
	if len(out.Errors) != 1 || !strings.Contains(out.Errors[record.ClassTLS], "certificate") {
		t.Errorf("errors %q", out.Errors)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, change := range map[string]func(*Config){
		"cacert":   func(c *Config) { c.Client.CACert = ca },
		"insecure": func(c *Config) { c.Client.Insecure = true },
	} {
		if out, _ := over(t, s.URL, every(ms, 3), change); out.Completed != 3 {
			t.Errorf("%s: %+v", name, out)
		}
	}
	plain := serve(t, scripted(step{0, word + done}))
	if _, results := over(t, strings.Replace(plain, "http:", "https:", 1), every(0, 1), nil); results[0].Class != record.ClassTLS {
		t.Errorf("https to an http port: %s %q", results[0].Class, results[0].Error)
	}
}

func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	_ = l.Close()
	out, results := over(t, url, every(0, 2), nil)
	for _, r := range results {
		if r.Class != record.ClassConnect || r.Sent != record.NoTime {
			t.Errorf("%v %s %q sent %v", r.State, r.Class, r.Error, r.Sent)
		}
	}
	if len(out.Target.Notes) != 1 || !strings.Contains(out.Target.Notes[0], "not ready") {
		t.Errorf("notes %q", out.Target.Notes)
	}
}

func TestClassify(t *testing.T) {
	wrap := func(err error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)} }
	for _, c := range []struct {
		err  error
		want string
	}{
		{wrap(syscall.EMFILE), record.ClassClientLimit},
		{wrap(syscall.EADDRNOTAVAIL), record.ClassClientLimit},
		{wrap(syscall.ENFILE), record.ClassClientLimit},
		{wrap(syscall.ENOMEM), record.ClassClientLimit},
		{wrap(syscall.ECONNREFUSED), record.ClassConnect},
		{wrap(syscall.EHOSTUNREACH), record.ClassConnect},
		{&net.DNSError{Err: "no such host", Name: "x.invalid", IsNotFound: true}, record.ClassDNS},
		{&net.DNSError{Err: "dial udp: socket: too many open files"}, record.ClassClientLimit},
		{io.EOF, record.ClassConnect},
	} {
		if got := new(attempt).classify(c.err); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

// A name that does not resolve fails each request, and is asked for once (R10).
func TestNameIsResolvedOnce(t *testing.T) {
	gone := &name{known: make(chan struct{}), err: &net.DNSError{Err: "no such host", Name: "gone.invalid"}}
	close(gone.known)
	n := &names{known: map[string]*name{"gone.invalid": gone}}
	for range 3 {
		if _, err := n.lookup(context.Background(), "gone.invalid"); new(attempt).classify(err) != record.ClassDNS {
			t.Errorf("got %v", err)
		}
	}
	n.known["slow.invalid"] = &name{known: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.lookup(ctx, "slow.invalid"); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that is over waits for the resolver: %v", err)
	}
	if addrs, err := n.lookup(context.Background(), "127.0.0.1"); err != nil || len(addrs) != 1 {
		t.Errorf("address: %v %v", addrs, err)
	}
}

// A server that closes idle connections without a word costs no request.
func TestIdleConnectionClosedByServer(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(answers(scripted(step{0, word + done})))
	s.Config.IdleTimeout = time.Second
	s.Start()
	t.Cleanup(s.Close)
	reqs := every(time.Second, 3)
	for i := range 20 { // around the end of the idle time
		r := record.NewRequest()
		r.Row, r.Arrival, r.InputTokens, r.OutputTokens = int64(3+i), time.Second-2*ms+time.Duration(i)*200*time.Microsecond, 4, 2
		reqs = append(reqs, r)
	}
	if out, _ := over(t, s.URL, reqs, nil); out.Completed != out.Planned {
		t.Errorf("%+v", out)
	}
}

// A server that closes a reused connection on receipt of a request is a
// failure, and is asked once.
func TestReusedConnectionClosedAtOnce(t *testing.T) {
	asked := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 2 {
			raw("", closeIt)(w, r)
			return
		}
		scripted(step{0, word + done})(w, r)
	})
	out, results := over(t, url, every(20*ms, 3), func(c *Config) { c.MaxConcurrency = 1 })
	if out.Completed != 2 || results[1].Class != record.ClassConnect || results[1].Attempts != 1 || asked != 3 {
		t.Errorf("asked %d times; %+v", asked, results[1])
	}
}

func TestOptionalFieldsAreLearnt(t *testing.T) { // R25
	var bodies []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		for _, f := range []string{"stream_options", "min_tokens"} {
			if strings.Contains(string(b), f) {
				w.WriteHeader(400)
				fmt.Fprintf(w, `{"error":{"message":"unknown field %s"}}`, f)
				return
			}
		}
		scripted(step{0, word + done})(w, r)
	})
	out, results := over(t, url, every(100*ms, 3), func(c *Config) { c.IgnoreEOS = true; c.MaxConcurrency = 1 })
	if out.Completed != 3 || results[0].Attempts != 3 || results[1].Attempts != 1 || len(bodies) != 5 {
		t.Errorf("%+v, attempts %d %d, %d bodies", out, results[0].Attempts, results[1].Attempts, len(bodies))
	}
	if !strings.Contains(bodies[4], "ignore_eos") || len(out.Notes) != 2 {
		t.Errorf("last body %s, notes %q", bodies[4], out.Notes)
	}
}

// A refusal of something else that quotes the whole body, as validators do,
// takes no field from the requests after it.
func TestQuotedFieldsAreNotLearnt(t *testing.T) {
	var bodies []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		if len(bodies) <= 2 { // the first request, with stream_options and without
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"detail":[{"loc":["body","user"],"msg":"Field required","input":%s}]}`, b)
			return
		}
		scripted(step{0, word + done})(w, r)
	})
	out, results := over(t, url, every(100*ms, 2), func(c *Config) { c.MaxConcurrency = 1 })
	if out.Completed != 1 || results[0].Class != record.ClassHTTP4xx || len(out.Notes) != 0 {
		t.Errorf("%+v, first %v %s", out, results[0].Class, results[0].Error)
	}
	if len(bodies) != 3 || strings.Contains(bodies[1], "stream_options") || !strings.Contains(bodies[2], "stream_options") {
		t.Errorf("bodies %q", bodies)
	}
}

func TestSeveralServersTakeTurns(t *testing.T) {
	a, b := serve(t, scripted(step{0, word + done})), serve(t, status(500, ""))
	_, results := over(t, a, every(ms, 6), func(c *Config) { c.URLs = append(c.URLs, b) })
	for i, r := range results {
		if r.Replica != i%2 || (r.State == record.Completed) != (i%2 == 0) {
			t.Errorf("request %d: replica %d, %v", i, r.Replica, r.State)
		}
	}
}

// Each server has a cache of its own: the first to get a prompt has no hit.
func TestPredictionIsPerServer(t *testing.T) {
	a, b := serve(t, scripted(step{0, word + done})), serve(t, scripted(step{0, word + done}))
	reqs := every(ms, 4)
	for i := range reqs {
		reqs[i].InputTokens, reqs[i].Blocks = 64, []uint64{1, 2, 3, 4}
	}
	change := func(c *Config) { c.URLs, c.Header.BlockSize, c.ServerBlockSize = []string{a, b}, 16, 16 }
	_, results := over(t, a, reqs, change)
	for i, want := range []int64{0, 0, 48, 48} {
		if got := results[i].PredictedHit; got != want {
			t.Errorf("request %d: predicted %d, want %d", i, got, want)
		}
	}
}
