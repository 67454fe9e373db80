package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// secret is a credential as a user gives it, and as a server gets it.
type secret struct {
	text  string                             // must be nowhere
	args  func(url string) []string          // gives it
	there func(r *http.Request) (got string) // what arrives
	want  string
}

// secrets are all the ways to give one (R14).
func secrets() map[string]secret {
	const key, password = "sk-0123456789", "hunter2hunter2"
	header := func(name string) func(*http.Request) string {
		return func(r *http.Request) string { return r.Header.Get(name) }
	}
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + password))
	return map[string]secret{
		"environment":   {key, func(u string) []string { return []string{"--url", u, "--api-key-env", "RETRACE_TEST_KEY"} }, header("Authorization"), "Bearer " + key},
		"authorization": {key, func(u string) []string { return []string{"--url", u, "--header", "Authorization: Bearer " + key} }, header("Authorization"), "Bearer " + key},
		"x-api-key":     {key, func(u string) []string { return []string{"--url", u, "--header", "x-api-key:" + key} }, header("X-Api-Key"), key},
		"api-key":       {key, func(u string) []string { return []string{"--url", u, "--header", "api-key: " + key} }, header("Api-Key"), key},
		"cookie":        {key, func(u string) []string { return []string{"--url", u, "--header", "Cookie: session=" + key} }, header("Cookie"), "session=" + key},
		"user info": {password, func(u string) []string {
			return []string{"--url", strings.Replace(u, "http://", "http://user:"+password+"@", 1)}
		}, header("Authorization"), "Basic " + basic},
		"basic credential": {basic, func(u string) []string {
			return []string{"--url", strings.Replace(u, "http://", "http://user:"+password+"@", 1)}
		}, header("Authorization"), "Basic " + basic},
		"query": {key, func(u string) []string { return []string{"--url", u + "?api_key=" + key} }, func(r *http.Request) string {
			return r.URL.Query().Get("api_key")
		}, key},
	}
}

// leaky is a server that repeats the secret wherever it can: the class of answer
// is that of the path's last part, and of what goes round.
func leaky(t *testing.T, s secret) (url string, arrived *atomic.Int64) {
	t.Helper()
	arrived = &atomic.Int64{}
	echo := func(r *http.Request) string {
		if got := s.there(r); got != s.want {
			t.Errorf("%s %s got %q", r.Method, r.URL.Path, got)
		}
		return s.text
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":"model-%s"}]}`, echo(r))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "vllm:num_requests_running{model_name=%q} 1\n", echo(r))
	})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		text := echo(r)
		_, _ = io.Copy(io.Discard, r.Body)
		switch arrived.Add(1) % 5 {
		case 0:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "bad key %s", text)
		case 1:
			http.Redirect(w, r, "http://user:"+text+"@other/?api_key="+text, http.StatusFound)
		case 2:
			fmt.Fprintf(w, "data: {\"error\":{\"message\":\"no %s\"}}\n\n", text)
		case 3:
			fmt.Fprintf(w, "<html>%s</html>", text)
		default:
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"x\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, arrived
}

// TestNoSecretsInArtefacts: a credential given in any way reaches the server in
// every run (R15) and is in nothing that is printed or written (R14), even where
// the server repeats it.
func TestNoSecretsInArtefacts(t *testing.T) {
	for name, s := range secrets() {
		t.Run(name, func(t *testing.T) {
			t.Setenv("RETRACE_TEST_KEY", s.text)
			url, arrived := leaky(t, s)
			trace := traceFile(t, 10, 0)
			for _, form := range [][]string{nil, {"--json"}, {"--dry-run"}, {"--dry-run", "--json"}} {
				rec := filepath.Join(t.TempDir(), "run.rec")
				args := append(append(s.args(url), form...), "-o", rec, "--max-lag", "10s")
				_, out, errs := replayHere(t, append([]string{trace}, args...)...)
				for what, text := range map[string]string{"stdout": out, "stderr": errs, "recording": contents(t, rec)} {
					if strings.Contains(text, s.text) {
						t.Errorf("%q: %s has %s:\n%.2000s", form, what, s.text, text)
					}
				}
			}
			if n := arrived.Load(); n != 20 {
				t.Errorf("%d requests arrived, want 10 of each of two runs", n)
			}
		})
	}
}

// contents are a recording's bytes, as they are and unpacked; "" for none.
func contents(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	plain, err := d.DecodeAll(raw, nil)
	if err != nil || len(plain) == 0 {
		t.Fatalf("unpack %s: %d bytes, %v", path, len(plain), err)
	}
	return string(raw) + string(plain)
}

// TestUntrusted: where every request fails at the certificate one sentence says
// what to do (R13).
func TestUntrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(ok))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	trace := traceFile(t, 3, 0)
	const sentence = "every request failed at the server's certificate: --cacert FILE trusts those in it, --insecure checks none"
	code, out, errs := replayHere(t, trace, "--url", server.URL, "--ready-timeout", "0", "--json", "--max-lag", "10s")
	if code != exitLoss || strings.Count(errs, sentence) != 1 || !strings.Contains(out, `"tls": 3`) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	code, out, errs = replayHere(t, trace, "--url", server.URL, "--insecure", "--max-lag", "10s")
	if code != exitOK || strings.Contains(errs, sentence) || !strings.Contains(out, "3 completed") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
