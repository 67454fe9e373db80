package simserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retrace/openai"
)

// bodies are a request of each API, but for the form's.
var bodies = map[openai.API]string{
	openai.Completions: `{"prompt":"x","max_tokens":4`, openai.Chat: `{"messages":[{"role":"user","content":"x"}],"max_tokens":4`,
	openai.Responses: `{"input":"x","max_output_tokens":4`, openai.Embeddings: `{"input":"x"`, openai.Rerank: `{"query":"x","documents":["y"]`,
	openai.Invocations: `{"inputs":"x","parameters":{"max_new_tokens":4}`, openai.InvocationsStream: `{"inputs":"x","parameters":{"max_new_tokens":4}`,
}

// Every fault of one kind befalls each API, streaming and not: a status is
// what it says, and of what breaks in the middle less arrives than of a sound
// answer.
func TestFaultsOfEveryAPI(t *testing.T) {
	sound := map[string]string{}
	for _, kind := range []string{"", "429", "html", "error_body", "cut", "end", "error", "error_event", "badjson", "no_done"} {
		cfg := instantConfig()
		if kind != "" {
			faults, err := ParseFaults(kind + ":1")
			if err != nil {
				t.Fatal(err)
			}
			cfg.Faults = faults
		}
		s, client := started(t, cfg)
		for api, body := range bodies {
			for _, more := range []string{"}", `,"stream":true}`} {
				status, text, err := fetch(t, client, s.URL()+api.Path(), body+more)
				name := string(api) + more
				if kind == "" {
					sound[name] = text
				}
				if msg := wrongFault(kind, status, text, sound[name], err); msg != "" {
					t.Errorf("%s of %s: %s: status %d, %q, %v", kind, name, msg, status, text, err)
				}
			}
		}
	}
}

func fetch(t *testing.T, client *http.Client, url, body string) (int, string, error) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// wrongFault says what is wrong with an answer under a fault, "" for nothing.
func wrongFault(kind string, status int, text, sound string, err error) string {
	switch {
	case kind == "429" && status != 429, kind != "429" && status != 200:
		return "wrong status"
	case kind == "cut" && err == nil, kind != "cut" && err != nil:
		return "wrong end"
	case kind == "html" && !strings.Contains(text, "<html>"):
		return "no page"
	case strings.HasPrefix(kind, "error") && !strings.Contains(text, brokenMessage):
		return "no error object"
	case (kind == "end" || kind == "cut") && len(text) >= len(sound):
		return "a whole answer"
	}
	return ""
}

// A request of lower number overtakes those that wait, by the API.
func TestPriorityOvertakes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxBatch = 1
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		var order []string
		done := make(chan string, 4)
		for i, priority := range []int{0, 3, -2, 0} {
			g := prepared(t, s, ask(i*1000, 20, 3, fmt.Sprintf(`,"priority":%d`, priority)))
			s.engine.submit(g.call)
			go func() {
				for !g.finished() {
					<-g.call.bell
				}
				done <- fmt.Sprint(i)
			}()
			if i == 0 {
				time.Sleep(time.Millisecond) // it runs when the others come
			}
			synctest.Wait()
		}
		for range 4 {
			order = append(order, <-done)
		}
		if got := strings.Join(order, " "); got != "0 2 3 1" {
			t.Errorf("finished in the order %s, want 0 2 3 1", got)
		}
	})
}

// The metrics of one request are vLLM's, of its own times: 25,000 prompt tokens
// a second and 8 ms a step.
func TestRequestMetrics(t *testing.T) {
	cfg := DefaultConfig()
	cfg.RequestMetrics = true
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		g := prepared(t, s, ask(0, 1000, 3, ""))
		s.engine.submit(g.call)
		for !g.finished() {
			<-g.call.bell
		}
		times := s.tail(g).Times
		// The first step computes 1,000 tokens: 40 ms and 0.995 of 8 ms.
		if times.Prefill != 47_960*time.Microsecond || times.Decode != 16*time.Millisecond || times.Queue != 0 {
			t.Errorf("%+v", times)
		}
	})
}

// A client that says it has much and sends little makes the server hold little.
func TestClaimedLength(t *testing.T) {
	r := &http.Request{ContentLength: maxBody, Body: io.NopCloser(strings.NewReader("{}"))}
	body, fail := readBody(r, nil)
	if fail != nil || string(body) != "{}" || cap(body) > maxKept {
		t.Errorf("%q, %v, %d bytes held", body, fail, cap(body))
	}
}
