package simserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started is a running server and a client of its own.
func started(t testing.TB, cfg Config) (*Server, *http.Client) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		c.CloseIdleConnections()
		s.Close()
	})
	return s, c
}

// post sends a body and returns the answer, read to its end.
func post(t testing.TB, c *http.Client, url, body string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

var created = regexp.MustCompile(`"(created|created_at)":\d+`)

// chatTool is a chat that must call a tool.
const chatTool = `{"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"function","function":{"name":"g"}},` +
	`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g","parameters":{"const":{"city":"Oslo"}}}}]`

// The bytes of answers, streamed and whole, for both APIs.
func TestGoldenAnswers(t *testing.T) {
	const usage = `"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
	cfg := DefaultConfig()
	cfg.PrefillTokensPerSecond, cfg.DecodeStep = 0, 0
	for _, c := range []struct{ name, path, body string }{
		{"completion", "/v1/completions", `{"model":"sim","prompt":"one two three","max_tokens":3}`},
		{"completion_stream", "/v1/completions", `{"model":"sim","prompt":"one two three","max_tokens":3,"stream":true}`},
		{"completion_stream_usage", "/v1/completions", `{"model":"sim","prompt":[5,6,7],"max_tokens":3,` + usage + `}`},
		{"completion_ids", "/v1/completions", `{"prompt":[[5,6,7],[8]],"max_tokens":2,"n":2,"return_token_ids":true,"stream":false}`},
		{"chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hello there"}],"max_tokens":3}`},
		{"chat_stream", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hello there"}],"max_completion_tokens":3,` + usage + `}`},
		{"chat_stream_ids", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"n":2,"stream":true,"return_token_ids":true}`},
		{"not_found", "/v1/completions", `{"model":"gpt","prompt":"x"}`},
		{"chat_reasoning", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":4,"reasoning_effort":"low","thinking_token_budget":2,` + usage + `}`},
		{"chat_tool", "/v1/chat/completions", chatTool + `}`},
		{"chat_tool_stream", "/v1/chat/completions", chatTool + `,"stream":true}`},
		{"responses", "/v1/responses", `{"input":"hello there","max_output_tokens":3}`},
		{"responses_stream", "/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]}],"max_output_tokens":3,"stream":true,"reasoning":{"effort":"minimal"},"thinking_token_budget":1}`},
		{"responses_tool_stream", "/v1/responses", `{"input":"x","stream":true,"tools":[{"type":"function","name":"f","parameters":{"const":{"a":1}}}],"tool_choice":"required"}`},
		{"embeddings", "/v1/embeddings", `{"input":["a b",  "c"],"dimensions":3}`},
		{"embeddings_base64", "/v1/embeddings", `{"input":[1,2,3],"dimensions":2,"encoding_format":"base64"}`},
		{"rerank", "/v1/rerank", `{"query":"q","documents":["a",{"text":"b c"}]}`},
		{"invocations_tgi", "/invocations", `{"inputs":"one two","parameters":{"max_new_tokens":2,"details":true}}`},
		{"invocations_tgi_stream", "/invocations-response-stream", `{"inputs":"one two","parameters":{"max_new_tokens":2}}`},
		{"invocations_chat_stream", "/invocations-response-stream", `{"messages":[{"role":"user","content":"x"}],"max_tokens":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, client := started(t, cfg)
			resp, body := post(t, client, s.URL()+c.path, c.body)
			resp.Header.Del("Date")
			var got bytes.Buffer
			got.WriteString(resp.Status + "\n")
			_ = resp.Header.Write(&got)
			got.WriteString("transfer-encoding: " + strings.Join(resp.TransferEncoding, ",") + "\n\n")
			got.WriteString(created.ReplaceAllString(body, `"$1":0`))
			golden(t, c.name, got.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("golden − got +:\n%s", d)
	}
}

func TestErrors(t *testing.T) {
	cfg := Config{MaxModelLen: 100}
	s, client := started(t, cfg)
	const completions, chat = "/v1/completions", "/v1/chat/completions"
	for _, c := range []struct {
		name, path, body string
		status           int
		message          string
	}{
		{"no prompt", completions, `{}`, 400, "You must pass at least one prompt"},
		{"empty list", completions, `{"prompt":[]}`, 400, "You must pass at least one prompt"},
		{"empty text", completions, `{"prompt":""}`, 400, "cannot be empty"},
		{"blank text", completions, `{"prompt":" \n "}`, 400, "cannot be empty"},
		{"empty list of ids", completions, `{"prompt":[[]]}`, 400, "cannot be empty"},
		{"id out of vocabulary", completions, `{"prompt":[1,151936]}`, 400, "Token id 151936 is out of vocabulary"},
		{"id 2^31-1", completions, `{"prompt":[2147483647]}`, 400, "Token id 2147483647 is out of vocabulary"},
		{"negative id", completions, `{"prompt":[-1]}`, 400, "prompt[0]"},
		{"max_tokens 0", completions, `{"prompt":"x","max_tokens":0}`, 400, "max_tokens must be at least 1, got 0."},
		{"min over max", completions, `{"prompt":"x","max_tokens":3,"min_tokens":4}`, 400, "min_tokens must be less than or equal to max_tokens=3, got 4."},
		{"n 0", completions, `{"prompt":"x","n":0}`, 400, "n must be from 1"},
		{"n too many", completions, `{"prompt":["x","y"],"n":16384}`, 400, "at most 16384"},
		{"context", completions, `{"prompt":"x","max_tokens":100}`, 400, "maximum context length is 100 tokens"},
		{"prompt fills context", completions, `{"prompt":"` + strings.Repeat("x ", 100) + `"}`, 400, "your prompt contains 100 input tokens"},
		{"usage without stream", completions, `{"prompt":"x","stream_options":{"include_usage":true}}`, 400, "Stream options"},
		{"bad JSON", completions, `{"prompt":`, 400, "json at byte"},
		{"unknown model", chat, `{"model":"m","messages":[]}`, 404, "The model `m` does not exist."},
		{"no messages", chat, `{"messages":[]}`, 400, "at least one message"},
		{"no role", chat, `{"messages":[{"content":"x"}]}`, 400, "messages[0].role"},
		{"image without a reference", chat, `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "Unknown part type"},
		{"tokenize nothing", "/tokenize", `{}`, 400, "either prompt or messages"},
		{"tokenize bad JSON", "/tokenize", `[`, 400, ""},
		{"tokenize bad messages", "/tokenize", `{"messages":5}`, 400, "messages"},
		{"detokenize out of vocabulary", "/detokenize", `{"tokens":[999999]}`, 400, "Token id 999999"},
		{"detokenize bad JSON", "/detokenize", `{"tokens":"x"}`, 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := post(t, client, s.URL()+c.path, c.body)
			var e struct {
				Error struct {
					Message, Type string
					Code          int
				}
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if resp.StatusCode != c.status || e.Error.Code != c.status || e.Error.Type == "" || !strings.Contains(e.Error.Message, c.message) {
				t.Errorf("%s %s; want %d …%s…", resp.Status, body, c.status, c.message)
			}
		})
	}
}

func TestMethodsAndPaths(t *testing.T) {
	s, client := started(t, Config{})
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/v1/completions", 405}, {"PUT", "/v1/chat/completions", 405}, {"POST", "/health", 405},
		{"GET", "/nowhere", 404}, {"GET", "/health", 200}, {"GET", "/version", 200}, {"GET", "/v1/models", 200}, {"GET", "/metrics", 200},
	} {
		req, err := http.NewRequest(c.method, s.URL()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s: %s, want %d", c.method, c.path, resp.Status, c.want)
		}
	}
}

func TestModels(t *testing.T) {
	s, client := started(t, Config{Model: `tiny "x"`, MaxModelLen: 77})
	resp, err := client.Get(s.URL() + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var m struct {
		Object string
		Data   []struct {
			ID, Object  string
			MaxModelLen int `json:"max_model_len"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Object != "list" || len(m.Data) != 1 || m.Data[0].ID != `tiny "x"` || m.Data[0].MaxModelLen != 77 {
		t.Errorf("got %+v", m)
	}
}

func TestRequestIDComesBack(t *testing.T) {
	s, client := started(t, Config{})
	for _, stream := range []string{"true", "false"} {
		req, err := http.NewRequest(http.MethodPost, s.URL()+"/v1/completions", strings.NewReader(`{"prompt":"x","max_tokens":1,"stream":`+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Request-Id", "foo-1")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !bytes.Contains(body, []byte(`"id":"cmpl-foo-1"`)) {
			t.Errorf("stream %s: %s", stream, body)
		}
	}
}

// A client that goes away in the middle frees its sequence.
func TestDisconnectFrees(t *testing.T) {
	s, client := started(t, Config{DecodeStep: time.Millisecond})
	resp, err := client.Post(s.URL()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":100000,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for deadline := time.Now().Add(5 * time.Second); ; {
		s.engine.mu.Lock()
		aborted, running := s.engine.stats.aborted, len(s.engine.running)
		s.engine.mu.Unlock()
		if aborted == 1 && running == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 5 s %d aborted, %d running", aborted, running)
		}
		time.Sleep(time.Millisecond)
	}
}

// Close ends what runs, and leaves no goroutine (TestMain looks).
func TestCloseEndsStreams(t *testing.T) {
	s, client := started(t, Config{DecodeStep: time.Millisecond})
	resp, err := client.Post(s.URL()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","max_tokens":100000,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended cleanly, want an error")
	}
	s.Close()
}

func TestStartErrors(t *testing.T) {
	s, _ := started(t, Config{})
	if err := s.Start("127.0.0.1:0"); err == nil {
		t.Error("started twice: no error")
	}
	other, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Start(s.Addr()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port in use: %v", err)
	}
	if other.URL() != "" || other.Addr() != "" {
		t.Errorf("a server that did not start has the URL %q", other.URL())
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{BlockSize: -1}, "block size: found -1"},
		{Config{CacheBlocks: 2, MaxModelLen: 33}, "max model len: found 33, expected at most 32"},
		{Config{PrefillTokensPerSecond: -1}, "prefill tokens per second"},
		{Config{DecodeStep: -1}, "decode step"},
		{Config{BatchSlowdown: 2}, "batch slowdown"},
		{Config{VocabSize: 10}, "vocab size: found 10, expected 8192"},
		{Config{Faults: Faults{kinds: []fault{{"x", 1}}}}, `found kind "x"`},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want …%s…", c.cfg, err, c.want)
		}
	}
}
