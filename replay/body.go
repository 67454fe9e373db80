package replay

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// The optional fields of a body, which a server may refuse.
var optionalFields = [...]string{"stream_options", "ignore_eos", "min_tokens"}

const (
	optStreamOptions = iota
	optIgnoreEOS
	optMinTokens
)

// bodies renders requests. It is safe for concurrent use.
type bodies struct {
	cfg     *Config
	maker   *prompt.Maker
	model   []byte // the JSON string, nil sends none
	extra   []member
	refused atomic.Uint32 // a bit for each of optionalFields
}

func newBodies(cfg *Config, maker *prompt.Maker, model string) (*bodies, error) {
	extra, err := parseExtra(cfg.Extra)
	b := &bodies{cfg: cfg, maker: maker, extra: extra}
	if model != "" {
		b.setModel(model)
	}
	return b, err
}

// setModel names the model, before the first body.
func (b *bodies) setModel(model string) { b.model = openai.AppendQuoted(nil, model) }

// refuse notes an optional field that the message of a refusal names, where
// body has it; false where there is none. A field that another answer has
// brought down meanwhile counts too: the request is to be made without it.
func (b *bodies) refuse(message string, body fields) bool {
	for i, name := range optionalFields {
		if body.has(i) && strings.Contains(message, name) {
			b.refused.Or(1 << i)
			return true
		}
	}
	return false
}

// fields is a set of optionalFields.
type fields uint32

// fieldsFor says which optional fields j's body is to have.
func (b *bodies) fieldsFor(j *job) fields {
	f := fields(1 << optStreamOptions)
	if b.cfg.IgnoreEOS && j.output != record.Unknown {
		f |= 1<<optIgnoreEOS | 1<<optMinTokens
	}
	return f &^ fields(b.refused.Load())
}

// stale says whether a body has a field that was refused since.
func (b *bodies) stale(f fields) bool { return f&fields(b.refused.Load()) != 0 }

func (f fields) has(option int) bool { return f&(1<<option) != 0 }

// size is an upper estimate of a body's length.
func (b *bodies) size(j *job) int64 {
	if j.source != nil {
		return int64(len(j.source)) + 256
	}
	return int64(j.prompt.Tokens())*8 + 512
}

// append renders j's body, with j.fields.
func (b *bodies) append(dst []byte, j *job) ([]byte, error) {
	if j.source != nil {
		list, last, err := spans(j.source)
		if err != nil {
			return dst, fmt.Errorf("edit body: %w", err)
		}
		return editMembers(dst, j.source, list, last, b.members(j, list)), nil
	}
	dst = append(dst, '{')
	if j.api == openai.Chat {
		dst = append(dst, `"messages":[{"role":"user","content":"`...)
		dst = b.maker.AppendText(dst, j.prompt)
		dst = append(dst, `"}]`...)
	} else if b.cfg.Prompt == Text {
		dst = append(dst, `"prompt":"`...)
		dst = b.maker.AppendText(dst, j.prompt)
		dst = append(dst, '"')
	} else {
		dst = append(dst, `"prompt":`...)
		dst = b.maker.AppendTokens(dst, j.prompt)
	}
	for _, m := range b.members(j, nil) {
		if m.value != nil {
			dst = append(dst, ',', '"')
			dst = append(append(append(dst, m.key...), '"', ':'), m.value...)
		}
	}
	return append(dst, '}'), nil
}

// members are the fields that a body gets beside its prompt. One with a nil
// value is to be taken out of a literal body that has it; list are those that
// a literal body has.
func (b *bodies) members(j *job, list []span) []member {
	out := make([]member, 0, 8+len(b.extra))
	set := func(key string, value []byte) {
		for _, x := range b.extra {
			if x.key == key {
				return
			}
		}
		out = append(out, member{key, value})
	}
	if b.model != nil {
		set("model", b.model)
	}
	set("stream", []byte("true"))
	if j.fields.has(optStreamOptions) {
		set("stream_options", []byte(`{"include_usage":true}`))
	} else {
		set("stream_options", nil)
	}
	if j.output != record.Unknown && (j.source == nil || b.cfg.setsLengths()) {
		for _, key := range lengthKeys(list) {
			set(key, strconv.AppendInt(nil, j.output, 10))
		}
	}
	if j.fields.has(optIgnoreEOS) {
		set("ignore_eos", []byte("true"))
	}
	if j.fields.has(optMinTokens) {
		set("min_tokens", strconv.AppendInt(nil, j.output, 10))
	}
	return append(out, b.extra...)
}

var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is the largest buffer that is kept for another body.
const maxPooled = 1 << 20

// payload is a request's body. Close, or the last read, gives the buffer back;
// the two may come from different goroutines, for net/http closes a body that
// it still reads from.
type payload struct {
	mu      sync.Mutex
	buf     *[]byte
	off     int
	release func()
}

var errBodyClosed = errors.New("body is closed")

// Read is io.Reader's.
func (p *payload) Read(dst []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf == nil {
		return 0, errBodyClosed
	}
	n := copy(dst, (*p.buf)[p.off:])
	p.off += n
	if p.off == len(*p.buf) {
		return n, io.EOF
	}
	return n, nil
}

// size is the body's length, bytes the body; both before it is freed.
func (p *payload) size() int64   { return int64(len(*p.buf)) }
func (p *payload) bytes() []byte { return *p.buf }

// Close is io.Closer's.
func (p *payload) Close() error {
	p.free()
	return nil
}

// free gives the buffer back; of no payload too.
func (p *payload) free() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf == nil {
		return
	}
	if cap(*p.buf) <= maxPooled {
		*p.buf = (*p.buf)[:0]
		bufferPool.Put(p.buf)
	}
	p.buf = nil
	p.release()
}

// Replays says whether requests of the API can be replayed.
func Replays(api openai.API) bool {
	_, err := endpointPath(api)
	return err == nil
}

func endpointPath(api openai.API) (string, error) {
	switch api {
	case openai.Completions:
		return "/v1/completions", nil
	case openai.Chat:
		return "/v1/chat/completions", nil
	}
	return "", fmt.Errorf("api %q is not one that is replayed", api)
}
