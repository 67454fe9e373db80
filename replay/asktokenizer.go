package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"retrace/internal/plural"
	"retrace/openai"
	"retrace/replay/prompt"
)

const (
	// tokenizeCalls bounds the requests to /tokenize for one thing to be known.
	tokenizeCalls = 96
	// singles is how many words are looked at alone where whole lists do not
	// tell.
	singles = 8
	// tokenizeAnswer bounds an answer in bytes.
	tokenizeAnswer = 4 << 20
)

var (
	errNoTokenize    = errors.New("the server has no /tokenize")
	errTokenizeCalls = fmt.Errorf("%d questions were not enough", tokenizeCalls)
)

// asker asks one server's /tokenize.
type asker struct {
	e     *engine
	ctx   context.Context // an asker lives within one call
	s     *server
	calls int
}

// askServer lets the server's /tokenize choose the words and tell the overhead;
// false where it has none, or cannot tell.
func (e *engine) askServer(ctx context.Context) bool {
	a := &asker{e: e, ctx: ctx, s: &e.client.servers[e.ready[0]]}
	words, err := a.words()
	if err == nil {
		err = e.useWords(words)
	}
	if err != nil {
		e.remark("--tokenizer server: %s: the words of prompts are not checked", e.scrub.clean(err.Error()))
		if errors.Is(err, errNoTokenize) {
			return false
		}
	}
	f, err := a.frame()
	if err != nil {
		e.remark("--tokenizer server: %s: the template's overhead is learnt from a probe", e.scrub.clean(err.Error()))
		return false
	}
	e.target.Overhead, e.target.Tail = f.Head+f.Tail, f.Tail
	return true
}

// useWords makes prompts of the words that are left of the common ones.
func (e *engine) useWords(words []string) error {
	common := len(prompt.CommonWords())
	switch {
	case len(words) == common:
		return nil // the usual vocabulary
	case len(words) < prompt.MinWords:
		return fmt.Errorf("%d of %d words are one token each, expected %d or more", len(words), common, prompt.MinWords)
	}
	v := e.cfg.Prompts.Vocabulary
	v.Words = words
	return e.useVocabulary(v)
}

// useVocabulary makes prompts of another vocabulary.
func (e *engine) useVocabulary(v prompt.Vocabulary) error {
	maker, err := e.cfg.newMaker(v)
	if err != nil {
		return err
	}
	e.bodies.maker, e.target.Vocabulary = maker, v
	return nil
}

// words are those of the common ones that the server counts as one token each,
// behind a space and at the start of a prompt, for which the start of a line
// stands in.
func (a *asker) words() ([]string, error) {
	a.calls = 0
	spaced, err := a.filter(prompt.CommonWords(), func(words []string) (bool, error) {
		n, err := a.count(strings.Join(words, " "))
		return n == len(words), err
	})
	if err != nil {
		return nil, err
	}
	a.calls = 0
	bare, err := a.filter(spaced, func(words []string) (bool, error) {
		n, err := a.count(strings.Join(words, "\n"))
		return n == len(words) || n == 2*len(words)-1, err // line feeds may be tokens
	})
	if errors.Is(err, errTokenizeCalls) {
		return spaced, a.sample(spaced)
	}
	return bare, err
}

// sample looks at some words alone: a tokenizer that puts a space before a text
// has other tokens for words at the start of a line.
func (a *asker) sample(words []string) error {
	a.calls = 0
	for i := range singles {
		w := words[i*len(words)/singles]
		n, err := a.count(w)
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("%q is %s at the start of a text", w, plural.Of(int64(n), "token"))
		}
	}
	return nil
}

// filter leaves out the words that fit says no to, by halves.
func (a *asker) filter(words []string, fit func([]string) (bool, error)) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	ok, err := fit(words)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return words, nil
	case len(words) == 1:
		return nil, nil
	}
	half := len(words) / 2
	left, err := a.filter(words[:half], fit)
	if err != nil {
		return nil, err
	}
	right, err := a.filter(words[half:], fit)
	return slices.Concat(left, right), err
}

// count is how many tokens the server makes of a text by itself.
func (a *asker) count(text string) (int, error) {
	ids, err := a.ask(openai.AppendQuoted([]byte(`"add_special_tokens":false,"prompt":`), text))
	return len(ids), err
}

// frame finds a prompt's tokens among those that the server makes of it for
// the API.
func (a *asker) frame() (*Frame, error) {
	a.calls = 0
	text := a.e.bodies.maker.AppendText(nil, probePrompt())
	quoted := openai.AppendQuoted(nil, string(text))
	var whole []byte
	switch api := a.e.cfg.API; {
	case api == openai.Chat:
		whole = append(append([]byte(`"add_generation_prompt":true,"messages":[{"role":"user","content":`), quoted...), `}]`...)
	case takesTokens(api):
		whole = append([]byte(`"prompt":`), quoted...)
	default:
		return nil, fmt.Errorf("/tokenize does not know the %s API", api)
	}
	inner, err := a.ask(append([]byte(`"add_special_tokens":false,"prompt":`), quoted...))
	if err != nil {
		return nil, err
	}
	outer, err := a.ask(whole)
	if err != nil {
		return nil, err
	}
	if len(inner) != probeWords {
		return nil, fmt.Errorf("/tokenize makes %s of %d words", plural.Of(int64(len(inner)), "token"), probeWords)
	}
	at := indexTokens(outer, inner)
	if at < 0 {
		return nil, errors.New("/tokenize gives a prompt other tokens in its template")
	}
	return &Frame{Head: int64(at), Tail: int64(len(outer) - at - len(inner))}, nil
}

// indexTokens is where part stands in whole, -1 where it does not.
func indexTokens(whole, part []uint32) int {
	for i := 0; i+len(part) <= len(whole); i++ {
		if slices.Equal(whole[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// ask sends one question, of the members given, and returns the tokens.
func (a *asker) ask(members []byte) ([]uint32, error) {
	if a.calls++; a.calls > tokenizeCalls {
		return nil, errTokenizeCalls
	}
	body := []byte{'{'}
	if model := a.e.cfg.Model; model != "" {
		body = append(openai.AppendQuoted(append(body, `"model":`...), model), ',')
	}
	body = append(append(body, members...), '}')
	code, answer, err := a.e.post(a.ctx, a.s, "/tokenize", body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("POST /tokenize: %w", err)
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusNotImplemented:
		return nil, errNoTokenize
	case code != http.StatusOK:
		return nil, fmt.Errorf("POST /tokenize: HTTP %d: %s", code, refusal(answer))
	}
	var told struct {
		Tokens []uint32 `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return nil, fmt.Errorf("POST /tokenize: %w", err)
	}
	if told.Tokens == nil {
		return nil, errors.New("POST /tokenize: found no tokens in the answer")
	}
	return told.Tokens, nil
}

// post makes a request that is not for generation.
func (e *engine) post(ctx context.Context, s *server, path string, body []byte) (code int, answer []byte, err error) {
	u, err := endpoint(s.base, path)
	if err != nil {
		return 0, nil, err
	}
	a := &attempt{clock: e.clock}
	ctx, done := context.WithTimeout(ctx, getTimeout)
	defer done()
	m := newMessage(http.MethodPost, u, e.client.header)
	body = bytes.Clone(body) // a payload's buffer is used again
	m.body = &payload{buf: &body, release: func() {}}
	resp, err := e.client.do(ctx, a, m)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", a.classify(err), err)
	}
	defer resp.Body.Close()                                               // read as far as wanted
	answer, err = io.ReadAll(io.LimitReader(resp.Body, tokenizeAnswer+1)) // one more, to meet the end
	return resp.StatusCode, answer, err
}
