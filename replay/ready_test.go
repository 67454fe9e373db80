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
