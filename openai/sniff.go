package openai

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// BodyKind is what an answer's body looks like.
type BodyKind uint8

const (
	// BodyEvents is a stream of server-sent events.
	BodyEvents BodyKind = iota
	// BodyJSON is JSON, of one value or several.
	BodyJSON
	// BodyOther is nothing that these APIs send.
	BodyOther
)

// SniffLen is the room that Sniff needs to tell any kind of body.
const SniffLen = 512

// KindOf looks at the body first and believes its header only where that
// leaves it open.
func KindOf(head []byte, contentType string) BodyKind {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), " \t\r\n")
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return BodyJSON
	}
	if len(text) > 0 && text[0] == '<' {
		return BodyOther
	}
	for _, field := range [...]string{"data", ":", "event", "id", "retry"} { // "" is all of them
		n := min(len(field), len(text))
		if string(text[:n]) == field[:n] {
			return BodyEvents
		}
	}
	if mediaType(contentType) == "text/event-stream" {
		return BodyEvents
	}
	return BodyOther
}

// Sniff reads the beginning of an answer into buf, of SniffLen bytes, until
// something that is not white space has come; rest reads the answer from that
// beginning on. Of an Amazon event stream both are what its frames hold.
func Sniff(body io.Reader, buf []byte) (head []byte, rest io.Reader) {
	head, rest = sniff(body, buf)
	if IsEventStream(head) {
		head, rest = sniff(NewEventStreamReader(rest), buf)
	}
	return head, rest
}

func sniff(r io.Reader, buf []byte) (head []byte, rest io.Reader) {
	n, err := readHead(r, buf)
	return buf[:n], &sniffed{head: buf[:n], rest: r, err: err}
}

// readHead reads until something that is not white space has come.
func readHead(r io.Reader, buf []byte) (n int, err error) {
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

// sniffed reads head, then rest; err, where not nil, stands for rest.
type sniffed struct {
	head []byte
	rest io.Reader
	err  error
}

// Read is io.Reader's.
func (p *sniffed) Read(b []byte) (int, error) {
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

// MayBeLines says whether an answer in JSON may be lines, an event each.
func MayBeLines(api API, contentType string) bool {
	switch mediaType(contentType) {
	case "application/jsonlines", "application/jsonl", "application/x-ndjson", "application/ndjson", "application/json-lines", "application/stream+json":
		return true
	}
	return api == InvocationsStream
}

// IsText says whether an answer is text and nothing else, subtitles among it.
func IsText(head []byte, contentType string) bool {
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

// Encoded says whether a Content-Encoding names one.
func Encoded(encoding string) bool {
	encoding = strings.TrimSpace(encoding)
	return encoding != "" && !strings.EqualFold(encoding, "identity")
}

// Decoded undoes the Content-Encoding of a body. It reads the body's head
// where that has to tell how.
func Decoded(body io.Reader, encoding string) (r io.Reader, err error) {
	if !Encoded(encoding) {
		return body, nil
	}
	encoding = strings.ToLower(strings.TrimSpace(encoding))
	switch encoding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(body)
	case "deflate":
		r, err = zlib.NewReader(body)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1)); err == nil {
			r = d.IOReadCloser()
		}
	default:
		return nil, fmt.Errorf("content encoding %q: want gzip, deflate, zstd or none", encoding)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s answer: %w", encoding, err)
	}
	return r, nil
}
