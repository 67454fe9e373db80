package replay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retrace/record"
)

// resolver is one whose answer changes with each question.
type resolver struct {
	mu     sync.Mutex
	asked  []string
	before bool // each question came before the first request
	sent   bool
	addrs  [][]string
}

func (r *resolver) ask(_ context.Context, host string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, host)
	r.before = !r.sent
	if n := len(r.asked); n <= len(r.addrs) {
		return r.addrs[n-1], nil
	}
	return []string{"192.0.2.1"}, nil // TEST-NET-1: nobody answers there
}

// TestDNSOnce: a name is asked for once, before the first request, however many
// connections there are, metrics included; its address is in the outcome (R10).
func TestDNSOnce(t *testing.T) {
	r := &resolver{addrs: [][]string{{"127.0.0.1"}}}
	base := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.Host, "model.example:") {
			t.Errorf("host %s", req.Host)
		}
		if req.Method == http.MethodPost {
			r.mu.Lock()
			r.sent = true
			r.mu.Unlock()
		}
		w.Header().Set("Connection", "close") // each request has a connection of its own
		scripted(step{0, word + done})(w, req)
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	out, results := over(t, "http://model.example:"+u.Port(), every(time.Millisecond, 20), func(c *Config) {
		c.resolve = r.ask
		c.Series = func(*record.Series) error { return nil }
	})
	if out.Completed != 20 || out.Opened < 19 || len(results) != 20 {
		t.Errorf("completed %d of 20 over %d connections: %v", out.Completed, out.Opened, out.Errors)
	}
	if !slices.Equal(r.asked, []string{"model.example"}) || !r.before || !slices.Equal(out.Target.Addresses, []string{"127.0.0.1"}) {
		t.Errorf("asked for %q, before the first request %v; addresses %q", r.asked, r.before, out.Target.Addresses)
	}
}

// TestSecondAddress: where a name has several addresses, one of which refuses,
// the next is taken.
func TestSecondAddress(t *testing.T) {
	base := serve(t, scripted(step{0, word + done}))
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	r := &resolver{addrs: [][]string{{"127.0.0.77", "127.0.0.1"}}} // the server is at the second alone
	out, _ := over(t, "http://model.example:"+u.Port(), every(0, 3), func(c *Config) { c.resolve = r.ask })
	if out.Completed != 3 || len(r.asked) != 1 {
		t.Errorf("completed %d of 3, asked %d times: %v", out.Completed, len(r.asked), out.Errors)
	}
}

// TestNoSuchName: a name that does not resolve is asked for once, and is each
// request's error.
func TestNoSuchName(t *testing.T) {
	asked := 0
	out, results := over(t, "http://gone.invalid:1", every(0, 5), func(c *Config) {
		c.ReadyTimeout = -1
		c.resolve = func(context.Context, string) ([]string, error) {
			asked++
			return nil, &net.DNSError{Err: "no such host", Name: "gone.invalid", IsNotFound: true}
		}
	})
	if asked != 1 || out.Failed != 5 || results[0].Class != record.ClassDNS {
		t.Errorf("asked %d times, %+v", asked, out.Errors)
	}
}

// TestDNSRefresh: with a refresh of 10 s a name is asked for again by the first
// connection after that; this one still goes to the old address, the next to the
// new one; a question that fails changes nothing.
func TestDNSRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []time.Duration
		begin := time.Now()
		n := &names{refresh: 10 * time.Second, ask: func(context.Context, string) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, time.Since(begin))
			if len(asked) == 3 {
				return nil, errors.New("no answer")
			}
			return []string{fmt.Sprint("192.0.2.", len(asked))}, nil
		}}
		var got []string
		for range 9 { // at 0, 4, 8, 12, … 32 s
			addrs, err := n.lookup(t.Context(), "model.example")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, addrs[0][len("192.0.2."):])
			time.Sleep(4 * time.Second)
		}
		// asked at 0, 12 (in time for 16), 24 (fails), and 36 would be the next
		if s := strings.Join(got, ""); s != "111122222" || fmt.Sprint(asked) != "[0s 12s 24s]" {
			t.Errorf("went to %s, asked at %v", s, asked)
		}
	})
}

// TestDNSRefreshAfterAnError: a name that did not resolve is asked for again.
func TestDNSRefreshAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		n := &names{refresh: time.Second, ask: func(context.Context, string) ([]string, error) {
			if time.Since(begin) > time.Second {
				return []string{"192.0.2.1"}, nil
			}
			return nil, errors.New("no answer")
		}}
		for i, want := range []bool{false, false, true} {
			_, err := n.lookup(t.Context(), "model.example")
			if (err == nil) != want {
				t.Errorf("lookup %d: %v", i, err)
			}
			time.Sleep(2 * time.Second)
		}
	})
}
