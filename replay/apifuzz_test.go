package replay

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"testing"

	"retrace/openai"
)

// FuzzBodies: whatever body a trace has for whatever API, what is sent of it is
// a JSON object, or a form, or nothing; and what nobody set stays.
func FuzzBodies(f *testing.F) {
	for i, body := range []string{
		`{"messages":[],"stream":false,"stream_options":{"x":1}}`, `{"prompt":"a","max_tokens":null}`, `{"inputs":"a","parameters":{"max_new_tokens":1}}`,
		`{"inputs":"a","parameters":7}`, `{"file":"data:,x","a":[1,"b",{}],"n":null,"filename":7}`, `{"file":"x"}`, `{"stream":1,"stream":2}`, `[]`, `{"a":`,
	} {
		f.Add([]byte(body), uint8(i), int64(i-2), true)
	}
	apis := openai.APIs()
	f.Fuzz(func(t *testing.T, body []byte, which uint8, output int64, force bool) {
		api := apis[int(which)%len(apis)]
		cfg := Config{IgnoreEOS: force, Requests: RequestConfig{Stream: StreamOwn}}
		b := &bodies{cfg: &cfg, model: []byte(`"m"`)}
		j := &job{api: api, source: body, output: max(output, -1), priority: &output}
		_ = bodyLimit(api, body)
		got, err := b.append(nil, j)
		if err != nil {
			return
		}
		if api == openai.Transcriptions {
			r := multipart.NewReader(bytes.NewReader(got), formBoundary)
			for {
				part, err := r.NextRawPart()
				if err != nil {
					break
				}
				_ = part.Close() // it is in memory
			}
			return
		}
		var sent, own map[string]json.RawMessage
		if err := json.Unmarshal(got, &sent); err != nil {
			t.Fatalf("%s: sent %s: %v", body, got, err)
		}
		if err := json.Unmarshal(body, &own); err != nil {
			t.Fatalf("%s was taken: %v", body, err)
		}
		set := map[string]bool{"model": true, "stream": true, "stream_options": true, "parameters": true, "ignore_eos": true, "min_tokens": true, "priority": true,
			maxTokens: true, maxCompletionTokens: true, maxOutputTokens: true}
		for key, raw := range own {
			if !set[key] && !bytes.Equal(raw, sent[key]) {
				t.Fatalf("%s: member %q became %s", body, key, sent[key])
			}
		}
	})
}
