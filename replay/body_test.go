package replay

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// lastBody makes a handler that keeps what it was asked.
func lastBody(asked *[]string, next http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		*asked = append(*asked, r.URL.Path+" "+string(b))
		mu.Unlock()
		next(w, r)
	}
}

func TestBodies(t *testing.T) {
	blocks := record.NewRequest()
	blocks.Arrival, blocks.InputTokens, blocks.OutputTokens, blocks.Blocks = 0, 5, 7, []uint64{1, 2}
	unknown := blocks
	unknown.OutputTokens = record.Unknown
	literal := blocks
	literal.API, literal.Body = "chat", []byte(`{ "model":"m0", "messages":[{"role":"user","content":"caf\u00e9"}], "stream":false , "n":1.0}`)
	const prompt4 = `"prompt":[`
	for _, c := range []struct {
		name   string
		req    record.Request
		change func(*Config)
		path   string
		has    []string
		lacks  []string
	}{
		{"tokens", blocks, func(*Config) {}, "/v1/completions",
			[]string{prompt4, `"model":"mock"`, `"stream":true`, `"stream_options":{"include_usage":true}`, `"max_tokens":7`}, []string{"ignore_eos"}},
		{"unknown output", unknown, func(*Config) {}, "/v1/completions", []string{prompt4}, []string{"max_tokens"}},
		{"capped output", unknown, func(c *Config) { c.MaxOutputTokens = 3 }, "/v1/completions", []string{`"max_tokens":3`}, nil},
		{"forced length", blocks, func(c *Config) { c.IgnoreEOS = true }, "/v1/completions",
			[]string{`"ignore_eos":true`, `"min_tokens":7`, `"max_tokens":7`}, nil},
		{"text", blocks, func(c *Config) { c.Prompt = Text }, "/v1/completions", []string{`"prompt":"`}, nil},
		{"chat", blocks, func(c *Config) { c.API = openai.Chat }, "/v1/chat/completions", []string{`"messages":[{"role":"user","content":"`}, nil},
		{"extra", blocks, func(c *Config) { c.Extra = []byte(`{"max_tokens": 9, "temperature":0.50,"model":"x"}`) }, "/v1/completions",
			[]string{`"max_tokens":9`, `"temperature":0.50`, `"model":"x"`}, []string{`"max_tokens":7`, "mock"}},
		{"literal", literal, func(c *Config) { c.Prompt = Literal }, "/v1/chat/completions",
			[]string{`{ "model":"mock", "messages":[{"role":"user","content":"caf\u00e9"}], "stream":false , "n":1.0}`},
			[]string{"max_tokens", "stream_options"}},
		{"no body in a literal replay", blocks, func(c *Config) { c.Prompt = Literal }, "/v1/completions", []string{prompt4}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				h := lastBody(&asked, scripted(step{0, word + done}))
				out, _ := inBubble(t, answers(h), []record.Request{c.req}, func(cfg *Config) {
					cfg.Header.BlockSize = 4
					c.change(cfg)
				})
				if out.Completed != 1 || len(asked) == 0 {
					t.Fatalf("%+v, asked %q", out, asked)
				}
				path, body, _ := strings.Cut(asked[len(asked)-1], " ")
				if path != c.path || !json.Valid([]byte(body)) {
					t.Errorf("asked %s %s", path, body)
				}
				for _, s := range c.has {
					if !strings.Contains(body, s) {
						t.Errorf("body %s lacks %s", body, s)
					}
				}
				for _, s := range c.lacks {
					if strings.Contains(body, s) {
						t.Errorf("body %s has %s", body, s)
					}
				}
			})
		})
	}
}

// H04: a server that adds 1 BOS and 8 template tokens. The overhead is learnt
// from one probe, cut once, and prompts shorter than it stay longer.
func TestOverheadIsLearntAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		h := func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			asked = append(asked, string(b))
			var req openai.ChatRequest
			if err := openai.ParseChat(b, &req); err != nil {
				t.Error(err)
			}
			n := len(strings.Fields(req.Messages[0].Content)) + 9
			scripted(step{0, word + usage(n, 1) + done})(w, r)
		}
		reqs := every(ms, 3)
		reqs[0].InputTokens, reqs[1].InputTokens, reqs[2].InputTokens = 128, 40, 5
		var target Target
		out, results := inBubble(t, answers(h), reqs, func(c *Config) {
			c.API = openai.Chat
			c.Started = func(got Target) error { target = got; return nil }
		})
		if target.Overhead != 9 || len(asked) != 4 || out.Planned != 3 {
			t.Errorf("overhead %d, asked %d, %+v", target.Overhead, len(asked), out)
		}
		i := slices.IndexFunc(results, func(r record.Result) bool { return r.Mark == record.Overhead })
		if i < 0 || results[i].Sent >= 0 {
			t.Fatalf("the probe is not among the results, or not before the origin")
		}
		results = slices.Delete(results, i, i+1)
		if got := []int64{results[0].PromptTokens, results[1].PromptTokens, results[2].PromptTokens}; !reflect.DeepEqual(got, []int64{128, 40, 10}) {
			t.Errorf("the server counted %v", got)
		}
		if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "1 prompt stayed longer than wanted") {
			t.Errorf("notes %q", out.Notes)
		}
	})
}

// Two prompts of 64 tokens that share 48, with server blocks of 16: 48 hit
// tokens; the same prompt again: 48, for the last block is computed anew.
func TestPredictedHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reqs := every(ms, 3)
		for i, blocks := range [][]uint64{{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, 4}} {
			reqs[i].InputTokens, reqs[i].Blocks = 64, blocks
		}
		mux := answers(scripted(step{0, word + done})).(*http.ServeMux)
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{a=\"1\",block_size=\"16\",engine=\"0\"} 1.0\n")
		})
		out, results := inBubble(t, mux, reqs, func(c *Config) { c.Header.BlockSize = 16 })
		got := []int64{results[0].PredictedHit, results[1].PredictedHit, results[2].PredictedHit}
		if out.Target.ServerBlockSize != 16 || !reflect.DeepEqual(got, []int64{0, 48, 48}) {
			t.Errorf("block size %d, predicted %v", out.Target.ServerBlockSize, got)
		}
		p, err := Predict(Config{Header: record.Header{BlockSize: 16}}, Target{}, seq(reqs))
		if want := (Prediction{Hits: 96, Tokens: 192, BlockSize: 16, Left: map[string]int64{}}); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("Predict: %+v, %v", p, err)
		}
	})
}

// TestPredictTells what the plan is to say: hits with the overhead of a server
// that was asked, and what will not be sent.
func TestPredictTells(t *testing.T) {
	reqs := every(ms, 5)
	for i := range reqs {
		reqs[i].InputTokens, reqs[i].Blocks = 64, []uint64{1, 2, 3, 4}
	}
	reqs[2].InputTokens, reqs[2].Blocks = record.Unknown, nil
	reqs[3].OutputTokens = 0
	reqs[4].Session, reqs[4].Turn, reqs[4].Increment = "s", 2, true // its first turn is in no plan
	cfg := Config{Header: record.Header{BlockSize: 16, Turns: "increment"}, Prompt: Text, ZeroOutput: ZeroSkip}
	p, err := Predict(cfg, Target{ServerBlockSize: 32, Overhead: 16}, seq(reqs))
	// The template's 16 tokens and 48 of the prompt are two blocks of 32 tokens, the last of which is computed.
	want := Prediction{Hits: 64, Tokens: 192, BlockSize: 32, Orphans: 1, Left: map[string]int64{"input tokens are unknown": 1, reasonNoOutput: 1}}
	if err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("Predict: %+v, %v", p, err)
	}
}

// TestLengthOfBody: a body's own limit is the wanted length, and forcing a
// length sets the members that the body has.
func TestLengthOfBody(t *testing.T) {
	for _, c := range []struct {
		name, body string
		recorded   int64
		change     func(*Config)
		wanted     int64
		has, lacks string
	}{
		{"its own", `{"max_tokens":6}`, record.Unknown, func(c *Config) { c.IgnoreEOS = true }, 6, `"max_tokens":6 "ignore_eos":true "min_tokens":6`, "max_completion_tokens"},
		{"the chat API's", `{"max_completion_tokens":7}`, record.Unknown, func(c *Config) { c.IgnoreEOS = true }, 7,
			`"max_completion_tokens":7 "ignore_eos":true "min_tokens":7`, "max_tokens"},
		{"both", `{"max_completion_tokens":7,"max_tokens":9}`, record.Unknown, func(c *Config) { c.IgnoreEOS = true }, 7,
			`"max_completion_tokens":7 "max_tokens":7 "min_tokens":7`, "null"},
		{"none", `{}`, record.Unknown, func(c *Config) { c.IgnoreEOS = true }, record.Unknown, `"stream":true`, "_tokens"},
		{"none that counts", `{"max_tokens":null}`, record.Unknown, func(c *Config) { c.IgnoreEOS = true }, record.Unknown, `"max_tokens":null`, "min_tokens"},
		{"what was recorded wins", `{"max_completion_tokens":100}`, 5, func(c *Config) { c.IgnoreEOS = true }, 5, `"max_completion_tokens":5 "min_tokens":5`, "100"},
		{"not forced", `{"max_tokens":6}`, record.Unknown, nil, 6, `"max_tokens":6`, "min_tokens"},
		{"capped", `{"max_tokens":6}`, record.Unknown, func(c *Config) { c.MaxOutputTokens = 4 }, 4, `"max_tokens":4`, "min_tokens"},
		{"below the cap", `{"max_tokens":6}`, record.Unknown, func(c *Config) { c.MaxOutputTokens = 40 }, 6, `"max_tokens":6`, "40"},
		{"not raised", `{"max_tokens":6}`, 0, nil, 0, `"max_tokens":6`, "min_tokens"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := record.NewRequest()
			r.Arrival, r.API, r.Body, r.OutputTokens = 0, "chat", []byte(c.body), c.recorded
			var sent string
			mux := answers(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = string(body)
				_, _ = io.WriteString(w, "data: "+`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`+"\n\n"+done)
			})
			_, results := inBubble(t, mux, []record.Request{r}, func(cfg *Config) {
				cfg.Prompt = Literal
				if c.change != nil {
					c.change(cfg)
				}
			})
			for _, want := range strings.Fields(c.has) {
				if strings.Count(sent, want) != 1 {
					t.Errorf("%s: sent %s, want one %s", c.name, sent, want)
				}
			}
			for _, name := range strings.Fields(c.lacks) {
				if strings.Contains(sent, `"`+name) || strings.Contains(sent, ":"+name) || name[0] == '_' && strings.Contains(sent, name) {
					t.Errorf("%s: sent %s, want no %s", c.name, sent, name)
				}
			}
			if got := results[0].WantedOutput; got != c.wanted {
				t.Errorf("%s: wanted output %d, want %d", c.name, got, c.wanted)
			}
		})
	}
}

func edited(body []byte, set []member) ([]byte, error) {
	list, last, err := spans(body)
	if err != nil {
		return nil, err
	}
	return editMembers(nil, body, list, last, set), nil
}

func TestEditMembers(t *testing.T) {
	set := []member{{"a", []byte("1")}, {"b", nil}, {"c", []byte(`"x"`)}}
	for _, c := range []struct{ in, want string }{
		{`{}`, `{"a":1,"c":"x"}`},
		{` { "z" : [1, 2.0] } `, ` { "z" : [1, 2.0] ,"a":1,"c":"x"} `},
		{`{"a":{"a":2},"b":3,"c":null}`, `{"a":1,"b":null,"c":"x"}`},
		{`{"a":1,"a":2}`, `{"a":1,"a":1,"c":"x"}`},
		{`{"\u0061":5}`, `{"\u0061":1,"c":"x"}`},
	} {
		got, err := edited([]byte(c.in), set)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{``, `[]`, `{`, `{"a":}`, `{} {}`, `1`} {
		if got, err := edited([]byte(bad), set); err == nil {
			t.Errorf("%s: got %s", bad, got)
		}
	}
}

// What is not set stays as it was; what is set has its value.
func FuzzEditMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"x":[1.50,{"a":null}],"b":"\ud83d\ude00"}`))
	f.Add([]byte(` {"b" : {} } `))
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := edited(body, []member{{"a", []byte("7")}, {"b", nil}})
		var before, after map[string]json.RawMessage
		if json.Unmarshal(body, &before) != nil || before == nil {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		if string(after["a"]) != "7" {
			t.Fatalf("%q became %q", body, out)
		}
		if _, had := before["b"]; had {
			before["b"] = json.RawMessage("null")
		}
		before["a"] = json.RawMessage("7")
		for k, v := range before {
			if !bytes.Equal(after[k], v) {
				t.Fatalf("%q became %q: member %q", body, out, k)
			}
		}
		if len(after) != len(before) {
			t.Fatalf("%q became %q", body, out)
		}
	})
}

func TestParseExtra(t *testing.T) {
	for _, bad := range []string{`[]`, `{"a":1,"a":2}`, `{"a"`, `x`} {
		if _, err := parseExtra([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// A payload's buffer is given back once, whoever is last.
func TestPayload(t *testing.T) {
	released := 0
	text := []byte("hello")
	p := &payload{buf: &text, release: func() { released++ }}
	got, err := io.ReadAll(p)
	if err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	_, _ = p.Close(), p.Close()
	if _, err := p.Read(make([]byte, 1)); err == nil || released != 1 {
		t.Errorf("read after close: %v; released %d times", err, released)
	}
}

func BenchmarkBody(b *testing.B) {
	maker, err := prompt.New(prompt.Config{BlockSize: 512})
	if err != nil {
		b.Fatal(err)
	}
	cfg := &Config{}
	bs, err := newBodies(cfg, maker, "m")
	if err != nil {
		b.Fatal(err)
	}
	var segs []prompt.Segment
	for i := range uint64(8) {
		segs = append(segs, prompt.Segment{Key: i, N: 512})
	}
	j := &job{api: openai.Completions, prompt: prompt.NewPrompt(segs...), output: 100}
	var buf []byte
	for b.Loop() {
		buf, _ = bs.append(buf[:0], j)
	}
	b.SetBytes(int64(len(buf)))
}
