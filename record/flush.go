package record

import "fmt"

// flushRequests writes the chunk of staged requests.
func (w *Writer) flushRequests() error {
	s := &w.requests
	if len(s.recs) == 0 {
		return nil
	}
	h := chunkHead{kind: itemRequests, seq: w.seq, first: w.counts.Requests, count: len(s.recs)}
	keys := s.keys
	if len(keys) == 0 {
		keys = nil
	}
	w.item = w.reqCodec.encode(w.item[:0], h, s.recs, s.need, keys)
	w.counts.Requests += int64(len(s.recs))
	if err := w.compress(h); err != nil {
		return err
	}
	if w.proof {
		w.proofRequests = resize(w.proofRequests, len(s.recs))
		err := prove(w, h, s.recs, w.proofRequests, proofOf[Request]{w.reqCodec.decode, sameRequest})
		if err != nil {
			return err
		}
	}
	span := requestSpan(s.recs)
	s.reset()
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
	w.proofResults = resize(w.proofResults, len(s.recs))
	if err := prove(w, h, s.recs, w.proofResults, proofOf[Result]{w.resCodec.decode, sameResult}); err != nil {
		return err
	}
	span := resultSpan(s.recs)
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
	w.proofSeries = resize(w.proofSeries, len(s.recs))
	if err := prove(w, h, s.recs, w.proofSeries, proofOf[Series]{w.serCodec.decode, sameSeries}); err != nil {
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

// proofOf is how a chunk of T is decoded and compared.
type proofOf[T any] struct {
	decode func(*cursor, chunkHead, []T) error
	same   func(a, b *T) bool
}

// prove reads w.frame as a reader would and compares it with recs.
func prove[T any](w *Writer, h chunkHead, recs, got []T, p proofOf[T]) error {
	back, err := w.codec.dec.DecodeAll(w.frame, w.back[:0])
	w.back = back
	if err == nil {
		cur := &cursor{b: back}
		var kind string
		var n uint64
		if kind, n, err = itemKind(cur); err == nil {
			if h, err = readChunkHead(cur, kind, n); err == nil {
				err = p.decode(cur, h, got)
			}
		}
	}
	if err != nil {
		w.err = fmt.Errorf("write %s chunk %d: %w: %w", h.kind, h.seq, errProof, err)
		return w.err
	}
	for i := range recs {
		if !p.same(&recs[i], &got[i]) {
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
