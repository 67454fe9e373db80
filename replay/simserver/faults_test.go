package simserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseFaults(t *testing.T) {
	for _, c := range []struct{ spec, want, err string }{
		{"", "", ""},
		{"  ", "", ""},
		{"429:0.1", "429:0.1", ""},
		{"429:0.1, cut:5e-2,hang:0", "429:0.1,cut:0.05,hang:0", ""},
		{"cut:1", "cut:1", ""},
		{"cut", "", `item "cut": found no ':', expected kind:probability`},
		{"cut:x", "", `found probability "x", expected a number from 0 to 1`},
		{"cut:", "", `found probability "", expected`},
		{"cut:1.5", "", `kind "cut": found probability 1.5, expected 0 to 1`},
		{"cut:-0.1", "", "found probability -0.1"},
		{"cut:NaN", "", "found probability NaN"},
		{"cut:0.6,end:0.6", "", "add up to 1.2, expected at most 1"},
		{"cut:0.1,cut:0.1", "", `kind "cut": found twice`},
		{"boom:0.1", "", `found kind "boom", expected one of 302, 400, 404`},
		{"cut:0.1,,end:0.1", "", `item ""`},
	} {
		f, err := ParseFaults(c.spec)
		if c.err == "" && (err != nil || f.String() != c.want) {
			t.Errorf("%q: %q, %v; want %q", c.spec, f.String(), err, c.want)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %v, want …%s…", c.spec, err, c.err)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, s := range []string{"429:0.1,cut:0.05", "hang:1e-3", "cut:NaN", ":", "cut:0.5,end:0.5,no_done:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		faults, err := ParseFaults(spec)
		if err != nil {
			return
		}
		again, err := ParseFaults(faults.String())
		if err != nil || again.String() != faults.String() {
			t.Fatalf("%q is %q, and that is %q, %v", spec, faults, again, err)
		}
		sum := 0.0
		for _, k := range faults.kinds {
			sum += k.probability
		}
		if !(sum >= 0 && sum <= 1.001) {
			t.Fatalf("%q adds up to %v", spec, sum)
		}
	})
}

// Faults come as often as asked, the same with the same seed, others with another.
func TestFaultsAreSeeded(t *testing.T) {
	f, err := ParseFaults("429:0.1,cut:0.05")
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	count, differ := map[string]int{}, 0
	for i := range uint64(n) {
		kind := f.pick(1, i)
		count[kind]++
		if kind != f.pick(1, i) {
			t.Fatal("the same seed and number gave two faults")
		}
		if kind != f.pick(2, i) {
			differ++
		}
	}
	// Six standard deviations of a binomial count.
	for kind, p := range map[string]float64{"429": 0.1, "cut": 0.05, "": 0.85} {
		if d := math.Abs(float64(count[kind]) - n*p); d > 6*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%q came %d times of %d, want about %v", kind, count[kind], n, n*p)
		}
	}
	if differ == 0 {
		t.Error("another seed gave the same faults")
	}
	rapid.Check(t, func(rt *rapid.T) {
		if got := (Faults{}).pick(rapid.Uint64().Draw(rt, "seed"), rapid.Uint64().Draw(rt, "n")); got != "" {
			rt.Fatalf("no faults gave %q", got)
		}
	})
}

// outcome is what a client sees of one request.
type outcome struct {
	status  int
	header  http.Header
	body    string
	err     error // of the request
	readErr error // of the body
}

// seen makes a request and reads its answer. Of a kind that never ends it waits
// a moment only.
func seen(client *http.Client, kind, url, body string) outcome {
	patience := 20 * time.Second
	if kind == "hang" || kind == "stall" {
		patience = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return outcome{err: err}
	}
	resp, err := client.Do(req)
	if err != nil {
		return outcome{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return outcome{status: resp.StatusCode, header: resp.Header, body: string(b), readErr: err}
}

// faultCheck says what is wrong with how a kind of fault looks in a stream of
// 8 tokens, "" if nothing.
type faultCheck func(o outcome) string

func expect(ok bool, complaint string) string {
	if ok {
		return ""
	}
	return complaint
}

func httpError(status int) faultCheck {
	return func(o outcome) string {
		return expect(o.status == status && json.Valid([]byte(o.body)) && strings.Contains(o.body, `{"error":{`), "want an error object with the status")
	}
}

// texts counts the events with text.
func texts(o outcome) int { return strings.Count(o.body, `"text":" `) }

var faultChecks = map[string]faultCheck{
	"302": func(o outcome) string {
		return expect(o.status == 302 && o.header.Get("Location") != "", "want a redirect")
	},
	"400": httpError(400), "404": httpError(404), "500": httpError(500), "503": httpError(503),
	"429": func(o outcome) string {
		return httpError(429)(o) + expect(o.header.Get("Retry-After") == "1", "want Retry-After: 1")
	},
	"reset": func(o outcome) string { return expect(errors.Is(o.err, syscall.ECONNRESET), "want a reset") },
	"close": func(o outcome) string { return expect(errors.Is(o.err, io.EOF), "want the end of the connection") },
	"hang":  func(o outcome) string { return expect(errors.Is(o.err, context.DeadlineExceeded), "want a time-out") },
	"html": func(o outcome) string {
		return expect(o.status == 200 && strings.HasPrefix(o.header.Get("Content-Type"), "text/html") && strings.HasPrefix(o.body, "<!DOCTYPE html>"), "want a page")
	},
	"error_body": httpError(200),
	"cut": func(o outcome) string {
		return expect(o.status == 200 && texts(o) == 4 && errors.Is(o.readErr, io.ErrUnexpectedEOF), "want 4 tokens and a cut")
	},
	"end": func(o outcome) string {
		return expect(texts(o) == 4 && o.readErr == nil && !strings.Contains(o.body, `"length"`) && !strings.Contains(o.body, "[DONE]"), "want 4 tokens and a clean end")
	},
	"stall": func(o outcome) string {
		return expect(texts(o) == 4 && errors.Is(o.readErr, context.DeadlineExceeded), "want 4 tokens and a time-out")
	},
	"error": func(o outcome) string {
		return expect(texts(o) == 4 && strings.Contains(o.body, "\n\ndata: {\"error\":{") && strings.HasSuffix(o.body, "data: [DONE]\n\n"), "want 4 tokens, an error, [DONE]")
	},
	"error_event": func(o outcome) string {
		return expect(texts(o) == 4 && strings.Contains(o.body, "\n\nevent: error\ndata: {\"error\":{") && !strings.Contains(o.body, "[DONE]"), "want 4 tokens and an error event")
	},
	"badjson": func(o outcome) string {
		return expect(texts(o) == 8 && strings.Contains(o.body, "[{\"ind\n\n") && strings.HasSuffix(o.body, "data: [DONE]\n\n"), "want 8 tokens, a broken event, [DONE]")
	},
	"no_done": func(o outcome) string {
		return expect(texts(o) == 8 && o.readErr == nil && strings.Contains(o.body, `"length"`) && !strings.Contains(o.body, "[DONE]"), "want 8 tokens and no [DONE]")
	},
}

// Every kind of fault looks as it says, in instant and in timed servers.
func TestFaultsInStreams(t *testing.T) {
	for _, kind := range FaultKinds() {
		for _, step := range []time.Duration{0, time.Millisecond} {
			t.Run(kind+"/"+step.String(), func(t *testing.T) {
				t.Parallel()
				faults, err := ParseFaults(kind + ":1")
				if err != nil {
					t.Fatal(err)
				}
				s, client := started(t, Config{Faults: faults, DecodeStep: step})
				o := seen(client, kind, s.URL()+"/v1/completions", `{"prompt":"x","max_tokens":8,"stream":true}`)
				check, ok := faultChecks[kind]
				if !ok {
					t.Fatal("this kind has no test")
				}
				if complaint := check(o); complaint != "" {
					t.Errorf("%s, got %+v", complaint, o)
				}
				if FaultMeaning(kind) == "" {
					t.Error("no meaning")
				}
			})
		}
	}
}

// The same kinds where the answer is whole.
func TestFaultsInWholeAnswers(t *testing.T) {
	for kind, check := range map[string]faultCheck{
		"error": httpError(200), "error_event": httpError(200), "error_body": httpError(200),
		"end": func(o outcome) string {
			return expect(o.readErr == nil && !json.Valid([]byte(o.body)), "want half an answer")
		},
		"badjson": func(o outcome) string {
			return expect(o.readErr == nil && !json.Valid([]byte(o.body)), "want half an answer")
		},
		"cut": func(o outcome) string {
			return expect(errors.Is(o.readErr, io.ErrUnexpectedEOF) && o.body != "", "want half an answer and a cut")
		},
		"stall": func(o outcome) string {
			return expect(errors.Is(o.readErr, context.DeadlineExceeded), "want a time-out")
		},
		"no_done": func(o outcome) string { return expect(json.Valid([]byte(o.body)), "want a whole answer") },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			faults, err := ParseFaults(kind + ":1")
			if err != nil {
				t.Fatal(err)
			}
			s, client := started(t, Config{Faults: faults})
			o := seen(client, kind, s.URL()+"/v1/completions", `{"prompt":"x","max_tokens":8}`)
			if complaint := check(o); complaint != "" {
				t.Errorf("%s, got %+v", complaint, o)
			}
		})
	}
}

// Faults befall generation requests alone.
func TestFaultsSpareTheRest(t *testing.T) {
	faults, err := ParseFaults("reset:1")
	if err != nil {
		t.Fatal(err)
	}
	s, client := started(t, Config{Faults: faults})
	for _, path := range []string{"/health", "/v1/models", "/metrics"} {
		resp, err := client.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}
