package proxy

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"retrace/hashing/tokenizer"
	"retrace/openai"
	"retrace/record"
	"retrace/record/capture"
)

const (
	// queueLen is how many records may wait to be written.
	queueLen = 4096
	// heldBytes is what the copies of request bodies may take.
	heldBytes = 256 << 20
	// knownBlocks is how many blocks are surely remembered by their number.
	knownBlocks = 1 << 20
)

// The reasons for which a record is dropped.
const (
	dropQueue = "queue_full"
	dropWrite = "write_failed"
	dropLarge = "too_large"
	dropFault = "internal_fault"
)

// budget is memory that many goroutines share.
type budget struct{ used atomic.Int64 }

func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) > heldBytes {
		b.used.Add(int64(-n))
		return false
	}
	return true
}

func (b *budget) give(n int) { b.used.Add(int64(-n)) }

// recorder turns exchanges into records and writes them, in a goroutine of its
// own.
type recorder struct {
	mode   capture.Mode
	salt   capture.Salt
	tok    *tokenizer.Tokenizer
	files  files
	header record.Header
	blocks *capture.Numbering
	size   int64 // tokens of a block
	turns  *tracker
	warn   func(string)

	held   budget
	entry  sync.RWMutex // held by all who put into the queue, and against its closing
	closed bool
	queue  chan *exchange
	done   chan struct{}
	stats  recorderStats
	err    atomic.Pointer[error] // of the file, sticky
}

// recorderStats are counters that others may read at any time.
type recorderStats struct {
	written                           atomic.Int64
	droppedQueue, droppedWrite, large atomic.Int64
	fault                             atomic.Int64
	oversized                         atomic.Int64
}

func (s *recorderStats) dropped() map[string]int64 {
	all := map[string]int64{}
	for reason, n := range map[string]int64{
		dropQueue: s.droppedQueue.Load(), dropWrite: s.droppedWrite.Load(), dropLarge: s.large.Load(), dropFault: s.fault.Load(),
	} {
		if n > 0 {
			all[reason] = n
		}
	}
	return all
}

func newRecorder(c *Config, origin time.Time) (*recorder, error) {
	r := &recorder{
		mode: c.Capture, salt: c.Salt, tok: c.Tokenizer, size: int64(c.BlockSize),
		blocks: capture.NewNumbering(c.Salt, c.BlockSize), turns: newTracker(), warn: c.Warn,
		queue: make(chan *exchange, queueLen), done: make(chan struct{}),
	}
	r.blocks.Remember(knownBlocks)
	var namespace [8]byte
	_, _ = rand.Read(namespace[:]) // never fails
	r.header = record.Header{
		Source: "trace-record", Unit: time.Nanosecond, Origin: time.Duration(origin.UnixNano()), Wall: true,
		TimeBasis: "arrival", Turns: "full", Namespace: hex.EncodeToString(namespace[:]), Capture: string(c.Capture),
		PrefixSynthesised: c.Capture == capture.Lengths,
	}
	r.settle()
	r.files = files{path: c.Output, force: c.Force, size: c.RotateSize, every: c.RotateEvery}
	if err := r.files.begin(r.header); err != nil {
		return nil, err
	}
	go r.run()
	return r, nil
}

// settle says what blocks are of, in the header that stands until the file is
// closed, too.
func (r *recorder) settle() {
	if r.tok != nil {
		r.blocks.Settle("")
	} else {
		r.blocks.Settle(record.UnitBytes)
	}
	if r.mode == capture.Lengths {
		return
	}
	r.header.BlockSize = int(r.size)
	if r.tok == nil {
		r.header.BlockSize, r.header.BlockUnit = int(r.size)*capture.BytesPerToken, record.UnitBytes
	}
}

// add hands an exchange over. It never waits.
func (r *recorder) add(x *exchange) {
	r.entry.RLock()
	defer r.entry.RUnlock()
	if !r.closed {
		select {
		case r.queue <- x:
			return
		default:
		}
	}
	r.stats.droppedQueue.Add(1)
	x.drop()
}

// run writes records until the queue is closed.
func (r *recorder) run() {
	defer close(r.done)
	for x := range r.queue {
		r.one(x)
	}
}

// one writes one record.
func (r *recorder) one(x *exchange) {
	if r.failed() {
		r.stats.droppedWrite.Add(1)
		x.drop()
		return
	}
	q, err := r.read(x)
	if errors.Is(err, errFault) {
		r.stats.fault.Add(1)
		return
	}
	if err == nil && q.Size() > record.MaxRequestBytes {
		r.stats.large.Add(1)
		return
	}
	if err == nil && r.files.due() {
		err = r.rotate()
	}
	if err == nil {
		err = r.files.write(q)
	}
	if err != nil {
		r.stats.droppedWrite.Add(1)
		r.fail(err)
		return
	}
	r.stats.written.Add(1)
}

// fail ends the recording.
func (r *recorder) fail(err error) {
	if r.err.CompareAndSwap(nil, &err) {
		r.warn(fmt.Sprintf("recording stopped, traffic goes on: %v", err))
	}
}

func (r *recorder) failed() bool { return r.err.Load() != nil }

// close writes what is queued, and ends the file.
func (r *recorder) close() error {
	r.entry.Lock()
	closed := r.closed
	r.closed = true
	r.entry.Unlock()
	if closed {
		return nil
	}
	close(r.queue)
	<-r.done
	r.files.end(r.described(), r.stats.dropped(), r.notes())
	err := r.files.wait()
	if first := r.err.Load(); first != nil {
		return *first
	}
	return err
}

// rotate goes on in the next file. Blocks keep their numbers, so that the files
// are parts of one trace.
func (r *recorder) rotate() error {
	r.files.end(r.described(), r.stats.dropped(), r.notes())
	return r.files.begin(r.header)
}

// described is the header with what is known of the blocks by now.
func (r *recorder) described() record.Header {
	h := r.header
	r.blocks.Describe(&h)
	return h
}

// notes are what a reader of the file should know.
func (r *recorder) notes() (notes []string) {
	if n := r.blocks.Forgotten(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d blocks were forgotten: where they came again they have another number", n))
	}
	if n := r.stats.oversized.Load(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d requests have no more than the server's counts: there was no room for a copy of their bodies", n))
	}
	return notes
}

// errFault says that an exchange could not be read for a fault of ours.
var errFault = errors.New("fault")

// read makes the record of an exchange. A fault of ours costs the record, not
// the process through which the traffic goes.
func (r *recorder) read(x *exchange) (q *record.Request, err error) {
	defer func() {
		if p := recover(); p != nil {
			q, err = nil, errFault
		}
	}()
	return r.request(x)
}

// request makes the record of an exchange.
func (r *recorder) request(x *exchange) (*record.Request, error) {
	x.judge()
	body := x.request.take()
	defer r.held.give(len(body))
	if x.request.over {
		r.stats.oversized.Add(1)
	}
	f := parseFacts(x.api, x.contentType, body)

	q := record.NewRequest()
	q.ID = strconv.FormatInt(x.row, 10) // which stays when rows are numbered anew
	q.Row, q.Arrival, q.API, q.Kind = x.row, x.arrival, string(f.shape), string(x.api)
	q.Model = f.Model
	if f.Priority != 0 {
		q.Priority = &f.Priority
	}
	q.Observed.Status, q.Observed.Latency, q.Observed.Failed = x.status, x.end-x.arrival, x.class != ""
	var d details
	d.asked(&f)
	d.seen(x)
	r.outputs(&q, x, &f)
	r.inputs(&q, x, &f, body)
	d.User, d.CacheKey = r.hide("user", f.user), r.hide("cache", f.cacheKey)
	r.attach(&q, &f)
	r.turns.place(&q, x, &f)
	q.Session = r.hide("session", q.Session)
	if r.mode == capture.Full && isObject(body) {
		q.Body = body
	}
	var err error
	q.Extra, err = d.json()
	return &q, err
}

// isObject says whether a body is a JSON object, as all that can be sent again are.
func isObject(body []byte) bool {
	text := bytes.TrimLeft(body, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && json.Valid(body)
}

// outputs are the tokens of the answer: as the server counts them, else as they
// came; where there was no answer, those that were asked for.
func (r *recorder) outputs(q *record.Request, x *exchange, f *facts) {
	if a := x.answer; a != nil {
		switch n := a.stream.Usage.Completion; {
		case n >= 0:
			q.Observed.OutputTokens = n
		case a.stream.OutputChunks() > 0 && a.first != record.NoTime:
			q.Observed.OutputTokens = a.stream.OutputChunks()
		}
	}
	q.OutputTokens = q.Observed.OutputTokens
	if q.OutputTokens <= 0 && x.class != "" && f.MaxTokens != openai.Unset {
		q.OutputTokens = f.MaxTokens
	}
}

// inputs are the tokens of the prompt, as the server counts them, else as
// counted here, and its blocks.
func (r *recorder) inputs(q *record.Request, x *exchange, f *facts, body []byte) {
	if a := x.answer; a != nil && a.stream.Usage.Prompt >= 0 {
		q.Observed.InputTokens = a.stream.Usage.Prompt
	}
	q.InputTokens = q.Observed.InputTokens
	p, ok := capture.ReadPrompt(f.shape, body)
	if !ok {
		q.InputTokens = r.counted(q.InputTokens, f.prompts)
		return
	}
	if len(f.media) == 0 {
		r.blocks.Measure(p, q.InputTokens)
	}
	if r.tok != nil && !p.IsTokens {
		p.Tokens, p.IsTokens = r.tok.EncodePrompt(nil, p.Text), true
	}
	if q.InputTokens == record.Unknown {
		q.InputTokens = int64(len(p.Tokens))
		if !p.IsTokens {
			q.InputTokens = int64(len(p.Text)+capture.BytesPerToken-1) / capture.BytesPerToken
		}
	}
	if r.mode != capture.Lengths {
		q.Blocks, _ = r.blocks.Append(nil, p)
	}
}

// counted is the length of several prompts where the server did not tell it and
// all are of token ids.
func (r *recorder) counted(told int64, prompts []openai.Prompt) int64 {
	if told != record.Unknown || len(prompts) == 0 {
		return told
	}
	n := int64(0)
	for i := range prompts {
		switch p := &prompts[i]; {
		case p.IsTokens:
			n += int64(len(p.Tokens))
		case r.tok != nil:
			n += int64(len(r.tok.EncodePrompt(nil, p.Text)))
		default:
			return record.Unknown
		}
	}
	return n
}

// hide is the pseudonym of an identity, or itself where all is kept.
func (r *recorder) hide(kind, name string) string {
	if r.mode == capture.Full {
		return name
	}
	return r.salt.Identity(kind, name)
}

// attach lists the media of the prompt.
func (r *recorder) attach(q *record.Request, f *facts) {
	for i := range f.media {
		m := record.Media{Kind: f.media[i].kind, Bytes: record.Unknown}
		content := f.media[i].content
		if f.media[i].inline {
			m.Bytes = int64(len(content))
		}
		switch {
		case r.mode == capture.Full && !f.media[i].inline:
			m.Ref = string(content)
		case r.mode != capture.Lengths:
			m.Ref = r.salt.Identity("media", string(content))
		}
		q.Media = append(q.Media, m)
	}
}
