package openai

import "testing"

func TestAPIPaths(t *testing.T) {
	want := map[API]string{
		"completions": "/v1/completions", "chat": "/v1/chat/completions", "responses": "/v1/responses",
		"embeddings": "/v1/embeddings", "rerank": "/v1/rerank", "transcriptions": "/v1/audio/transcriptions",
		"invocations": "/invocations", "invocations-response-stream": "/invocations-response-stream",
	}
	if len(APIs()) != len(want) {
		t.Errorf("got %v, want %d", APIs(), len(want))
	}
	for _, api := range APIs() {
		if api.Path() != want[api] {
			t.Errorf("%s: got %q, want %q", api, api.Path(), want[api])
		}
		if got, err := ParseAPI(string(api)); got != api || err != nil {
			t.Errorf("parse %s: got %q, %v", api, got, err)
		}
	}
	if _, err := ParseAPI("Chat"); err == nil || API("generate").Path() != "" {
		t.Error("an unknown name passed")
	}
}
