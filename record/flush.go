package record

import (
	"fmt"
	"slices"
	"time"
)

// flushRequests writes the chunk of staged requests.
func (w *Writer) flushRequests() error {
	s := &w.requests
	if len(s.plain) == 0 {
		return nil
	}
	c := &w.reqCodec
	h := chunkHead{kind: itemRequests, seq: w.seq, first: w.counts.Requests, count: len(s.plain)}
	w.item = c.encode(w.item[:0], h, s)
	w.counts.Requests += int64(h.count)
	if err := w.compress(h); err != nil {
		return err
	}
	err := prove(w, h, c, func(i int, got *Request) bool {
		if len(s.full) == 0 {
			return len(c.recs) == 0 && s.plain[i].same(got) && c.enc.sameBlocks(i, got.Blocks)
		}
		return sameFields(&s.full[i], got) && c.enc.sameBlocks(i, got.Blocks)
	})
	if err != nil {
		return err
	}
	if w.proof && !slices.Equal(s.spans, c.spans) {
		w.err = fmt.Errorf("write requests chunk %d: spans of blobs: %w", h.seq, errProof)
		return w.err
	}
	var span span
	for i := range s.plain {
		span.add(time.Duration(s.plain[i].arrival))
	}
	s.reset()
	c.begin()
	return w.putChunk(h, span)
}

// flushResults writes the chunk of staged results.
func (w *Writer) flushResults() error {
	s := &w.results
	if len(s.recs) == 0 {
		return nil
	}
	h := chunkHead{kind: itemResults, seq: w.seq, first: w.counts.Results, count: len(s.recs)}
	w.item = w.resCodec.encode(w.item[:0], h, s.recs)
	w.counts.Results += int64(len(s.recs))
	if err := w.compress(h); err != nil {
		return err
	}
	if err := prove(w, h, &w.resCodec, func(i int, got *Result) bool { return sameResult(&s.recs[i], got) }); err != nil {
		return err
	}
	var span span
	for i := range s.recs {
		span.add(s.recs[i].Scheduled)
	}
	s.reset()
	return w.putChunk(h, span)
}

// flushSeries writes the chunk of staged series.
func (w *Writer) flushSeries() error {
	s := &w.series
	if len(s.recs) == 0 {
		return nil
	}
	h := chunkHead{kind: itemSeries, seq: w.seq, first: w.counts.Series, count: len(s.recs)}
	w.item = w.serCodec.encode(w.item[:0], h, s.recs)
	w.counts.Series += int64(len(s.recs))
	if err := w.compress(h); err != nil {
		return err
	}
	if err := prove(w, h, &w.serCodec, func(i int, got *Series) bool { return sameSeries(&s.recs[i], got) }); err != nil {
		return err
	}
	var span span
	for i := range s.recs {
		for _, t := range s.recs[i].Times {
			span.add(t)
		}
	}
	s.reset()
	return w.putChunk(h, span)
}

// compress makes the frame of w.item.
func (w *Writer) compress(h chunkHead) error {
	if len(w.item) > maxItemBytes {
		w.err = fmt.Errorf("write %s chunk %d: %d bytes, at most %d are allowed", h.kind, h.seq, len(w.item), maxItemBytes)
		return w.err
	}
	w.frame = w.codec.enc.EncodeAll(w.item, w.frame[:0])
	return nil
}

// prove reads w.frame as a reader would; same compares the record i.
func prove[T any](w *Writer, h chunkHead, d decoder[T], same func(i int, got *T) bool) error {
	if !w.proof {
		return nil
	}
	back, err := w.codec.dec.DecodeAll(w.frame, w.back[:0])
	w.back = back
	if err == nil {
		cur := &cursor{b: back}
		var kind string
		var n uint64
		if kind, n, err = itemKind(cur); err == nil {
			if h, err = readChunkHead(cur, kind, n); err == nil {
				err = d.decode(cur, h)
			}
		}
	}
	if err != nil {
		w.err = fmt.Errorf("write %s chunk %d: %w: %w", h.kind, h.seq, errProof, err)
		return w.err
	}
	for i := range h.count {
		if !same(i, d.at(i)) {
			w.err = fmt.Errorf("write %s chunk %d: record %d: %w", h.kind, h.seq, i, errProof)
			return w.err
		}
	}
	return nil
}

// putChunk writes the chunk that w.frame holds.
func (w *Writer) putChunk(h chunkHead, s span) error {
	w.seq++
	return w.put(w.frame, w.item, indexEntry{Kind: h.kind, Count: int64(h.count), First: s.first, Last: s.last})
}
