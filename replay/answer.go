package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

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
	head   [openai.SniffLen]byte
	last   []time.Duration // the last output of each choice
	single []byte          // the first of JSON values
	zero   time.Duration   // the first output of choice 0, while it is the only one
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
			if cap(rd.single) > maxReading {
				rd.single = nil
			}
			readings.Put(rd)
		}
	}()
	rd.stream.Capture, rd.stream.API = e.cfg.KeepOutput, j.api
	rd.stream.Reset()
	rd.last, rd.zero = rd.last[:0], record.NoTime

	e.read(ctx, &answering{a: a, resp: resp, job: j, reading: rd, drained: drained})
	if e.cfg.KeepOutput {
		j.res.Output = append([]byte(nil), rd.stream.Text()...)
	}
}

// answering is one answer that is being read.
type answering struct {
	*reading
	a       *attempt
	resp    *http.Response
	job     *job
	drained context.CancelCauseFunc
}

// read looks at what the body is, and reads it as that.
func (e *engine) read(ctx context.Context, an *answering) {
	res := &an.job.res
	body, err := e.decoded(an.resp)
	if err != nil {
		e.unreadable(ctx, res, err)
		return
	}
	head, rest := openai.Sniff(body, an.head[:])
	contentType := an.resp.Header.Get("Content-Type")
	kind := openai.KindOf(head, contentType)
	switch {
	case an.job.api == openai.Transcriptions && openai.IsText(head, contentType):
		e.text(ctx, an, rest)
	case kind == openai.BodyJSON && openai.MayBeLines(an.job.api, contentType):
		an.events.ResetLines(rest)
		e.streamed(ctx, an)
	case kind == openai.BodyJSON:
		e.plain(ctx, an, rest)
	case kind == openai.BodyOther:
		e.foreign(&an.job.res, head)
	default:
		an.events.Reset(rest)
		e.streamed(ctx, an)
	}
}

// unreadable settles an answer whose encoding cannot be undone.
func (e *engine) unreadable(ctx context.Context, res *record.Result, err error) {
	res.End = e.clock.now()
	switch {
	case cut(ctx, res):
		res.Error = cutSentence(res, e.cfg.Timeout)
	case isBroken(err):
		e.settle(res, openai.Truncated, err.Error())
	default:
		e.settle(res, openai.BadResponse, err.Error())
	}
}

// foreign settles an answer that is nothing known.
func (e *engine) foreign(res *record.Result, head []byte) {
	res.End = e.clock.now()
	e.settle(res, openai.BadResponse, fmt.Sprintf("the answer is neither events nor JSON: found %q", openai.Snippet(head)))
}

// mostOutputs bounds the outputs of a stream, whose gaps are kept: no model
// makes as many, but a server gone wrong does.
const mostOutputs = 4 << 20

var errManyOutputs = errors.New("the stream goes on and on: more outputs than any answer has")

// streamed follows the events to the end.
func (e *engine) streamed(ctx context.Context, an *answering) {
	res, rd := &an.job.res, an.reading
	var end error
	var timer *time.Timer
	for {
		ev, err := rd.events.Next()
		if err != nil {
			end = err
			break
		}
		at := e.moment(an.a)
		if rd.events.Single() {
			rd.single = append(rd.single[:0], ev.Data...)
		}
		outputs := rd.stream.Feed(ev)
		for i := range outputs {
			rd.output(res, outputs[i], at)
		}
		if len(res.Gaps) > e.cfg.mostOutputs {
			res.Gaps, end = nil, errManyOutputs
			break
		}
		if rd.stream.Done && timer == nil {
			res.End = at
			timer = time.AfterFunc(drainTime, func() { an.drained(errDrained) })
			defer timer.Stop()
		}
	}
	if errors.Is(end, io.EOF) {
		end = nil
	}
	if end == nil && rd.events.Single() {
		e.one(an)
		return
	}
	if !errors.Is(context.Cause(ctx), errDrained) {
		res.End = e.moment(an.a)
	}
	e.takeUsage(res, rd.stream)
	res.CountedOutput = rd.stream.OutputChunks()
	if end != nil && !rd.stream.Done && cut(ctx, res) {
		res.Error = cutSentence(res, e.cfg.Timeout)
		return
	}
	e.judge(an, end)
}

// one settles an answer that might have been lines, but was one value: no
// stream.
func (e *engine) one(an *answering) {
	res := &an.job.res
	res.FirstOutput, res.FirstContent, res.LastOutput, res.Gaps, res.ChoiceFirsts = record.NoTime, record.NoTime, record.NoTime, nil, nil
	res.End = e.moment(an.a)
	an.stream.Reset()
	e.object(an, an.single)
}

// judge settles an answer that came in events.
func (e *engine) judge(an *answering, end error) {
	res, rd := &an.job.res, an.reading
	verdict, message := rd.stream.Verdict(end)
	var told *openai.EventStreamError
	switch {
	case errors.Is(end, openai.ErrEventTooLarge), errors.Is(end, errManyOutputs):
		verdict, message = openai.BadResponse, end.Error()
	case errors.As(end, &told) && verdict != openai.StreamError:
		verdict, message = verdictOf(told), told.Error()
	case verdict == openai.Truncated && rd.events.Foreign():
		verdict, message = openai.BadResponse, "the answer is neither events nor JSON: "+message
	}
	e.settle(res, verdict, message)
}

// verdictOf is what a fault of binary framing says of the answer.
func verdictOf(err *openai.EventStreamError) openai.Verdict {
	if err.Exception != "" {
		return openai.StreamError
	}
	return openai.BadResponse
}

// unstreamed is the note on a whole answer where a stream was asked for.
func unstreamed(j *job) string {
	if j.streams {
		return "the answer came as plain JSON, not as a stream"
	}
	return ""
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
	if before := rd.last[o.Choice]; before == record.NoTime {
		rd.first(res, o.Choice, at)
	} else {
		res.Gaps = append(res.Gaps, record.Gap{Wait: at - before, Tokens: o.Tokens})
	}
	rd.last[o.Choice] = at
}

// first notes the first output of a choice, where it is not the only one.
func (rd *reading) first(res *record.Result, choice int, at time.Duration) {
	if choice == 0 && res.FirstOutput == at && res.ChoiceFirsts == nil {
		rd.zero = at // of a single choice it says nothing more
		return
	}
	for len(res.ChoiceFirsts) <= choice {
		res.ChoiceFirsts = append(res.ChoiceFirsts, record.NoTime)
	}
	if rd.zero != record.NoTime {
		res.ChoiceFirsts[0], rd.zero = rd.zero, record.NoTime
	}
	res.ChoiceFirsts[choice] = at
}

// maxChoices bounds the choices whose gaps are followed.
const maxChoices = 4096

// plain reads an answer that came as one JSON value. It has no first output:
// when its first token was made, nobody knows.
func (e *engine) plain(ctx context.Context, an *answering, body io.Reader) {
	if text, ok := e.whole(ctx, an, body); ok {
		e.object(an, text)
	}
}

// object settles a whole answer.
func (e *engine) object(an *answering, text []byte) {
	res, stream := &an.job.res, an.stream
	stream.FeedJSON(bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")))
	e.takeUsage(res, stream)
	verdict, message := stream.Verdict(nil)
	if wrong := miscounted(an.job, stream); wrong != "" && verdict == openai.Whole {
		verdict, message = openai.BadResponse, wrong
	}
	if verdict == openai.Whole {
		res.LastOutput = res.End
		message = unstreamed(an.job)
	}
	e.settle(res, verdict, message)
}

// text reads a transcript that came as text, subtitles among it.
func (e *engine) text(ctx context.Context, an *answering, body io.Reader) {
	res := &an.job.res
	text, ok := e.whole(ctx, an, body)
	if !ok {
		return
	}
	if e.cfg.KeepOutput {
		an.stream.Take(text)
	}
	res.LastOutput = res.End
	e.settle(res, openai.Whole, unstreamed(an.job))
}

// whole reads a body to its end; what went wrong it settles.
func (e *engine) whole(ctx context.Context, an *answering, body io.Reader) (text []byte, ok bool) {
	res := &an.job.res
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	res.End = e.clock.now()
	var told *openai.EventStreamError
	switch {
	case err != nil && cut(ctx, res):
		res.Error = cutSentence(res, e.cfg.Timeout)
	case errors.As(err, &told):
		e.settle(res, verdictOf(told), told.Error())
	case err != nil:
		e.settle(res, openai.Truncated, fmt.Sprintf("the answer broke off after %d bytes: %v", len(text), err))
	case len(text) > maxAnswer:
		e.settle(res, openai.BadResponse, fmt.Sprintf("the answer has more than %d bytes", maxAnswer))
	default:
		return text, true
	}
	return nil, false
}

// takeUsage takes over what the server counted. A part of the prompt that is
// larger than the prompt is no count.
func (e *engine) takeUsage(res *record.Result, s *openai.Stream) {
	u := &s.Usage
	partOf(&u.Cached, u.Prompt, &e.tally.overcached)
	partOf(&u.Media, u.Prompt, &e.tally.overmedia)
	res.PromptTokens, res.CompletionTokens = s.Usage.Prompt, s.Usage.Completion
	res.CachedTokens, res.ReasoningTokens, res.MediaTokens = s.Usage.Cached, s.Usage.Reasoning, s.Usage.Media
	res.FinishReason = s.FinishReason()
	res.ServerQueue, res.ServerPrefill, res.ServerDecode = told(s.Times.Queue), told(s.Times.Prefill), told(s.Times.Decode)
}

// partOf forgets a part that is larger than its whole, and counts that it did.
func partOf(n *int64, whole int64, counted *atomic.Int64) {
	if whole != openai.Unknown && *n > whole {
		counted.Add(1)
		*n = openai.Unknown
	}
}

// told is a duration that the server tells.
func told(d time.Duration) time.Duration {
	if d == openai.Untold {
		return record.NoTime
	}
	return d
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
	encoding := resp.Header.Get("Content-Encoding")
	if openai.Encoded(encoding) {
		e.tally.compressed.Add(1)
	}
	return openai.Decoded(resp.Body, encoding)
}
