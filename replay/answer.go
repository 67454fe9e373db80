package replay

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"retrace/openai"
	"retrace/record"
)

const (
	// maxAnswer bounds an answer that comes as plain JSON.
	maxAnswer = 64 << 20
	// maxReading is the largest buffer that is kept for another answer.
	maxReading = 64 << 10
	// drainTime is how long a body may stay open after its last event.
	drainTime = 500 * time.Millisecond
)

// reading is the state of an answer under way; it is pooled.
type reading struct {
	events *openai.EventReader
	stream *openai.Stream
	head   [512]byte
	last   []time.Duration // the last output of each choice
}

var readings = sync.Pool{New: func() any {
	return &reading{events: openai.NewEventReader(nil, 0), stream: openai.NewStream()}
}}

// answer reads the body of a successful response and settles the result.
func (e *engine) answer(ctx context.Context, a *attempt, resp *http.Response, j *job, drained context.CancelCauseFunc) {
	rd := readings.Get().(*reading)
	defer func() {
		if rd.events.Size() <= maxReading {
			rd.events.Reset(nil) // holds on to no body
			readings.Put(rd)
		}
	}()
	rd.stream.Reset()
	rd.stream.Capture = e.cfg.KeepOutput
	rd.last = rd.last[:0]

	res := &j.res
	body, err := e.decoded(resp)
	if err != nil {
		res.End = e.clock.now()
		switch {
		case cut(ctx, res):
			res.Error = cutSentence(res, e.cfg.Timeout)
		case isBroken(err):
			e.settle(res, openai.Truncated, err.Error())
		default:
			e.settle(res, openai.BadResponse, err.Error())
		}
		return
	}
	n, err := sniff(body, rd.head[:])
	head := rd.head[:n]
	rest := &prefixed{head: head, rest: body, err: err}
	switch kindOf(head, resp.Header.Get("Content-Type")) {
	case bodyJSON:
		e.plain(ctx, res, rd, rest)
	case bodyOther:
		res.End = e.clock.now()
		e.settle(res, openai.BadResponse, fmt.Sprintf("the answer is neither events nor JSON: found %q", openai.Snippet(head)))
	default:
		rd.events.Reset(rest)
		e.streamed(ctx, a, res, rd, drained)
	}
	if e.cfg.KeepOutput {
		res.Output = append([]byte(nil), rd.stream.Text()...)
	}
}

// streamed follows the events to the end.
func (e *engine) streamed(ctx context.Context, a *attempt, res *record.Result, rd *reading, drained context.CancelCauseFunc) {
	var end error
	var timer *time.Timer
	for {
		ev, err := rd.events.Next()
		if err != nil {
			end = err
			break
		}
		at := e.moment(a)
		outputs := rd.stream.Feed(ev)
		for i := range outputs {
			rd.output(res, outputs[i], at)
		}
		if rd.stream.Done && timer == nil {
			res.End = at
			timer = time.AfterFunc(drainTime, func() { drained(errDrained) })
			defer timer.Stop()
		}
	}
	if errors.Is(end, io.EOF) {
		end = nil
	}
	if !errors.Is(context.Cause(ctx), errDrained) {
		res.End = e.moment(a)
	}
	takeUsage(res, rd.stream)
	res.CountedOutput = rd.stream.OutputChunks()
	if end != nil && !rd.stream.Done && cut(ctx, res) {
		res.Error = cutSentence(res, e.cfg.Timeout)
		return
	}
	verdict, message := rd.stream.Verdict(end)
	if verdict == openai.Truncated && rd.events.Foreign() {
		verdict, message = openai.BadResponse, "the answer is neither events nor JSON: "+message
	}
	if errors.Is(end, openai.ErrEventTooLarge) {
		verdict, message = openai.BadResponse, end.Error()
	}
	e.settle(res, verdict, message)
}

// moment is when the bytes last read arrived.
func (e *engine) moment(a *attempt) time.Duration {
	if a.conn != nil {
		if at := a.conn.lastRead(); at != record.NoTime {
			return at
		}
	}
	return e.clock.now()
}

// output notes one output of a stream. Gaps lie within a choice.
func (rd *reading) output(res *record.Result, o openai.Output, at time.Duration) {
	if res.FirstOutput == record.NoTime {
		res.FirstOutput = at
	}
	if o.Channel == openai.Content && res.FirstContent == record.NoTime {
		res.FirstContent = at
	}
	res.LastOutput = at
	if o.Choice > maxChoices {
		return
	}
	for len(rd.last) <= o.Choice {
		rd.last = append(rd.last, record.NoTime)
	}
	if before := rd.last[o.Choice]; before != record.NoTime {
		res.Gaps = append(res.Gaps, record.Gap{Wait: at - before, Tokens: o.Tokens})
	}
	rd.last[o.Choice] = at
}

// maxChoices bounds the choices whose gaps are followed.
const maxChoices = 4096

// plain reads an answer that came as one JSON object. It has no first output:
// when its first token was made, nobody knows.
func (e *engine) plain(ctx context.Context, res *record.Result, rd *reading, body io.Reader) {
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	res.End = e.clock.now()
	if err != nil {
		if cut(ctx, res) {
			res.Error = cutSentence(res, e.cfg.Timeout)
			return
		}
		e.settle(res, openai.Truncated, fmt.Sprintf("the answer broke off after %d bytes: %v", len(text), err))
		return
	}
	if len(text) > maxAnswer {
		e.settle(res, openai.BadResponse, fmt.Sprintf("the answer has more than %d bytes", maxAnswer))
		return
	}
	rd.stream.FeedJSON(bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")))
	takeUsage(res, rd.stream)
	verdict, message := rd.stream.Verdict(nil)
	if verdict == openai.Whole {
		res.LastOutput = res.End
		message = "the answer came as plain JSON, not as a stream"
	}
	e.settle(res, verdict, message)
}

func takeUsage(res *record.Result, s *openai.Stream) {
	res.PromptTokens, res.CompletionTokens = s.Usage.Prompt, s.Usage.Completion
	res.CachedTokens, res.ReasoningTokens = s.Usage.Cached, s.Usage.Reasoning
	res.FinishReason = s.FinishReason()
}

// settle gives a result the state that a verdict stands for. A note on a whole
// answer stays in Error.
func (e *engine) settle(res *record.Result, v openai.Verdict, message string) {
	res.Error = message
	if res.End == record.NoTime {
		res.End = e.clock.now()
	}
	res.State = record.Failed
	switch v {
	case openai.Whole:
		res.State = record.Completed
	case openai.StreamError:
		res.Class = record.ClassStreamError
	case openai.Truncated:
		res.Class = record.ClassTruncated
	default:
		res.Class = record.ClassBadResponse
	}
}

// decoded undoes a content encoding that the server used unasked.
func (e *engine) decoded(resp *http.Response) (io.Reader, error) {
	encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	if encoding == "" || encoding == "identity" {
		return resp.Body, nil
	}
	e.tally.compressed.Add(1)
	var r io.Reader
	var err error
	switch encoding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(resp.Body)
	case "deflate":
		r, err = zlib.NewReader(resp.Body)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(resp.Body, zstd.WithDecoderConcurrency(1)); err == nil {
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
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil && media == "text/event-stream" {
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
