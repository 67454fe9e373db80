package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"retrace/record"
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
	capture Capture
	file    *record.FileWriter
	speller speller
	numbers *recent[digest, uint64]
	fresh   uint64 // the next block's number
	turns   *tracker
	warn    func(string)

	held    budget
	entry   sync.RWMutex // held by all who put into the queue, and against its closing
	closed  bool
	queue   chan *exchange
	done    chan struct{}
	stats   recorderStats
	textual struct{ bytes, tokens int64 } // of prompts that both are known of
	err     error                         // of the file, sticky
}

// recorderStats are counters that others may read at any time.
type recorderStats struct {
	written                           atomic.Int64
	droppedQueue, droppedWrite, large atomic.Int64
	oversized                         atomic.Int64
}

func (s *recorderStats) dropped() map[string]int64 {
	all := map[string]int64{}
	for reason, n := range map[string]int64{
		dropQueue: s.droppedQueue.Load(), dropWrite: s.droppedWrite.Load(), dropLarge: s.large.Load(),
	} {
		if n > 0 {
			all[reason] = n
		}
	}
	return all
}

func newRecorder(c *Config, origin time.Time) (*recorder, error) {
	k := newKeyed(c.Salt)
	r := &recorder{
		capture: c.Capture,
		speller: speller{k: k, tok: c.Tokenizer, blockSize: c.BlockSize},
		numbers: newRecent[digest, uint64](knownBlocks),
		turns:   newTracker(k, c.Capture == Full),
		warn:    c.Warn,
		queue:   make(chan *exchange, queueLen), done: make(chan struct{}),
	}
	var namespace [8]byte
	_, _ = rand.Read(namespace[:]) // never fails
	h := record.Header{
		Source: "trace-record", Unit: time.Nanosecond, Origin: time.Duration(origin.UnixNano()), Wall: true,
		TimeBasis: "arrival", Turns: "full", Namespace: hex.EncodeToString(namespace[:]), Capture: string(c.Capture),
		PrefixSynthesised: c.Capture == Lengths,
	}
	if c.Capture != Lengths {
		h.BlockSize = c.BlockSize
		if c.Tokenizer == nil {
			h.BlockUnit = "bytes"
		}
	}
	var err error
	if r.file, err = record.CreateLive(c.Output, h, c.Force); err != nil {
		return nil, err
	}
	go r.run()
	return r, nil
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
	if r.err != nil {
		r.stats.droppedWrite.Add(1)
		x.drop()
		return
	}
	q, err := r.request(x)
	if err == nil && q.Size() > record.MaxRequestBytes {
		r.stats.large.Add(1)
		return
	}
	if err == nil {
		err = r.file.WriteRequest(q)
	}
	if err != nil {
		r.stats.droppedWrite.Add(1)
		r.err = err
		r.warn(fmt.Sprintf("recording stopped, traffic goes on: %v", err))
		return
	}
	r.stats.written.Add(1)
}

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
	err := r.file.Close(record.Footer{Dropped: r.stats.dropped(), Notes: r.notes()})
	if r.err != nil {
		return r.err
	}
	return err
}

// notes are what a reader of the file should know.
func (r *recorder) notes() (notes []string) {
	if t := &r.textual; t.tokens > 0 {
		notes = append(notes, fmt.Sprintf("prompts of text had %.2f bytes a token; blocks of text are of %d bytes for each token",
			float64(t.bytes)/float64(t.tokens), BytesPerToken))
	}
	if n := r.numbers.forgotten; n > 0 {
		notes = append(notes, fmt.Sprintf("%d blocks were forgotten: where they came again they have another number", n))
	}
	if n := r.stats.oversized.Load(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d requests have no more than the server's counts: there was no room for a copy of their bodies", n))
	}
	return notes
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
	r.inputs(&q, x, &f, &d)
	r.names(&q, &f, &d)
	r.turns.place(&q, x, &f)
	if r.capture == Full && x.api != "" && len(body) > 0 && f.shape != "" && body[0] == '{' {
		q.Body = body
	}
	var err error
	q.Extra, err = d.json()
	return &q, err
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
	if q.OutputTokens <= 0 && x.class != "" && f.MaxTokens != -1 {
		q.OutputTokens = f.MaxTokens
	}
}

// inputs are the tokens of the prompt, as the server counts them, else as
// counted here, and its blocks.
func (r *recorder) inputs(q *record.Request, x *exchange, f *facts, d *details) {
	if a := x.answer; a != nil && a.stream.Usage.Prompt >= 0 {
		q.Observed.InputTokens = a.stream.Usage.Prompt
	}
	q.InputTokens = q.Observed.InputTokens
	if len(f.messages) == 0 && len(f.prompts) == 0 {
		return
	}
	blocks, length, tokens := r.speller.prompt(f)
	switch {
	case tokens && q.InputTokens == record.Unknown:
		q.InputTokens = length
	case !tokens:
		d.TextBytes = length
		if q.InputTokens > 0 && len(f.media) == 0 {
			r.textual.bytes += length
			r.textual.tokens += q.InputTokens
		}
	}
	if r.capture == Lengths {
		return
	}
	if q.InputTokens == record.Unknown && !tokens {
		q.InputTokens = (length + BytesPerToken - 1) / BytesPerToken
	}
	size := int64(r.speller.blockSize)
	blocks = blocks[:min(int64(len(blocks)), (q.InputTokens+size-1)/size)]
	for _, b := range blocks {
		q.Blocks = append(q.Blocks, r.number(b))
	}
}

// number is the block's number in the file, in the order of their coming.
func (r *recorder) number(b digest) uint64 {
	if n, ok := r.numbers.get(b); ok {
		return n
	}
	n := r.fresh
	r.fresh++
	r.numbers.set(b, n)
	return n
}

// names hides the identities, but in full mode.
func (r *recorder) names(q *record.Request, f *facts, d *details) {
	hide := r.turns.hide
	d.User, d.CacheKey = hide("user", f.user), hide("cache", f.cacheKey)
	for i := range f.media {
		m := &f.media[i]
		size := int64(len(m.content))
		if !m.inline {
			size = record.Unknown
		}
		ref := r.speller.k.nameOf("media", string(m.content))
		if r.capture == Full && !m.inline {
			ref = string(m.content)
		}
		q.Media = append(q.Media, record.Media{Kind: m.kind, Ref: ref, Bytes: size})
	}
}
