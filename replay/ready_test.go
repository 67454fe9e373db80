package replay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retrace/record"
)

// TestServersAwaitedAtOnce: of three servers two never come up; the wait is one
// --ready-timeout, and the model is that of the third.
func TestServersAwaitedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/models" {
				fmt.Fprint(w, `{"data":[{"id":"third"}]}`)
				return
			}
			measured(0, http.NotFound).ServeHTTP(w, r)
		}))
		defer func() { _ = b.server.Close() }()
		cfg := Config{
			URLs: []string{"http://a", "http://b", "http://c"}, ReadyTimeout: 4 * time.Second, ServerBlockSize: 16, coarse: true,
			dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if strings.HasPrefix(addr, "c:") {
					return b.dial(ctx, network, addr)
				}
				return nil, errors.New("connection refused")
			},
		}
		began := time.Now()
		out, err := Run(context.Background(), cfg, func(yield func(record.Request, error) bool) {
			for i := range 3 {
				r := record.NewRequest()
				r.Row, r.Arrival, r.InputTokens, r.OutputTokens = int64(i), 0, 4, 1
				if !yield(r, nil) {
					return
				}
			}
		})
		if err != nil || out.Completed != 1 || out.Failed != 2 || out.Target.Model != "third" {
			t.Errorf("outcome %+v, error %v", out, err)
		}
		if wait := time.Since(began); wait < 4*time.Second || wait > 5*time.Second {
			t.Errorf("waited %v, want 4 s for all together", wait)
		}
		if n := len(out.Target.Notes); n != 2 || !strings.Contains(out.Target.Notes[0], "server http://a is not ready") {
			t.Errorf("notes %q", out.Target.Notes)
		}
	})
}

// TestReadyTimeoutHeld: a server that takes the connection and says nothing is
// waited for as long as was asked, not as long as one request may take, and the
// warning says what it did.
func TestReadyTimeoutHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" {
				<-r.Context().Done()
				return
			}
			http.NotFound(w, r)
		}))
		defer func() { _ = b.server.Close() }()
		for _, c := range []struct{ timeout, least, most time.Duration }{
			{2 * time.Second, 2 * time.Second, 2500 * time.Millisecond},
			{7 * time.Second, 7 * time.Second, 7500 * time.Millisecond},
			{-1, getTimeout, getTimeout + 500*time.Millisecond}, // one look
		} {
			cfg := Config{URLs: []string{"http://a"}, ReadyTimeout: c.timeout, Model: "m", ServerBlockSize: 16, coarse: true, dial: b.dial}
			began := time.Now()
			out, err := Run(context.Background(), cfg, func(func(record.Request, error) bool) {})
			if wait := time.Since(began); err != nil || wait < c.least || wait > c.most {
				t.Errorf("timeout %v: waited %v, error %v", c.timeout, wait, err)
			}
			want := fmt.Sprintf("server http://a is not ready: GET /health: no answer within %v; sending all the same", min(c.least, getTimeout))
			if n := out.Target.Notes; len(n) != 1 || n[0] != want {
				t.Errorf("timeout %v: notes %q, want %q", c.timeout, n, want)
			}
		}
	})
}
