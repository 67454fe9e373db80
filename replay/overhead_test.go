package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"retrace/fixtures"
	"retrace/hashing/tokenizer"
	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// tokenServer is a server that counts: each word is one token, and two if its
// letters are among split; templates stand before and behind.
type tokenServer struct {
	head, tail map[openai.API]int
	split      map[string]bool
	tok        *tokenizer.Tokenizer // counts in place of all this, where set
	noTokenize bool
	asked      int // questions to /tokenize
	generated  int // requests for generation
}

const firstSpecial = 900_000

// tokens are a text's, without a template.
func (c *tokenServer) tokens(text string) (ids []uint32) {
	if c.tok != nil {
		return c.tok.Encode(nil, text)
	}
	for _, w := range strings.Fields(text) {
		id := uint32(0)
		for _, b := range []byte(w) {
			id = id*31 + uint32(b)
		}
		ids = append(ids, id%500_000)
		if c.split[w] {
			ids = append(ids, 500_001)
		}
	}
	return ids
}

// framed are the tokens of a prompt in its API's template.
func (c *tokenServer) framed(api openai.API, text string) (ids []uint32) {
	if c.tok != nil {
		return c.tok.EncodePrompt(nil, text)
	}
	for i := range c.head[api] {
		ids = append(ids, firstSpecial+uint32(i))
	}
	ids = append(ids, c.tokens(text)...)
	for i := range c.tail[api] {
		ids = append(ids, firstSpecial+1000+uint32(i))
	}
	return ids
}

func (c *tokenServer) handler(t *testing.T) http.Handler {
	mux := answers(func(w http.ResponseWriter, r *http.Request) {
		c.generated++
		body, _ := io.ReadAll(r.Body)
		text, api := promptOf(t, body)
		scripted(step{0, word + usage(len(c.framed(api, text)), 1) + done})(w, r)
	}).(*http.ServeMux)
	mux.HandleFunc("POST /tokenize", func(w http.ResponseWriter, r *http.Request) {
		c.asked++
		if c.noTokenize {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var q struct {
			Model      string
			AddSpecial *bool `json:"add_special_tokens"`
		}
		if err := json.Unmarshal(body, &q); err != nil || q.Model != "mock" {
			t.Errorf("question %s: %v", body, err)
		}
		text, api := promptOf(t, body)
		ids := c.framed(api, text)
		if q.AddSpecial != nil && !*q.AddSpecial {
			ids = c.tokens(text)
		}
		answer, _ := json.Marshal(map[string]any{"count": len(ids), "max_model_len": 1 << 20, "tokens": ids})
		_, _ = w.Write(answer)
	})
	return mux
}

// promptOf is the text in a body, and the API that has such bodies.
func promptOf(t *testing.T, body []byte) (string, openai.API) {
	var q struct {
		Prompt   string
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(body, &q); err != nil {
		t.Errorf("body %s: %v", body, err)
	}
	if len(q.Messages) > 0 {
		return q.Messages[0].Content, openai.Chat
	}
	return q.Prompt, openai.Completions
}

// replayText replays 40 requests of 40 to 79 tokens, as text.
func replayText(t *testing.T, c *tokenServer, change func(*Config)) (out Outcome, results []record.Result) {
	reqs := every(ms, 40)
	for i := range reqs {
		reqs[i].InputTokens, reqs[i].Blocks = int64(40+i), []uint64{1, uint64(i / 2), uint64(i)}
	}
	out, results = inBubble(t, c.handler(t), reqs, func(cfg *Config) {
		cfg.Prompt, cfg.Header = Text, record.Header{BlockSize: 16, Namespace: "n"}
		change(cfg)
	})
	return out, slices.DeleteFunc(results, func(r record.Result) bool { return r.Mark != record.Planned })
}

// exact fails where the server counted other lengths than the wanted ones.
func exact(t *testing.T, results []record.Result) {
	t.Helper()
	if len(results) != 40 {
		t.Errorf("%d results, want 40", len(results))
	}
	for _, r := range results {
		if r.State != record.Completed || r.PromptTokens != r.WantedInput || r.WantedInput < 40 {
			t.Errorf("request %s: %v, %d tokens, wanted %d", r.ID, r.State, r.PromptTokens, r.WantedInput)
		}
	}
}

// Case H04, by endpoint: 1 BOS for completions, and 8 template tokens beside it
// for chat. Either is learnt by a probe, or by /tokenize, which tells the head
// from the tail; lengths are exact.
func TestOverheadByEndpoint(t *testing.T) {
	for _, ask := range []bool{false, true} {
		for api, want := range map[openai.API]struct{ overhead, tail int64 }{openai.Completions: {1, 0}, openai.Chat: {9, 5}} {
			t.Run(fmt.Sprint(api, ask), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &tokenServer{
						head: map[openai.API]int{openai.Completions: 1, openai.Chat: 4},
						tail: map[openai.API]int{openai.Chat: 5},
					}
					out, results := replayText(t, c, func(cfg *Config) { cfg.API, cfg.Prompts.AskServer = api, ask })
					exact(t, results)
					tail, probes := want.tail, 1
					if ask {
						probes = 0
					} else {
						tail = 0 // one count does not tell
					}
					if out.Target.Overhead != want.overhead || out.Target.Tail != tail || c.generated != 40+probes {
						t.Errorf("overhead %d, tail %d, %d generations; want %d, %d, %d", out.Target.Overhead, out.Target.Tail, c.generated,
							want.overhead, tail, 40+probes)
					}
					if ask && c.asked != 4 || !ask && c.asked != 0 {
						t.Errorf("%d questions to /tokenize", c.asked)
					}
				})
			})
		}
	}
}

// TestServerSplitsWords: words that the server splits are found and left out
// (case H01); the result is the same whoever asks.
func TestServerSplitsWords(t *testing.T) {
	common := prompt.CommonWords()
	split := map[string]bool{common[0]: true, common[777]: true, common[2047]: true}
	var digests []string
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			c := &tokenServer{split: split, head: map[openai.API]int{openai.Completions: 1}}
			out, results := replayText(t, c, func(cfg *Config) { cfg.Prompts.AskServer = true })
			exact(t, results)
			v := out.Target.Vocabulary
			digests = append(digests, v.Digest())
			if len(v.Words) != 2045 || slices.ContainsFunc(v.Words, func(w string) bool { return split[w] }) {
				t.Errorf("%d words are left", len(v.Words))
			}
			if c.asked > tokenizeCalls || c.generated != 40 {
				t.Errorf("%d questions, %d generations", c.asked, c.generated)
			}
			p, err := Predict(Config{Header: record.Header{BlockSize: 16, Namespace: "n"}, Prompt: Text}, out.Target, seq(every(ms, 1)))
			if err != nil || p.Tokens != 4 { // less than the overhead and one word would stay longer
				t.Errorf("Predict: %+v, %v", p, err)
			}
		})
	}
	if digests[0] != digests[1] || digests[0] == "" {
		t.Errorf("vocabularies %q", digests)
	}
}

// TestServerTokenizerFails: without /tokenize, or where it fits no words, the
// run goes on with the usual words and a probe, and says so.
func TestServerTokenizerFails(t *testing.T) {
	all := map[string]bool{}
	for _, w := range prompt.CommonWords() {
		all[w] = true
	}
	for name, c := range map[string]struct {
		server *tokenServer
		note   string
	}{
		"none":           {&tokenServer{noTokenize: true}, "the server has no /tokenize: the words of prompts are not checked"},
		"splits words":   {&tokenServer{split: all}, "96 questions were not enough: the words of prompts are not checked"},
		"has no answers": {&tokenServer{}, "found no tokens in the answer"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.server.head = map[openai.API]int{openai.Completions: 1}
			h := c.server.handler(t)
			if name == "has no answers" {
				mux := h.(*http.ServeMux)
				h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/tokenize" {
						fmt.Fprint(w, `{"count":3}`)
						return
					}
					mux.ServeHTTP(w, r)
				})
			}
			reqs := every(ms, 3)
			for i := range reqs {
				reqs[i].InputTokens = 40
			}
			out, results := inBubble(t, h, reqs, func(cfg *Config) { cfg.Prompt, cfg.Prompts.AskServer = Text, true })
			if out.Completed != 3 || len(results) != 4 || c.server.generated != 4 || out.Target.Vocabulary.Digest() != "" {
				t.Errorf("%s: %+v, %d results", name, out, len(results))
			}
			if !strings.Contains(strings.Join(out.Target.Notes, "\n"), c.note) {
				t.Errorf("%s: notes %q, want %q", name, out.Target.Notes, c.note)
			}
		})
	}
}

// TestFrameOfTheTokenizer: the tokenizer's file tells head from tail where the
// server's count agrees, stands in for a count that does not come, and gives
// way to another count.
func TestFrameOfTheTokenizer(t *testing.T) {
	for name, c := range map[string]struct {
		head, tail int
		frame      Frame
		overhead   int64
		wantTail   int64
		note       string
	}{
		"agrees":   {1, 2, Frame{Head: 1, Tail: 2}, 3, 2, ""},
		"differs":  {1, 0, Frame{}, 1, 0, "the server adds 1 token to a prompt, the tokenizer's file 0"},
		"no count": {-1, 0, Frame{Head: 1, Tail: 2}, 3, 2, "the tokenizer's own stands in for it"},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &tokenServer{head: map[openai.API]int{openai.Completions: c.head}, tail: map[openai.API]int{openai.Completions: c.tail}}
			h := server.handler(t)
			if c.head < 0 {
				h = answers(scripted(step{0, word + done}))
			}
			reqs := every(ms, 3)
			for i := range reqs {
				reqs[i].InputTokens = 40
			}
			out, _ := inBubble(t, h, reqs, func(cfg *Config) { cfg.Prompt, cfg.Prompts.Frame = Text, &c.frame })
			if out.Target.Overhead != c.overhead || out.Target.Tail != c.wantTail {
				t.Errorf("%s: overhead %d, tail %d, want %d, %d", name, out.Target.Overhead, out.Target.Tail, c.overhead, c.wantTail)
			}
			if notes := strings.Join(out.Target.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("%s: notes %q", name, notes)
			}
		})
	}
}

// TestBodilessRowsAreCut: in a trace whose own bodies are sent, the prompts made
// for rows without one are cut by the template's overhead, and bodies are not.
func TestBodilessRowsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &tokenServer{head: map[openai.API]int{openai.Chat: 9}}
		reqs := every(ms, 2)
		reqs[0].InputTokens = 40
		reqs[1].API, reqs[1].Body = "chat", []byte(`{"messages":[{"role":"user","content":"one two three"}]}`)
		out, results := inBubble(t, c.handler(t), reqs, func(cfg *Config) {
			cfg.API, cfg.Prompt, cfg.Prompts.Bodiless = openai.Chat, Literal, true
		})
		results = slices.DeleteFunc(results, func(r record.Result) bool { return r.Mark != record.Planned })
		if out.Target.Overhead != 9 || len(results) != 2 || results[0].PromptTokens != 40 || results[1].PromptTokens != 12 {
			t.Errorf("overhead %d, results %+v", out.Target.Overhead, results)
		}
	})
}

// TestRealTokenizersAsServers asks public tokenizers as a server's /tokenize: the
// usual words pass in all of them, and the beginning of a text is found.
func TestRealTokenizersAsServers(t *testing.T) {
	dir := os.Getenv("RETRACE_TOKENIZERS")
	if dir == "" {
		t.Skip("RETRACE_TOKENIZERS names no folder of public tokenizers")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*/models/tokenizer.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no tokenizers in %s (%v)", dir, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(path))), func(t *testing.T) {
			tok, err := tokenizer.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				c := &tokenServer{tok: tok}
				out, results := replayText(t, c, func(cfg *Config) { cfg.Prompts.AskServer = true })
				exact(t, results)
				if len(out.Target.Notes) > 0 || out.Target.Vocabulary.Digest() != "" || out.Target.Overhead != int64(len(tok.Prefix())) {
					t.Errorf("overhead %d, %d words, notes %q", out.Target.Overhead, len(out.Target.Vocabulary.Words), out.Target.Notes)
				}
				t.Logf("%d questions", c.asked)
			})
		})
	}
}

// TestTokenizersCountExactly: a server with the small tokenizer of each family
// counts the wanted lengths, its BOS included, for prompts of words that its
// file gave.
func TestTokenizersCountExactly(t *testing.T) {
	for _, name := range []string{"qwen", "llama3", "deepseek", "nemo", "o200k", "gemma", "llama2", "mistral7b"} {
		f, err := fixtures.Files.Open("tokenizers/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		words, err := prompt.ChooseWords(tok)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			h := answers(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				text, _ := promptOf(t, body)
				scripted(step{0, word + usage(len(tok.EncodePrompt(nil, text)), 1) + done})(w, r)
			})
			reqs := every(ms, 40)
			for i := range reqs {
				reqs[i].InputTokens, reqs[i].Blocks = int64(40+i), []uint64{1, uint64(i / 2), uint64(i)}
			}
			out, results := inBubble(t, h, reqs, func(cfg *Config) {
				cfg.Prompt, cfg.Header = Text, record.Header{BlockSize: 16, Namespace: "n"}
				cfg.Prompts.Vocabulary.Words = words
				cfg.Prompts.Frame = &Frame{Head: int64(len(tok.Prefix()))}
			})
			exact(t, slices.DeleteFunc(results, func(r record.Result) bool { return r.Mark != record.Planned }))
			if out.Target.Overhead != int64(len(tok.Prefix())) || len(out.Target.Notes) > 0 {
				t.Errorf("%s: overhead %d, notes %q", name, out.Target.Overhead, out.Target.Notes)
			}
		})
	}
}
