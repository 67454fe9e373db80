package simserver

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What no server should take, or should take no harm from.
func TestHostileRequests(t *testing.T) {
	s, client := started(t, instantConfig())
	const one = `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/completions", `{"prompt":"x","max_tokens":1000000000}`, 400, "maximum context length"},
		{"/v1/completions", `{"prompt":"x","max_tokens":-1}`, 400, "max_tokens"},
		{"/v1/completions", `{"prompt":"x","n":16384,"max_tokens":100000}`, 400, "together"},
		{"/v1/completions", `{"prompt":"x","n":1000000000}`, 400, "n must be"},
		{"/v1/completions", `{"prompt":"x","temperature":-0.5}`, 400, "temperature must be non-negative, got -0.5."},
		{"/v1/completions", `{"prompt":"x","temperature":2.5}`, 400, "temperature must be in [0, 2], got 2.5."},
		{"/v1/completions", `{"prompt":"x","top_p":0}`, 400, "top_p must be in (0, 1], got 0.0."},
		{"/v1/completions", `{"prompt":"x","top_p":1e400}`, 400, "top_p"},
		{"/v1/completions", `{"prompt":"x","top_k":-2}`, 400, "top_k must be 0 (disable), or at least 1, got -2."},
		{"/v1/completions", `{"prompt":"x","presence_penalty":3}`, 400, "presence_penalty must be in [-2, 2], got 3.0."},
		{"/v1/completions", `{"prompt":"x","temperature":0,"n":2}`, 400, "greedy"},
		{"/v1/completions", `{"prompt":"x","guided_regex":"(?=a)"}`, 400, "cannot read"},
		{"/v1/completions", `{"prompt":"x","guided_regex":"a","guided_choice":["b"]}`, 400, "only one kind"},
		{"/v1/completions", `{"prompt":"x","guided_json":{"type":"array","minItems":1000000000}}`, 400, "bound"},
		{"/v1/completions", `{"prompt":"x","guided_json":{"type":"string","minLength":1e18}}`, 400, "bound"},
		{"/v1/completions", `{"prompt":"x","guided_json":{"$ref":"#"}}`, 400, "no value"},
		{"/v1/completions", `{"prompt":"x","guided_json":{"$ref":"file:///etc/passwd"}}`, 400, "references within"},
		{"/v1/completions", `{"prompt":"x","guided_json":false}`, 400, "no value"},
		{"/v1/completions", `{"prompt":"x","guided_json":{"not":{}}}`, 400, "no value"},
		{"/v1/completions", `{"prompt":"x","guided_grammar":"root ::= root"}`, 400, "no finite sentence"},
		{"/v1/completions", `{"prompt":"x","guided_grammar":"root ::= (((("}`, 400, "expected"},
		{"/v1/completions", `{"prompt":"x","guided_grammar":"root ::= \"a\"{99999} \"b\"{99999} \"c\"{99999}"}`, 400, "bound"},
		{"/v1/completions", `{"x":` + strings.Repeat("[", 100_000), 400, "nesting"},
		{"/v1/chat/completions", `{` + one + `,"tools":5}`, 400, "tools"},
		{"/v1/chat/completions", `{` + one + `,"tool_choice":"required"}`, 400, "must be set"},
		{"/v1/chat/completions", `{` + one + `,"tool_choice":"maybe"}`, 400, "Invalid value"},
		{"/v1/responses", `{"input":[]}`, 400, "Field required"}, {"/v1/responses", `{"input":"x","n":2}`, 400, "n must be 1"},
		{"/v1/embeddings", `{"input":[]}`, 400, "at least one"}, {"/v1/embeddings", `{"input":"x","dimensions":0}`, 400, "dimensions"},
		{"/v1/embeddings", `{"input":"x","dimensions":1000000}`, 400, "dimensions"}, {"/v1/embeddings", `{"input":""}`, 400, "empty"},
		{"/v1/rerank", `{"query":"x"}`, 400, "at least one"}, {"/v1/rerank", `{"query":"x","documents":[1]}`, 400, "documents[0]"},
		{"/invocations", `{"a":1}`, 400, "suitable handler"}, {"/invocations", `[`, 400, ""},
	} {
		resp, body := post(t, client, s.URL()+c.path, c.body)
		if resp.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %.80s: %s %.300s; want %d …%s…", c.path, c.body, resp.Status, body, c.status, c.want)
		}
	}
	resp, err := client.Post(s.URL()+"/v1/completions", "application/x-www-form-urlencoded", strings.NewReader(`{"prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form at completions: %s", resp.Status)
	}
}

// The line keeps priorities in order, and equals by arrival; a preempted
// sequence goes before its equals.
func TestQueuePriorities(t *testing.T) {
	var q queue
	push := func(id int, priority int64) { q.pushBack(&sequence{index: id, priority: priority}) }
	push(1, 0)
	push(2, 5)
	push(3, 0)
	push(4, -1)
	push(5, 5)
	q.pushFront(&sequence{index: 6, priority: 5})
	q.pushFront(&sequence{index: 7, priority: -1})
	var got []int
	for q.len() > 0 {
		got = append(got, q.front().index)
		q.popFront()
	}
	if want := []int{7, 4, 1, 3, 6, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// The first to be preempted has the highest number, then came last.
func TestVictim(t *testing.T) {
	e := &engine{running: []*sequence{{priority: 0}, {priority: 2}, {priority: 2}, {priority: 1}}}
	if v := e.victim(); v != 2 {
		t.Errorf("victim %d, want 2", v)
	}
	e.running = []*sequence{{}, {}, {}}
	if v := e.victim(); v != 2 {
		t.Errorf("victim among equals %d, want the last", v)
	}
}
