package simserver

import (
	"net/http"
	"regexp"
	"testing"
	"unicode/utf8"

	"retrace/openai"
)

// Whatever a body says, preparing it ends in a call or in an error of the 400s,
// and gives the engine nothing that it cannot bear.
func FuzzPrepare(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"a","n":2}`, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,x"}}]}]}`,
		`{"input":[{"type":"function_call","name":"f","arguments":"{}"}],"reasoning":{"effort":"low"}}`, `{"input":[[1],[2]],"dimensions":3}`,
		`{"query":"a","documents":["b",{"text":"c"}]}`, `{"inputs":"a","parameters":{"stop":["x"]}}`,
		`{"prompt":"a","guided_json":{"type":["null","array"],"items":{"$ref":"#"}}}`,
		`{"messages":[{"role":"user","content":"call f"}],"tools":[{"function":{"name":"f"}}],"tool_choice":"auto"}`,
	} {
		for i := range openai.APIs() {
			f.Add(byte(i), []byte(s))
		}
	}
	cfg := instantConfig()
	cfg.CacheBlocks, cfg.MaxModelLen = 512, 4096
	s, err := New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		apis := openai.APIs()
		api := apis[int(which)%len(apis)]
		g := &generation{path: api, api: api, body: body}
		r := &http.Request{Header: http.Header{}}
		if api == openai.Transcriptions {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		}
		fail := s.prepare(g, r, 1)
		if fail != nil {
			if fail.status < 400 || fail.status > 499 || fail.message == "" {
				t.Fatalf("%d %q", fail.status, fail.message)
			}
			s.discard(g)
			return
		}
		for _, q := range g.call.seqs {
			if q.target < 1 || q.lead > q.target || q.promptLen+q.target > cfg.MaxModelLen+1 || len(q.hashes) != q.promptLen/cfg.BlockSize {
				t.Fatalf("%s: prompt %d, target %d, lead %d, %d hashes", body, q.promptLen, q.target, q.lead, len(q.hashes))
			}
		}
		s.discard(g)
	})
}

// A text that an expression gives is one that it matches.
func FuzzRegex(f *testing.F) {
	for _, s := range []string{`a|b`, `[^a]{2,}\d+?`, `^(x$)?`, `\bq`, `(?i)é`, `\p{Greek}`} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		re, err := parseRegex(text)
		if err != nil || len(text) > 200 {
			return
		}
		out, err := re.generate(seed)
		if err == nil && !regexp.MustCompile(`^(?:`+text+`)$`).MatchString(out) {
			t.Fatalf("%q does not match %q", out, text)
		}
	})
}

// A grammar gives a bounded sentence of valid text, or is refused.
func FuzzGrammar(f *testing.F) {
	for _, s := range []string{"root ::= \"a\" root | \"b\"", "start: A~2..3 [\"x\"]\nA: /[a-z]+/ -> name", "root ::= [^\"]* ('x' | y){2,}\ny ::= \".\"?"} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		g, err := parseGrammar(text)
		if err != nil || len(text) > 2000 {
			return
		}
		out, err := g.generate(seed)
		if err == nil && len(out) > 2*maxConstrained {
			t.Fatalf("%d bytes", len(out))
		}
	})
}

// A script cut into pieces is the same text, whole characters each.
func FuzzScript(f *testing.F) {
	f.Add("añb€c")
	f.Fuzz(func(t *testing.T, text string) {
		whole := ""
		for _, p := range newScript(text, false).pieces {
			if utf8.ValidString(text) && !utf8.ValidString(p) {
				t.Fatalf("%q is cut within a character", p)
			}
			whole += p
		}
		if whole != text {
			t.Fatalf("%q became %q", text, whole)
		}
	})
}

// Any bytes have a duration.
func FuzzAudioSeconds(f *testing.F) {
	f.Add(wav(8000, 1)[:64], int64(16044))
	f.Fuzz(func(t *testing.T, head []byte, size int64) {
		size = max(size, int64(len(head)))
		if d := audioSeconds(head, size); !(d >= 0) {
			t.Fatalf("%v seconds", d)
		}
	})
}
