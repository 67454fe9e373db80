package replay

import (
	"strings"
	"testing"
	"testing/synctest"

	"retrace/openai"
	"retrace/record"
)

func TestInputs(t *testing.T) {
	for raw, want := range map[string]int{
		`"a"`: 1, `["a"]`: 1, `[ "a", "b" ]`: 2, `[1,2,3]`: 1, `[[1,2],[3]]`: 2, `[{"text":"a"},"b"]`: 2,
		`[]`: 0, `[ ]`: 0, `null`: 0, `{"a":1}`: 0, `5`: 0, ``: 0, `["a"`: 0,
	} {
		if got := inputs([]byte(raw)); got != want {
			t.Errorf("%s: got %d, want %d", raw, got, want)
		}
	}
}

// An answer must have a result for each thing that was sent.
func TestNumberOfResults(t *testing.T) {
	const (
		one  = `{"data":[{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":2}}`
		two  = `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":"AAAA"}],"usage":{"prompt_tokens":2}}`
		rank = `{"results":[{"index":1,"relevance_score":0.5},{"index":0,"relevance_score":0.1}],"usage":{"total_tokens":2}}`
	)
	for _, c := range []struct {
		name         string
		api          openai.API
		body, extra  string // "" for a generated body
		answer, want string // a part of the sentence, "" for a whole answer
	}{
		{"two texts", openai.Embeddings, `{"input":["a","b"]}`, "", two, ""},
		{"two texts, one embedding", openai.Embeddings, `{"input":["a","b"]}`, "", one, "found 1, want 2"},
		{"one text, two embeddings", openai.Embeddings, `{"input":"a"}`, "", two, "found 2, want 1"},
		{"ids", openai.Embeddings, `{"input":[1,2,3]}`, "", one, ""},
		{"messages", openai.Embeddings, `{"messages":[]}`, "", two, ""},
		{"generated", openai.Embeddings, "", "", one, ""},
		{"generated, two embeddings", openai.Embeddings, "", "", two, "found 2, want 1"},
		{"two documents", openai.Rerank, `{"query":"q","documents":["a","b"]}`, "", rank, ""},
		{"three documents", openai.Rerank, `{"query":"q","documents":["a","b","c"]}`, "", rank, "found 2, want 3"},
		{"the best two of three", openai.Rerank, `{"query":"q","documents":["a","b","c"],"top_n":2}`, "", rank, ""},
		{"the best five of two", openai.Rerank, `{"query":"q","documents":["a","b"],"top_n":5}`, "", rank, ""},
		{"the best by --extra", openai.Rerank, `{"query":"q","documents":["a","b","c"],"top_n":3}`, `{"top_n":2}`, rank, ""},
		{"generated documents", openai.Rerank, "", "", rank, "found 2, want 1"},
	} {
		req := record.NewRequest()
		req.InputTokens, req.OutputTokens = 20, 1
		if c.body != "" {
			req.API, req.Body = string(c.api), []byte(c.body)
		}
		var r record.Result
		synctest.Test(t, func(t *testing.T) {
			_, results := inBubble(t, everywhere(typed("application/json", c.answer)), []record.Request{req}, func(cfg *Config) {
				cfg.API, cfg.Prompt, cfg.Extra = c.api, Text, []byte(c.extra)
				if c.body != "" {
					cfg.Prompt = Literal
				}
			})
			r = results[0]
		})
		if whole := r.State == record.Completed; whole != (c.want == "") || !strings.Contains(r.Error, c.want) || !whole && r.Class != record.ClassBadResponse {
			t.Errorf("%s: %v %s %q, want %q", c.name, r.State, r.Class, r.Error, c.want)
		}
	}
}

// A part larger than the whole is no count: it would make a hit rate above 1.
func TestMoreCachedThanPrompt(t *testing.T) {
	for cached, want := range map[string]int64{"9": 9, "10": record.Unknown, "0": 0} {
		url := serve(t, scripted(step{0, word + event("", "stop") +
			`data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":` + cached + `}}}` + "\n\n" + done}))
		out, results := over(t, url, every(ms, 1), nil)
		if got := results[0].CachedTokens; got != want || (len(out.Notes) == 1) != (want == record.Unknown) {
			t.Errorf("%s: %d cached, want %d; notes %q", cached, got, want, out.Notes)
		}
	}
}

func TestMoreMediaThanPrompt(t *testing.T) {
	for media, want := range map[string]int64{"9": 9, "10": record.Unknown, "0": 0} {
		synctest.Test(t, func(t *testing.T) {
			last := `data: {"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"image_tokens":` + media + `}}}` + "\n\n"
			out, results := inBubble(t, answers(scripted(step{0, word + event("", "stop") + last + done})), every(0, 1), nil)
			if got := results[0].MediaTokens; got != want || (len(out.Notes) == 1) != (want == record.Unknown) {
				t.Errorf("%s: %d of media, want %d; notes %q", media, got, want, out.Notes)
			}
		})
	}
}
