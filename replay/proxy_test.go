package replay

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
)

// R11: the environment's proxy is never taken, a named one always.
func TestProxy(t *testing.T) {
	var passed atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		if r.URL.Host == "" {
			t.Errorf("the proxy was asked for %v", r.URL)
		}
		(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}).ServeHTTP(w, r)
	}))
	defer proxy.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections() // the proxy's own
	url := serve(t, scripted(step{0, word + done}))

	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	if out, _ := over(t, url, every(0, 2), nil); out.Completed != 2 || passed.Load() != 0 || out.Target.Proxy != "" {
		t.Errorf("environment: %+v, passed %d", out, passed.Load())
	}
	named := strings.Replace(proxy.URL, "http://", "http://user:secret@", 1)
	out, _ := over(t, url, every(0, 2), func(c *Config) { c.Client.Proxy = named })
	if out.Completed != 2 || passed.Load() < 2 || !strings.HasPrefix(out.Target.Proxy, "http://***@127.0.0.1:") {
		t.Errorf("named: %+v, passed %d", out, passed.Load())
	}
	for _, bad := range []string{"%zz", "nohost"} {
		if _, err := Run(t.Context(), Config{URLs: []string{url}, Client: ClientConfig{Proxy: bad}}, seq(nil)); err == nil {
			t.Errorf("proxy %q: no error", bad)
		}
	}
}

func TestEmptyTrace(t *testing.T) {
	out, results := over(t, serve(t, scripted(step{0, word + done})), nil, nil)
	if out.Planned != 0 || len(results) != 0 || out.Lost() {
		t.Errorf("%+v", out)
	}
}

// A server that has neither /health nor /v1/models is taken as it is.
func TestBareServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/completions" {
			http.NotFound(w, r)
			return
		}
		scripted(step{0, word + done})(w, r)
	}))
	defer s.Close()
	out, _ := over(t, s.URL, every(0, 1), nil)
	if out.Completed != 1 || out.Target.Model != "" || len(out.Target.Notes) != 1 {
		t.Errorf("%+v", out)
	}
}

// A server that starts up is waited for.
func TestServerThatStarts(t *testing.T) {
	looks := 0
	mux := answers(scripted(step{0, word + done}))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			if looks++; looks < 3 {
				w.WriteHeader(503)
				return
			}
		}
		mux.ServeHTTP(w, r)
	}))
	defer s.Close()
	out, _ := over(t, s.URL, every(0, 1), func(c *Config) { c.ReadyTimeout = 0 })
	if out.Completed != 1 || looks != 3 || len(out.Target.Notes) != 0 {
		t.Errorf("looks %d, %+v", looks, out)
	}
}
