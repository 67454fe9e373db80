package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// say answers a chat with a text, numbered by request.
func say(text string) string {
	answer, _ := json.Marshal(text)
	return `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":` + string(answer) + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`
}

// messages is a chat of alternate roles.
func messages(texts ...string) string {
	var list []map[string]any
	for i, text := range texts {
		list = append(list, map[string]any{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	body, _ := json.Marshal(map[string]any{"model": "m", "messages": list})
	return string(body)
}

// A request whose messages begin with an earlier one's and its answer is the
// next turn; others are not.
func TestInferredSessions(t *testing.T) {
	next := ""
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, say(next))
	}), nil)
	for _, c := range []struct{ body, answer string }{
		{messages("hi"), " hello\n"},
		{messages("hi", "hello", "how are you"), "well"}, // the next turn, trimmed
		{messages("hi", "other", "how are you"), "well"}, // another answer
		{messages("hi", "hello", "how are you"), "fine"}, // asked again
		{messages("hi", "hello", "how are you", "fine", "good"), "yes"},
		{`{"model":"x","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"how"}]}`, "no"}, // another model
	} {
		next = c.answer
		r.post("/v1/chat/completions", c.body)
	}
	all := r.records()
	var got []string
	name := map[string]string{}
	for i := range all {
		q := &all[i]
		if _, ok := name[q.Session]; !ok {
			name[q.Session] = string(rune('a' + len(name)))
		}
		got = append(got, fmt.Sprintf("%s%d<%s", name[q.Session], q.Turn, q.Parent))
	}
	if want := "[a1< a2<0 b1< a3<0 a4<3 c1<]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// What the client names goes before what could be inferred.
func TestNamedSessions(t *testing.T) {
	type request struct{ path, body, header string }
	for _, c := range []struct {
		name string
		a, b request
		same bool
		turn int
	}{
		{"session_id", request{"/v1/completions", `{"prompt":"a","session_id":"s"}`, ""}, request{"/v1/completions", `{"prompt":"b","session_id":"s"}`, ""}, true, 2},
		{"others", request{"/v1/completions", `{"prompt":"a","session_id":"s"}`, ""}, request{"/v1/completions", `{"prompt":"b","session_id":"t"}`, ""}, false, 1},
		{"cache key", request{"/v1/responses", `{"input":"a","prompt_cache_key":"s"}`, ""}, request{"/v1/responses", `{"input":"b","prompt_cache_key":"s"}`, ""}, true, 2},
		{"header first", request{"/v1/completions", `{"prompt":"a","session_id":"s"}`, "h"}, request{"/v1/completions", `{"prompt":"b","session_id":"s"}`, "i"}, false, 1},
		{"header", request{"/v1/embeddings", `{"input":"a"}`, "h"}, request{"/v1/completions", `{"prompt":"b"}`, "h"}, true, 2},
		{"previous response", request{"/v1/responses", `{"input":"a"}`, ""}, request{"/v1/responses", `{"input":"b","previous_response_id":"resp_1"}`, ""}, true, 2},
		{"unknown response", request{"/v1/responses", `{"input":"a"}`, ""}, request{"/v1/responses", `{"input":"b","previous_response_id":"resp_9"}`, ""}, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, says("application/json", `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}],"usage":{"input_tokens":3,"output_tokens":1}}`),
				func(cfg *Config) { cfg.SessionHeader = "X-Conversation" })
			for _, q := range []request{c.a, c.b} {
				req, _ := http.NewRequest(http.MethodPost, r.front.URL+q.path, strings.NewReader(q.body))
				if q.header != "" {
					req.Header.Set("x-conversation", q.header)
				}
				resp, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			all := r.records()
			a, b := &all[0], &all[1]
			if (a.Session == b.Session) != c.same || b.Turn != c.turn || a.Session == "" && c.a.path == "/v1/responses" {
				t.Errorf("sessions %q and %q, turn %d", a.Session, b.Session, b.Turn)
			}
		})
	}
}

// A conversation is known whatever the ids of its tool calls.
func TestToolCalls(t *testing.T) {
	r := newRig(t, says("text/event-stream",
		`data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\""}}]}}]}`+"\n\n"+
			`data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n"+done), nil)
	r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"do"}],"tools":[{"type":"function"}]}`)
	r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"do"},{"role":"assistant","content":null,"tool_calls":[{"id":"other","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","content":"1"}],"tools":[{"type":"function"}]}`)
	all := r.records()
	if all[0].Session != all[1].Session || all[1].Turn != 2 || all[1].Parent != all[0].Key() || told(t, &all[0], "tools") != true {
		t.Errorf("got %+v, %+v", all[0], all[1])
	}
}
