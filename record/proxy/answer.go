package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"retrace/openai"
	"retrace/record"
)

// maxAnswer bounds an answer that comes as one piece of JSON.
const maxAnswer = 64 << 20

// maxReading is the largest buffer of events that is kept for another answer.
const maxReading = 64 << 10

// errDropped ends the reading of an answer whose record is dropped.
var errDropped = errors.New("the record is dropped")

// answer reads the copy of an answer while it passes. The reader pulls, but the
// bytes are pushed: it is a coroutine, which runs within push and finish.
type answer struct {
	api         openai.API
	contentType string
	encoding    string

	events *openai.EventReader
	stream *openai.Stream
	head   [openai.SniffLen]byte

	bytes []byte        // pushed, not yet read
	now   time.Duration // when they came
	end   error         // what comes after them, nil for more
	next  func() (struct{}, bool)
	stop  func()
	over  bool // the reader wants no more

	first, last time.Duration
	id          string // the answer's own
	verdict     openai.Verdict
	message     string
}

var readers = sync.Pool{New: func() any { return openai.NewEventReader(nil, 0) }}

// newAnswer starts to read the copy of a successful answer; text asks for what
// it says.
func newAnswer(api openai.API, contentType, encoding string, text bool) *answer {
	a := &answer{
		api: api, contentType: contentType, encoding: encoding,
		stream: openai.NewStream(), first: record.NoTime, last: record.NoTime,
	}
	a.stream.API, a.stream.Capture = api, text
	a.next, a.stop = iter.Pull(func(yield func(struct{}) bool) {
		a.read(&feed{a: a, more: yield})
	})
	a.resume(func() { a.next() }) // to its first wait
	return a
}

// resume runs the reader; a fault of it costs the record, not the traffic.
func (a *answer) resume(run func()) {
	defer func() {
		if p := recover(); p != nil {
			a.over = true
			a.verdict, a.message = openai.BadResponse, fmt.Sprintf("the answer could not be read: %v", p)
		}
	}()
	run()
}

// push takes in the bytes that came at a time. They are read when it returns.
func (a *answer) push(b []byte, now time.Duration) {
	if a.over {
		return
	}
	a.bytes, a.now = b, now
	a.resume(func() {
		if _, more := a.next(); !more {
			a.over = true
		}
	})
	a.bytes = nil
}

// finish tells the reader how the answer ended (io.EOF for a clean end), and
// lets it judge.
func (a *answer) finish(end error) {
	a.end = end
	a.resume(a.stop)
}

// feed is the answer's copy as a reader.
type feed struct {
	a    *answer
	more func(struct{}) bool
}

// Read is io.Reader's. It waits for the next push.
func (f *feed) Read(p []byte) (int, error) {
	for len(f.a.bytes) == 0 {
		if f.a.end != nil {
			return 0, f.a.end
		}
		if !f.more(struct{}{}) && f.a.end == nil {
			f.a.end = errDropped
		}
	}
	n := copy(p, f.a.bytes)
	f.a.bytes = f.a.bytes[n:]
	return n, nil
}

// read looks at what the answer is, and reads it as that.
func (a *answer) read(copied io.Reader) {
	body, err := openai.Decoded(copied, a.encoding)
	if err != nil {
		a.judge(openai.BadResponse, err.Error())
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, a.end) {
			a.verdict = openai.Truncated
		}
		return
	}
	head, rest := openai.Sniff(body, a.head[:])
	switch kind := openai.KindOf(head, a.contentType); {
	case a.api == openai.Transcriptions && openai.IsText(head, a.contentType):
		a.skim(rest)
	case kind == openai.BodyJSON && openai.MayBeLines(a.api, a.contentType):
		a.streamed(rest, true)
	case kind == openai.BodyJSON:
		a.plain(rest)
	case kind == openai.BodyOther:
		a.judge(openai.BadResponse, "the answer is neither events nor JSON")
	default:
		a.streamed(rest, false)
	}
}

func (a *answer) judge(v openai.Verdict, message string) { a.verdict, a.message = v, message }

// skim passes over a transcript that is text.
func (a *answer) skim(body io.Reader) {
	if _, err := io.Copy(io.Discard, body); err != nil {
		a.judge(openai.Truncated, err.Error())
	}
}

// plain reads an answer that is one piece of JSON.
func (a *answer) plain(body io.Reader) {
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case errors.Is(err, errDropped):
	case err != nil:
		a.judge(openai.Truncated, fmt.Sprintf("the answer broke off after %d bytes: %v", len(text), err))
	case len(text) > maxAnswer:
		a.judge(openai.BadResponse, fmt.Sprintf("the answer has more than %d bytes", maxAnswer))
	default:
		a.id = idOf(text)
		a.stream.FeedJSON(text)
		a.judge(a.stream.Verdict(nil))
	}
}

// streamed follows the events to the end.
func (a *answer) streamed(body io.Reader, lines bool) {
	a.events = readers.Get().(*openai.EventReader)
	defer a.release()
	if a.events.Reset(body); lines {
		a.events.ResetLines(body)
	}
	var single []byte
	for events := 0; ; events++ {
		ev, err := a.events.Next()
		if err != nil {
			a.ended(err, single)
			return
		}
		if events == 0 {
			a.id = idOf(ev.Data)
		}
		if a.events.Single() {
			single = append(single[:0], ev.Data...)
		}
		if len(a.stream.Feed(ev)) > 0 {
			if a.first == record.NoTime {
				a.first = a.now
			}
			a.last = a.now
		}
	}
}

// ended judges an answer that came in events; single is the first of them where
// it might have been no stream.
func (a *answer) ended(err error, single []byte) {
	clean := errors.Is(err, io.EOF)
	if clean && a.events.Single() {
		a.first, a.last = record.NoTime, record.NoTime
		a.stream.Reset()
		a.stream.FeedJSON(single)
	}
	if clean {
		err = nil
	}
	a.judge(a.stream.Verdict(err))
	var told *openai.EventStreamError
	switch { // what the framing says goes before what the events do
	case errors.Is(err, openai.ErrEventTooLarge):
		a.judge(openai.BadResponse, err.Error())
	case errors.As(err, &told) && told.Exception != "":
		a.judge(openai.StreamError, told.Error())
	case errors.As(err, &told) && a.verdict != openai.StreamError:
		a.judge(openai.BadResponse, told.Error())
	}
}

// release gives the buffers back for another answer.
func (a *answer) release() {
	if a.events.Size() <= maxReading {
		a.events.Reset(nil)
		readers.Put(a.events)
	}
	a.events = nil
}

// idOf is the id that an answer, or an event of it, tells: its own, or that of
// the response within.
func idOf(data []byte) string {
	if !bytes.Contains(data, []byte(`"id"`)) {
		return ""
	}
	var told struct {
		ID       string `json:"id"`
		Response struct {
			ID string `json:"id"`
		} `json:"response"`
	}
	_ = json.Unmarshal(data, &told) // what is no such object has no id
	if told.Response.ID != "" {
		return told.Response.ID
	}
	return told.ID
}
