package replay

import (
	"bytes"
	"io"
	"mime"

	"retrace/openai"
)

// bodyKind is what an answer's body looks like.
type bodyKind uint8

const (
	bodyEvents bodyKind = iota
	bodyJSON
	bodyOther
)

// kindOf looks at the body first and believes its header only where that
// leaves it open.
func kindOf(head []byte, contentType string) bodyKind {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), " \t\r\n")
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return bodyJSON
	}
	if len(text) > 0 && text[0] == '<' {
		return bodyOther
	}
	for _, field := range [...]string{"data", ":", "event", "id", "retry"} { // "" is all of them
		n := min(len(field), len(text))
		if string(text[:n]) == field[:n] {
			return bodyEvents
		}
	}
	if mediaType(contentType) == "text/event-stream" {
		return bodyEvents
	}
	return bodyOther
}

// sniff reads until something that is not white space has come.
func sniff(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) {
		var m int
		m, err = r.Read(buf[n:])
		n += m
		if n > 0 && buf[0] == 0 && n < 12 && err == nil { // perhaps binary frames
			continue
		}
		if err != nil || len(bytes.TrimLeft(buf[:n], " \t\r\n\xEF\xBB\xBF")) > 0 {
			return n, err
		}
	}
	return n, nil
}

// prefixed reads head, then rest; err, where not nil, stands for rest.
type prefixed struct {
	head []byte
	rest io.Reader
	err  error
}

// Read is io.Reader's.
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.rest.Read(b)
}

// mayBeLines says whether an answer in JSON may be lines, an event each.
func mayBeLines(api openai.API, contentType string) bool {
	switch mediaType(contentType) {
	case "application/jsonlines", "application/jsonl", "application/x-ndjson", "application/ndjson", "application/json-lines", "application/stream+json":
		return true
	}
	return api == openai.InvocationsStream
}

// isText says whether an answer is text and nothing else, subtitles among it.
func isText(head []byte, contentType string) bool {
	if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 && (text[0] == '{' || text[0] == '<') {
		return false
	}
	switch mediaType(contentType) {
	case "text/plain", "text/vtt", "text/srt", "application/x-subrip":
		return true
	}
	return false
}

func mediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return media
}
