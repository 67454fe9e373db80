package capture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retrace/openai"
	"retrace/record"
)

func chat(messages ...string) string {
	var list []map[string]string
	for i, m := range messages {
		list = append(list, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": m})
	}
	body, _ := json.Marshal(map[string]any{"model": "m", "messages": list})
	return string(body)
}

// shared is how many first numbers two lists share.
func shared(a, b []uint64) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Blocks of one token are of four bytes. The ChatML of a user's message has 17
// bytes before its content and 11 behind it.
func TestSharing(t *testing.T) {
	long := strings.Repeat("x", 400)
	for _, c := range []struct {
		name string
		api  openai.API
		a, b string
		want int
		of   [2]int
	}{
		{"same text", openai.Completions, `{"prompt":"abcdefghij"}`, `{"prompt":"abcdefghij"}`, 3, [2]int{3, 3}},
		{"text goes on", openai.Completions, `{"prompt":"abcdefgh"}`, `{"prompt":"abcdefghij"}`, 2, [2]int{2, 3}},
		{"partial block goes on", openai.Completions, `{"prompt":"abcdef"}`, `{"prompt":"abcdefgh"}`, 1, [2]int{2, 2}},
		{"equal blocks after others", openai.Completions, `{"prompt":"abcdXXXX"}`, `{"prompt":"ABCDXXXX"}`, 0, [2]int{2, 2}},
		{"token ids", openai.Completions, `{"prompt":[1,2,3]}`, `{"prompt":[1,2,4,5]}`, 2, [2]int{3, 4}},
		{"another cache salt", openai.Completions, `{"prompt":"abcd"}`, `{"prompt":"abcd","cache_salt":"s"}`, 0, [2]int{1, 1}},
		{"no text", openai.Completions, `{"prompt":""}`, `{"prompt":"a"}`, 0, [2]int{0, 1}},
		// 17 + 400 + 11 = 428 bytes of the first turn; 107 blocks
		{"next turn", openai.Chat, chat(long), chat(long, "yes", "and"), 107, [2]int{107, 107 + (22+3+11+17+3+11+3)/4}},
		{"another first message", openai.Chat, chat("a" + long), chat("b" + long), 4, [2]int{108, 108}},
		{"string or part", openai.Chat, chat("hi"), `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, 8, [2]int{8, 8}},
		{"other image", openai.Chat,
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://a"}},{"type":"text","text":"hi"}]}]}`,
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://b"}},{"type":"text","text":"hi"}]}]}`, 6, [2]int{26, 26}},
		{"responses", openai.Responses, `{"input":"hi"}`, `{"input":[{"role":"user","content":"hi"}]}`, 8, [2]int{8, 8}},
		{"after other responses", openai.Responses, `{"input":"hi","previous_response_id":"a"}`, `{"input":"hi","previous_response_id":"b"}`, 0, [2]int{8, 8}},
		{"inputs and prompt", openai.Invocations, `{"inputs":"abcdefgh"}`, `{"prompt":"abcdefgh"}`, 2, [2]int{2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := NewNumbering(salt(t), 1)
			a, okA := numbers(n, c.api, c.a)
			b, okB := numbers(n, c.api, c.b)
			if !okA || !okB || shared(a, b) != c.want || len(a) != c.of[0] || len(b) != c.of[1] {
				t.Errorf("found %d shared of %d and %d (%v, %v), want %d of %v", shared(a, b), len(a), len(b), okA, okB, c.want, c.of)
			}
			ids := slices.Concat(a, b)
			for i, id := range ids {
				if id > uint64(i) || id > 0 && !slices.Contains(ids[:i], id-1) && id != 0 {
					t.Errorf("number %d at %d is not dense", id, i)
				}
			}
		})
	}
}

func numbers(n *Numbering, api openai.API, body string) ([]uint64, bool) {
	p, ok := ReadPrompt(api, []byte(body))
	if !ok {
		return nil, false
	}
	return n.Append(nil, p)
}

func TestNoPrompt(t *testing.T) {
	for _, c := range []struct {
		api  openai.API
		body string
	}{
		{openai.Completions, `{"prompt":["a","b"]}`},
		{openai.Completions, `{"prompt":`},
		{openai.Completions, `{}`},
		{openai.Chat, `{"messages":[]}`},
		{openai.Embeddings, `{"input":[[1],[2]]}`},
		{openai.Rerank, `{"query":"q","documents":["d"]}`},
		{openai.Transcriptions, `{"file":"a"}`},
		{openai.Invocations, `{"other":1}`},
		{"unheard-of", `{"prompt":"a"}`},
	} {
		if p, ok := ReadPrompt(c.api, []byte(c.body)); ok {
			t.Errorf("%s %s: found %+v", c.api, c.body, p)
		}
	}
}

// The first prompt settles the unit: ids count as bytes among text, text has no
// blocks among ids.
func TestUnit(t *testing.T) {
	text, ids := Prompt{Text: "abcdefgh"}, Prompt{Tokens: []uint32{1, 2, 3}, IsTokens: true}
	for _, c := range []struct {
		prompts []Prompt
		want    []int
		header  record.Header
	}{
		// 8 and 12 bytes are one and two blocks of 2 tokens, of 8 bytes each;
		// 8 bytes of 2 tokens are 4 a token
		{[]Prompt{text, ids}, []int{1, 2}, record.Header{BlockSize: 8, BlockUnit: "bytes", BytesPerToken: 4}},
		{[]Prompt{ids, text}, []int{2, 0}, record.Header{BlockSize: 2}},
		{nil, nil, record.Header{PrefixSynthesised: true}},
	} {
		n := NewNumbering(salt(t), 2)
		for i, p := range c.prompts {
			got, ok := n.Append(nil, p)
			if n.Measure(p, 2); len(got) != c.want[i] || ok != (c.want[i] > 0) {
				t.Errorf("%v: found %v, %v, want %d blocks", p, got, ok, c.want[i])
			}
		}
		var h record.Header
		n.Describe(&h)
		if got, want := fmt.Sprint(h), fmt.Sprint(c.header); got != want {
			t.Errorf("header: found %s, want %s", got, want)
		}
	}
}

func TestStrip(t *testing.T) {
	s := salt(t)
	full := func() record.Request {
		r := record.NewRequest()
		r.ID, r.Parent, r.Session, r.Model = "secret-2", "secret-1", "secret", "m"
		r.Body, r.Extra = []byte(`"secret"`), []byte(`{"a":"secret"}`)
		r.Exceptions = []record.Exception{{Field: "secret"}}
		r.Media = []record.Media{{Kind: "image", Ref: "secret", Bytes: 3}}
		r.Blocks = []uint64{0}
		return r
	}
	for _, c := range []struct {
		mode    Mode
		blocks  int
		secrets bool
	}{{Lengths, 0, false}, {Blocks, 1, false}, {Full, 1, true}} {
		r, parent := full(), full()
		parent.ID = r.Parent
		c.mode.Strip(&r, s)
		c.mode.Strip(&parent, s)
		all := fmt.Sprintf("%s %s %s %s %s %v %v", r.ID, r.Parent, r.Session, r.Body, r.Extra, r.Exceptions, r.Media)
		if strings.Contains(all, "secret") != c.secrets || len(r.Blocks) != c.blocks || r.Parent != parent.ID || r.Session != parent.Session || r.Model != "m" {
			t.Errorf("%s: left %s and %d blocks", c.mode, all, len(r.Blocks))
		}
	}
	for _, name := range []string{"", "none", "Full"} {
		if _, err := ParseMode(name); err == nil {
			t.Errorf("mode %q was taken", name)
		}
	}
}

func FuzzReadPrompt(f *testing.F) {
	f.Add("chat", []byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}},"a",{"type":"text","text":"b"}]}]}`))
	f.Add("responses", []byte(`{"input":[{"type":"function_call_output","output":[{"type":"input_text","text":"a"}]}],"instructions":"b"}`))
	f.Add("invocations", []byte(`{"inputs":"a"}`))
	f.Fuzz(func(t *testing.T, api string, body []byte) {
		p, ok := ReadPrompt(openai.API(api), body)
		if !ok {
			return
		}
		n := NewNumbering(NewSalt(), 4)
		a, _ := n.Append(nil, p)
		b, _ := n.Append(nil, p)
		if size := max(len(p.Text), 4*len(p.Tokens)); len(a) != (size+15)/16 || !slices.Equal(a, b) {
			t.Errorf("%d bytes: found %v and %v", size, a, b)
		}
	})
}

// What is settled holds whatever comes first; a file without text has blocks of
// tokens all the same, for an id takes the room of a token.
func TestSettle(t *testing.T) {
	text, ids := Prompt{Text: "abcdefgh"}, Prompt{Tokens: []uint32{1, 2, 3}, IsTokens: true}
	for _, c := range []struct {
		unit    string
		prompts []Prompt
		want    []int
		header  record.Header
	}{
		{"bytes", []Prompt{ids, text}, []int{2, 1}, record.Header{BlockSize: 8, BlockUnit: "bytes", BytesPerToken: 4}},
		{"bytes", []Prompt{ids}, []int{2}, record.Header{BlockSize: 2}},
		{"", []Prompt{text, ids}, []int{0, 2}, record.Header{BlockSize: 2}},
	} {
		n := NewNumbering(salt(t), 2)
		n.Settle(c.unit)
		for i, p := range c.prompts {
			got, _ := n.Append(nil, p)
			if n.Measure(p, 2); len(got) != c.want[i] {
				t.Errorf("%q, %v: found %v, want %d blocks", c.unit, p, got, c.want[i])
			}
		}
		var h record.Header
		n.Describe(&h)
		if got, want := fmt.Sprint(h), fmt.Sprint(c.header); got != want {
			t.Errorf("header: found %s, want %s", got, want)
		}
	}
}

// Blocks are forgotten in the order of their last coming, and no number is given
// twice.
func TestRemember(t *testing.T) {
	n := NewNumbering(salt(t), 1)
	n.Remember(2)
	var got []uint64
	for _, id := range []uint32{1, 2, 1, 3, 4, 1, 2, 5, 6, 1} { // 2 is forgotten when it comes again
		got, _ = n.Append(got, Prompt{Tokens: []uint32{id}, IsTokens: true})
	}
	// young and old numbers: 0 1 | –, 2 3 | 0 1, 0 | 2 3 (1 forgotten), 0 4 | 2 3,
	// 5 6 | 0 4 (2 and 3 forgotten), 0 | 5 6 (4 forgotten)
	if want := []uint64{0, 1, 0, 2, 3, 0, 4, 5, 6, 0}; !slices.Equal(got, want) || n.Forgotten() != 4 {
		t.Errorf("found %v, %d forgotten, want %v, 4", got, n.Forgotten(), want)
	}
}
