package replay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"retrace/record"
)

func TestMaskURL(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"http://localhost:8000", "http://localhost:8000"},
		{"http://localhost:8000/v1", "http://localhost:8000/v1"},
		{"https://u:p@host/x", "https://***@host/x"},
		{"https://tok@host", "https://***@host"},
		{"https://host/x?api_key=abc&b=c", "https://host/x?api_key=***&b=***"},
		{"https://host/#frag", "https://host/"},
		{"%zz", "***"},
		{"", ""},
	} {
		if got := MaskURL(c.in); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
}

// R14, R15: what a server is sent, nobody else gets to see; and it is sent as
// it was given, however often it was masked meanwhile.
func TestSecretsGoToTheServerAlone(t *testing.T) {
	const key, password, query, header = "sk-0123456789", "hunter2hunter2", "q-9876543210", "x-abcdefgh"
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("X-Api-Key") != header || r.URL.Query().Get("api_key") != query {
			t.Errorf("the server got %v %v", r.URL, r.Header)
		}
		w.WriteHeader(401)
		fmt.Fprintf(w, `{"error":{"message":"bad key %s, header %s, query %s, password %s"}}`, key, header, query, password)
	})
	for range 2 {
		var target Target
		out, results := over(t, strings.Replace(url, "http://", "http://user:"+password+"@", 1)+"?api_key="+query, every(ms, 2), func(c *Config) {
			c.Client.APIKey = key
			c.Client.Headers = http.Header{"X-Api-Key": {header}}
			c.Started = func(got Target) error { target = got; return nil }
		})
		all := fmt.Sprintf("%+v %+v %+v", out, results, target)
		for _, secret := range []string{key, password, query, header} {
			if strings.Contains(all, secret) {
				t.Errorf("%s is in %s", secret, all)
			}
		}
		if out.Failed != 2 || !strings.Contains(results[0].Error, "bad key ***") {
			t.Errorf("%+v", results[0])
		}
	}
}

func TestBasicAuthOfTheURL(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "pw" {
			t.Errorf("got %s %s", user, password)
		}
		scripted(step{0, word + done})(w, r)
	})
	if _, results := over(t, strings.Replace(url, "http://", "http://u:pw@", 1), every(0, 1), nil); results[0].State != record.Completed {
		t.Errorf("%+v", results[0])
	}
}

// The credential that a URL's user becomes is a secret too.
func TestBasicAuthIsMasked(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(401)
		fmt.Fprint(w, "no such user: "+r.Header.Get("Authorization"))
	})
	_, results := over(t, strings.Replace(url, "http://", "http://user:hunter2@", 1), every(0, 1), nil)
	if got := results[0].Error; got != "HTTP 401: no such user: Basic ***" {
		t.Errorf("got %q", got)
	}
}

// Headers that were given win over what the key and the URL would make.
func TestGivenHeadersWin(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Values("Authorization"); len(got) != 1 || got[0] != "Custom abc" || r.Host != "model.example" {
			t.Errorf("authorization %q, host %q", got, r.Host)
		}
		scripted(step{0, word + done})(w, r)
	})
	out, _ := over(t, strings.Replace(url, "http://", "http://u:pw@", 1), every(0, 1), func(c *Config) {
		c.Client.APIKey = "sk-1"
		c.Client.Headers = http.Header{"Authorization": {"Custom abc"}, "Host": {"model.example"}}
	})
	if out.Completed != 1 {
		t.Errorf("%+v", out)
	}
}

func TestKeyIsNotSentInClear(t *testing.T) {
	for url, want := range map[string]bool{
		"http://localhost:1": true, "http://127.0.0.9:1": true, "http://[::1]:1": true, "https://api.example.com": true,
		"http://api.example.com": false, "http://10.0.0.5": false, "http://localhost.example.com": false,
	} {
		c := Config{URLs: []string{url}, Client: ClientConfig{APIKey: "sk-1"}}
		if err := c.Validate(); (err == nil) != want || err != nil && !errors.Is(err, ErrKeyInClear) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Config{URLs: []string{"http://localhost"}}
	for name, change := range map[string]func(*Config){
		"no URL":        func(c *Config) { c.URLs = nil },
		"no scheme":     func(c *Config) { c.URLs = []string{"localhost:8000"} },
		"other scheme":  func(c *Config) { c.URLs = []string{"ftp://host"} },
		"bad URL":       func(c *Config) { c.URLs = []string{"http://user:secret@%zz"} },
		"API":           func(c *Config) { c.API = "generate" },
		"chat tokens":   func(c *Config) { c.API, c.Prompt = "chat", Tokens },
		"ranked tokens": func(c *Config) { c.API, c.Prompt = "rerank", Tokens },
		"made-up audio": func(c *Config) { c.API, c.Prompt = "transcriptions", Text },
		"stream":        func(c *Config) { c.Requests.Stream = "sometimes" },
		"context":       func(c *Config) { c.Requests.OverContext = "trim" },
		"documents":     func(c *Config) { c.Requests.RerankDocuments = -1 },
		"two models":    func(c *Config) { c.Requests.ModelFromTrace, c.Requests.LoRA = true, []string{"a"} },
		"no adapter":    func(c *Config) { c.Requests.LoRA = []string{"a", ""} },
		"no context":    func(c *Config) { c.Requests.ContextLimit = -1 },
		"speed":         func(c *Config) { c.Speed = -1 },
		"limit":         func(c *Config) { c.MaxInFlight = -1 },
		"extra":         func(c *Config) { c.Extra = []byte("[]") },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestEndpoint(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"http://h:1", "/v1/completions", "http://h:1/v1/completions"},
		{"http://h:1/", "/health", "http://h:1/health"},
		{"http://h:1/v1", "/v1/models", "http://h:1/v1/models"},
		{"http://h:1/v1/", "/health", "http://h:1/health"},
		{"http://h/proxy/a?k=v", "/v1/models", "http://h/proxy/a/v1/models?k=v"},
	} {
		u, err := endpoint(c.base, c.path)
		if err != nil || u.String() != c.want {
			t.Errorf("%s %s: got %v, %v; want %s", c.base, c.path, u, err, c.want)
		}
	}
}
