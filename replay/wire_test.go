package replay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retrace/record"
)

// counted is a server that counts its connections.
func counted(t *testing.T, h http.HandlerFunc) (url string, opened *atomic.Int64) {
	t.Helper()
	opened = new(atomic.Int64)
	s := httptest.NewUnstartedServer(answers(h))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, opened
}

// R07: as many connections as requests at once, whatever the kind of answer.
func TestConnectionsAreReused(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"stream":    scripted(step{0, word + event("", "stop") + done}),
		"no DONE":   scripted(step{0, word + event("", "stop")}),
		"error":     status(500, `{"error":"no"}`),
		"empty":     status(503, ""),
		"plain":     typed("application/json", `{"choices":[{"text":"x","finish_reason":"stop"}]}`),
		"no events": typed("text/event-stream", ""),
	} {
		t.Run(name, func(t *testing.T) {
			url, opened := counted(t, h)
			out, _ := over(t, url, every(0, 200), func(c *Config) { c.MaxConcurrency = 8 })
			if out.Completed+out.Failed != 200 || opened.Load() > 8 || out.Opened+out.Reused != 200 {
				t.Errorf("%d connections; %+v", opened.Load(), out)
			}
		})
	}
}

// An answer that says so, or that is not read to its end, ends its connection.
func TestConnectionsThatEnd(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"close": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			scripted(step{0, word + done})(w, r)
		},
		"HTML": typed("text/html", html+strings.Repeat("x", 1<<20)),
	} {
		url, opened := counted(t, h)
		// The first requests are for /health and /v1/models.
		if _, results := over(t, url, every(20*ms, 3), func(c *Config) { c.MaxConcurrency = 1 }); opened.Load() != 3 || len(results) != 3 {
			t.Errorf("%s: %d connections", name, opened.Load())
		}
	}
}

// A server may answer, and close, before it has read a large body; and it may
// never read it.
func TestLargeBodyIsNotRead(t *testing.T) {
	reqs := every(0, 1)
	reqs[0].InputTokens = 3_000_000 // 18 MB, more than sockets hold
	for name, c := range map[string]struct {
		answer string
		class  string
	}{
		"answered": {"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}", record.ClassHTTP4xx},
		"silent":   {"", record.ClassTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			defer close(gone)
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				_, _ = io.WriteString(conn, c.answer)
				<-gone
				_ = conn.Close()
			})
			_, results := over(t, url, reqs, func(c *Config) { c.Timeout = 2 * time.Second })
			if got := results[0].Class; got != c.class {
				t.Errorf("got %s, want %s: %s", got, c.class, results[0].Error)
			}
		})
	}
}

// The account of a request is its own: a connection that has gone on to the
// next one does not change it.
func TestAccountsAreApart(t *testing.T) {
	_, results := over(t, serve(t, scripted(step{0, word + word + done})), every(0, 300), func(c *Config) { c.MaxConcurrency = 4 })
	for _, r := range results {
		if r.BytesReceived < int64(2*len(word)+len(done)) || r.BytesSent < 100 || r.End < r.LastOutput {
			t.Fatalf("request %s: %d bytes sent, %d received, last output %v, end %v", r.ID, r.BytesSent, r.BytesReceived, r.LastOutput, r.End)
		}
	}
}

// Where the time for a connection is up, that is a timeout, whichever timer saw
// it first.
func TestConnectTimeout(t *testing.T) {
	_, results := over(t, "http://127.0.0.1:9", every(ms, 20), func(c *Config) {
		c.Timeout, c.ReadyTimeout = 50*ms, -1
		c.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			end, ok := ctx.Deadline()
			if !ok {
				return nil, errors.New("no deadline")
			}
			time.Sleep(time.Until(end) - 100*time.Microsecond)
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
		}
	})
	for _, r := range results {
		if r.Class != record.ClassTimeout || r.Error != "no connection within 50ms" {
			t.Errorf("got %s: %s", r.Class, r.Error)
		}
	}
}

// Where too much would be kept, a request cannot be made once more.
func TestPlansAreDroppedWhereTheyAreMany(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "stream_options") {
			status(400, `{"error":"unknown field stream_options"}`)(w, r)
			return
		}
		scripted(step{0, word + done})(w, r)
	})
	reqs := every(20*ms, 2)
	for i := range reqs {
		reqs[i].InputTokens = 9 << 17
		for b := range uint64(9 << 17) { // 18 MiB of segments
			reqs[i].Blocks = append(reqs[i].Blocks, b)
		}
	}
	out, results := over(t, url, reqs, func(c *Config) { c.Header.BlockSize = 1; c.MaxConcurrency = 1 })
	if results[0].Class != record.ClassHTTP4xx || results[1].State != record.Completed || out.Failed != 1 {
		t.Errorf("%+v", out)
	}
}

// R08: a request that waits for its answer costs little, so that as many as
// --max-in-flight allows by default stay within 256 MiB.
func TestMemoryOfRequestsInFlight(t *testing.T) {
	const many, most = 2000, 16 << 10
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // what is accepted is closed below
	var accepted []net.Conn
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted = append(accepted, c)
		}
	}()
	used := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before := used()
	var held int64
	ctx, cancel := context.WithCancel(t.Context())
	out, err := Run(ctx, Config{
		URLs: []string{"http://" + l.Addr().String()}, Model: "m", ReadyTimeout: -1, Grace: -1,
		Progress: func(p Progress) {
			if p.Sent == many && held == 0 {
				held = used() - before
				cancel()
			}
		},
	}, seq(every(ms/4, many)))
	cancel()
	_ = l.Close()
	<-gone
	for _, c := range accepted {
		_ = c.Close()
	}
	if err != nil || out.Cancelled != many {
		t.Fatalf("%v: %+v", err, out)
	}
	if each := held / many; each > most {
		t.Errorf("a request in flight holds %d bytes, want at most %d", each, most)
	} else {
		t.Logf("a request in flight holds %d bytes", each)
	}
}
