package proxy

import (
	"strconv"
	"strings"
	"testing"

	"retrace/fixtures"
	"retrace/hashing/tokenizer"
	"retrace/record"
)

// With a tokenizer, text is its tokens: the same blocks as of its ids, and its
// length where the server tells none.
func TestTokenizer(t *testing.T) {
	f, err := fixtures.Files.Open("tokenizers/qwen.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.EncodePrompt(nil, "the people of the world over")
	var list []string
	for _, id := range ids {
		list = append(list, strconv.Itoa(int(id)))
	}
	r := newRig(t, says("text/event-stream", event+finished+done), func(c *Config) { c.Tokenizer, c.BlockSize = tok, 2 })
	r.post("/v1/completions", `{"prompt":"the people of the world over"}`)
	r.post("/v1/completions", `{"prompt":[`+strings.Join(list, ",")+`]}`)
	all := r.records()
	a, b := &all[0], &all[1]
	if a.InputTokens != int64(len(ids)) || b.InputTokens != int64(len(ids)) || len(a.Blocks) != (len(ids)+1)/2 {
		t.Errorf("%d and %d tokens, want %d; %d blocks", a.InputTokens, b.InputTokens, len(ids), len(a.Blocks))
	}
	for i := range a.Blocks {
		if a.Blocks[i] != b.Blocks[i] {
			t.Errorf("blocks %v and %v", a.Blocks, b.Blocks)
			break
		}
	}
	rd, err := record.Open(r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if h := rd.Header(); h.BlockSize != 2 || h.BlockUnit != "" {
		t.Errorf("header %+v", h)
	}
}
