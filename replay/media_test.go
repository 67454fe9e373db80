package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retrace/openai"
	"retrace/record"
)

// Files that a body names go into it, and nothing else of it changes.
func TestMediaInline(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.PNG": "ab", "b": "\x89PNG\r\n\x1a\n", "c.wav": "abc", "ä.png": "ab"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	media, err := openMediaDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer media.close()
	for _, c := range []struct{ body, want string }{
		{`{"image_url": {"url" : "file:a.PNG", "x":1.0}}`, `{"image_url": {"url":"data:image/png;base64,YWI=", "x":1.0}}`},
		{`[{"image_url":"file://b"},{"url":"https://h/a.png"}]`, `[{"image_url":"data:image/png;base64,iVBORw0KGgo="},{"url":"https://h/a.png"}]`},
		{`{"url":"file:\u00e4.png","x":"\u00e4"}`, `{"url":"data:image/png;base64,YWI=","x":"\u00e4"}`},
		{`{"url":"file:\/\/.\/a.PNG"}`, `{"url":"data:image/png;base64,YWI="}`},
		{`{"input_audio":{"data":"file:c.wav","format":"wav"}}`, `{"input_audio":{"data":"YWJj","format":"wav"}}`},
		{`{"text":"\"url\":\"file:a.PNG\"","url":"data:,x","other":"file:a.PNG"}`, `{"text":"\"url\":\"file:a.PNG\"","url":"data:,x","other":"file:a.PNG"}`},
	} {
		if got, err := media.inline([]byte(c.body)); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.body, got, err, c.want)
		}
		var none *mediaDir
		if got, err := none.inline([]byte(c.body)); err != nil || string(got) != c.body {
			t.Errorf("%s without a directory: got %s, %v", c.body, got, err)
		}
	}
	for _, bad := range []string{`{"url":"file:none.png"}`, `{"url":"file:///etc/hostname"}`, `{"url":"file:../x"}`,
		`{"url":"file:..\/x"}`, `{"url":"file:a\u0000.PNG"}`, `{"url":"file:\\a.PNG"}`, `{"url":"file:"}`, `{"url":"file:\ud800"}`} {
		if got, err := media.inline([]byte(bad)); err == nil || !strings.Contains(err.Error(), "read media") {
			t.Errorf("%s: got %s, %v", bad, got, err)
		}
	}
	// The estimate of a body's length takes the files in: 4 bytes for each.
	for body, want := range map[string]int64{`{"url":"file:a.PNG","data":"file:c.wav"}`: 8, `{"url":"file:\u00e4.png"}`: 4, `{"url":"file:none"}`: 0} {
		if got := media.size(&job{api: openai.Chat, source: []byte(body)}); got != want {
			t.Errorf("%s: %d bytes more, want %d", body, got, want)
		}
	}
	for _, form := range []string{`{"file":"c.wav"}`, `{"file":"file:c.wav"}`} {
		if got := media.size(&job{api: openai.Transcriptions, source: []byte(form)}); got != 4 {
			t.Errorf("%s: %d bytes more", form, got)
		}
	}
	b := &bodies{cfg: &Config{Requests: RequestConfig{Stream: StreamOwn}}, media: media}
	got, err := b.append(nil, &job{api: openai.Chat, source: []byte(`{"messages":[{"content":[{"image_url":{"url":"file:a.PNG"}}]}],"stream":false}`), output: record.Unknown})
	if want := `{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,YWI="}}]}],"stream":false}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
