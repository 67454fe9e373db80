package simserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// One white-space separated word is one token, whatever the space.
func TestTokensAreWords(t *testing.T) {
	tok := newTokenizer(151_936)
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0}, {" ", 0}, {"a", 1}, {" a b\tc\nd\r\n", 4}, {"don't stop, now!", 3}, {"é\u00a0模型\u2003x", 3}, {"a\xffb c", 2},
	} {
		if got := len(tok.append(nil, c.text)); got != c.want {
			t.Errorf("%q: %d tokens, want %d", c.text, got, c.want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		ids := tok.append(nil, text)
		if len(ids) != len(strings.Fields(text)) {
			rt.Fatalf("%q: %d tokens, %d fields", text, len(ids), len(strings.Fields(text)))
		}
		for _, id := range ids {
			if id >= tok.vocab {
				rt.Fatalf("id %d of %d", id, tok.vocab)
			}
		}
	})
}

// Every id's word is one token, and that id again; the words of answers are
// distinct words with distinct ids.
func TestWordsComeBack(t *testing.T) {
	for _, vocab := range []int{minVocab, 151_936} {
		tok := newTokenizer(vocab)
		for id := range uint32(vocab) {
			if back := tok.append(nil, tok.word(id)); len(back) != 1 || back[0] != id {
				t.Fatalf("vocabulary %d: id %d is %q, and that is %v", vocab, id, tok.word(id), back)
			}
		}
		words, ids := map[string]bool{}, map[uint32]bool{}
		for i := range outputWords {
			words[tok.words[i]], ids[tok.ids[i]] = true, true
		}
		if len(words) != outputWords || len(ids) != outputWords {
			t.Errorf("vocabulary %d: %d output words with %d ids, want %d", vocab, len(words), len(ids), outputWords)
		}
	}
}

func TestTokenizeAPI(t *testing.T) {
	s, client := started(t, Config{BOSTokens: 1, ChatTemplateTokens: 8})
	for _, c := range []struct {
		body  string
		count int
	}{
		{`{"prompt":"one two three"}`, 4},
		{`{"prompt":"one two three","add_special_tokens":false}`, 3},
		{`{"prompt":""}`, 1},
		{`{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hi"}]}],"return_token_strs":true}`, 12},
	} {
		_, body := post(t, client, s.URL()+"/tokenize", c.body)
		var a tokenizeAnswer
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		if a.Count != c.count || len(a.Tokens) != c.count || a.MaxModelLen != 131_072 || (a.TokenStrs != nil) != strings.Contains(c.body, "strs") {
			t.Errorf("%s: %s, want %d tokens", c.body, body, c.count)
		}
		ids, _ := json.Marshal(a.Tokens)
		_, text := post(t, client, s.URL()+"/detokenize", `{"tokens":`+string(ids)+`}`)
		var p struct{ Prompt string }
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		quoted, _ := json.Marshal(p.Prompt)
		_, again := post(t, client, s.URL()+"/tokenize", `{"add_special_tokens":false,"prompt":`+string(quoted)+`}`)
		var b tokenizeAnswer
		if err := json.Unmarshal([]byte(again), &b); err != nil || len(b.Tokens) != len(a.Tokens) {
			t.Errorf("%s → %s → %s", body, text, again)
		}
	}
}

// whole is what a test reads of a whole answer.
type whole struct {
	Choices []struct {
		Index   int
		Text    string
		Message struct{ Content string }
		Finish  string  `json:"finish_reason"`
		Stop    *string `json:"stop_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// wholeAnswer posts a request and decodes its whole answer.
func wholeAnswer(t *testing.T, client *http.Client, url, body string) whole {
	t.Helper()
	_, text := post(t, client, url, body)
	var a whole
	if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Choices) == 0 {
		t.Fatalf("%s: %v", text, err)
	}
	return a
}

// How long an answer is, and why it ends there.
func TestOutputLength(t *testing.T) {
	s, client := started(t, Config{MaxModelLen: 300, AnswerTokens: 20})
	const completions, chat = "/v1/completions", "/v1/chat/completions"
	for _, c := range []struct {
		path, fields string
		tokens       int
		finish       string
	}{
		{completions, ``, 16, "length"},
		{completions, `,"min_tokens":40`, 40, "length"},
		{completions, `,"max_tokens":5`, 5, "length"},
		{completions, `,"max_tokens":50,"ignore_eos":true,"min_tokens":50`, 50, "length"},
		{chat, ``, 20, "stop"},
		{chat, `,"min_tokens":40`, 40, "stop"},
		{chat, `,"ignore_eos":true`, 299, "length"},
		{chat, `,"max_tokens":7`, 7, "length"},
		{chat, `,"max_tokens":7,"max_completion_tokens":30`, 30, "length"},
	} {
		body := `{"prompt":"x"` + c.fields + `}`
		if c.path == chat {
			body = `{"messages":[{"role":"user","content":"x"}]` + c.fields + `}`
		}
		a := wholeAnswer(t, client, s.URL()+c.path, body)
		got := a.Choices[0]
		words := len(strings.Fields(got.Text + got.Message.Content))
		if a.Usage.Completion != c.tokens || words != c.tokens || got.Finish != c.finish {
			t.Errorf("%s%s: %d tokens, %d words, %s; want %d, %s", c.path, c.fields, a.Usage.Completion, words, got.Finish, c.tokens, c.finish)
		}
	}
}

// An answer ends before its first stop string, in whole and in streams, and
// a stop string may be of parts of several words.
func TestStopStrings(t *testing.T) {
	s, client := started(t, Config{})
	full := wholeAnswer(t, client, s.URL()+"/v1/completions", `{"prompt":"a b c","max_tokens":20}`).Choices[0].Text
	words := strings.Fields(full)
	stop := words[4][2:] + " " + words[5][:2]
	want := full[:strings.Index(full, stop)]
	body := `{"prompt":"a b c","max_tokens":20,"stop":["nothing","` + stop + `"]`
	a := wholeAnswer(t, client, s.URL()+"/v1/completions", body+`}`)
	if c := a.Choices[0]; c.Text != want || c.Finish != "stop" || c.Stop == nil || *c.Stop != stop || a.Usage.Completion != 6 {
		t.Errorf("stopped at %q: %+v, %d tokens; want text %q, 6 tokens", stop, c, a.Usage.Completion, want)
	}
	text, finish := "", ""
	for _, e := range events(t, client, s.URL()+"/v1/completions", body+`,"stream":true}`) {
		if len(e.Choices) > 0 {
			text, finish = text+e.Choices[0].Text, e.Choices[0].Finish
		}
	}
	if text != want || finish != "stop" {
		t.Errorf("streamed %q, %s; want %q, stop", text, finish, want)
	}
	later := wholeAnswer(t, client, s.URL()+"/v1/completions", strings.TrimSuffix(body, "]")+`],"min_tokens":10}`)
	if later.Usage.Completion < 10 {
		t.Errorf("with min_tokens 10 it ended after %d", later.Usage.Completion)
	}
}

// events posts a streaming request and decodes its events up to [DONE].
func events(t *testing.T, client *http.Client, url, body string) []whole {
	t.Helper()
	_, text := post(t, client, url, body)
	if !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Fatalf("no [DONE] at the end of %q", text)
	}
	var all []whole
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "data: [DONE]\n\n"), "\n\n") {
		if event == "" {
			continue
		}
		var e whole
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &e); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		all = append(all, e)
	}
	return all
}

// The next turn of a chat finds the blocks of the whole turn before, the
// answer's included, all but the answer's last token: 8 template tokens, 40 of
// the user and 30 of the answer, of which 77 have KV: 4 blocks of 16.
func TestSecondTurnHits(t *testing.T) {
	s, client := started(t, Config{ChatTemplateTokens: 8})
	user := strings.TrimSpace(strings.Repeat("word ", 40))
	first := wholeAnswer(t, client, s.URL()+"/v1/chat/completions",
		`{"messages":[{"role":"user","content":"`+user+`"}],"max_tokens":30}`)
	second := wholeAnswer(t, client, s.URL()+"/v1/chat/completions", `{"messages":[{"role":"user","content":"`+user+
		`"},{"role":"assistant","content":"`+first.Choices[0].Message.Content+`"},{"role":"user","content":"and then"}],"max_tokens":1}`)
	if second.Usage.Prompt != 80 || second.Usage.Details.Cached != 64 {
		t.Errorf("second turn: %+v; want 80 prompt tokens, 64 cached", second.Usage)
	}
}

// The same prompt has the same answer, another prompt or choice another one.
func TestAnswersAreAFunctionOfThePrompt(t *testing.T) {
	s, client := started(t, Config{})
	ask := func(prompt string) whole {
		return wholeAnswer(t, client, s.URL()+"/v1/completions", `{"prompt":"`+prompt+`","n":2}`)
	}
	a, b, c := ask("same words"), ask("same words"), ask("same word")
	if a.Choices[0].Text != b.Choices[0].Text || a.Choices[1].Text != b.Choices[1].Text {
		t.Error("the same prompt got two answers")
	}
	if a.Choices[0].Text == c.Choices[0].Text || a.Choices[0].Text == a.Choices[1].Text {
		t.Error("two prompts, or two choices, got the same answer")
	}
	if a.Choices[0].Text != " "+strings.Join(strings.Fields(a.Choices[0].Text), " ") {
		t.Errorf("a completion goes on from its prompt with a space: %q", a.Choices[0].Text)
	}
}

// VLLM.md §2: the counts of choices and prompts in a stream's usage.
func TestUsageOfSeveralChoices(t *testing.T) {
	s, client := started(t, Config{})
	all := events(t, client, s.URL()+"/v1/completions",
		`{"prompt":["a b","c d e"],"n":2,"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`)
	tokens := map[int]int{}
	for _, e := range all[:len(all)-1] {
		tokens[e.Choices[0].Index]++
	}
	last := all[len(all)-1]
	if len(last.Choices) != 0 || last.Usage.Prompt != 5 || last.Usage.Completion != 12 {
		t.Errorf("last chunk %+v; want no choices, 5 prompt and 12 completion tokens", last)
	}
	for i := range 4 {
		if tokens[i] != 3 {
			t.Errorf("choice %d streamed %d tokens, want 3", i, tokens[i])
		}
	}
}
