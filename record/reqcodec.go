package record

import (
	"fmt"
	"math"
	"time"
)

// requestCodec turns requests into a chunk item and back. It keeps its
// scratch from one chunk to the next; the encoder's and the decoder's are apart.
type requestCodec struct {
	blockSize int
	enc       blockEncoder
	dec       *blockDecoder
	in        columns // to encode
	out       columns // decoded, shares the item's memory

	arrivals []int64    // decoded
	rows     []int64    // decoded
	recs     []Request  // decoded, where there is an optional column
	one      Request    // what at returned
	spans    []bodySpan // decoded: where bodies of recs were cut
	store    *blobStore // of them, nil where nothing is joined

	ints      intColumn
	strings   stringColumn
	nums      []int64
	texts     []string
	blobs     [][]byte
	refs      []*string
	itemBytes int // of the item that is being decoded
}

// presence is a set of columns of optionalColumns, by index.
type presence uint64

// note adds what r needs.
func (p *presence) note(r *Request) {
	for i := range optionalColumns {
		if *p&(1<<i) == 0 && optionalColumns[i].needed(r) {
			*p |= 1 << i
		}
	}
}

// isPlain says that r needs no optional column.
func isPlain(r *Request) bool {
	return r.ID == "" && r.Session == "" && r.Turn == 0 && r.Parent == "" && r.Delay == NoTime &&
		!r.Increment && r.API == "" && r.Body == nil && len(r.Media) == 0 &&
		r.Model == "" && r.Kind == "" && r.Priority == nil && r.Observed == NewObserved() &&
		r.Extra == nil && len(r.Exceptions) == 0
}

// begin starts a chunk.
func (c *requestCodec) begin() {
	c.in.reset()
	c.enc.begin()
}

// encode appends the item of the staged requests, whose blocks the encoder
// has, to dst.
func (c *requestCodec) encode(dst []byte, h chunkHead, s *requestStage) []byte {
	c.enc.finish(&c.in)
	c.encodeArrivals(s.plain)
	for i := range optionalColumns {
		if s.need&(1<<i) != 0 {
			f := &optionalColumns[i]
			c.in[f.col] = f.encode(c, c.in[f.col], s.full)
		}
	}
	c.in[colSpans] = appendSpans(c.in[colSpans], s.spans)
	c.encodeRows(h, s.plain)
	if len(s.keys) > 0 {
		c.in[colSortKey] = c.ints.append(c.in[colSortKey], s.keys, math.MinInt64)
	}
	return appendColumns(h.append(dst), requestNames[:], c.in[:])
}

func (c *requestCodec) encodeArrivals(recs []plainRecord) {
	c.nums = resize(c.nums, len(recs))
	known := false
	for i := range recs {
		c.nums[i] = recs[i].arrival
		known = known || c.nums[i] != int64(NoTime)
	}
	if known {
		c.in[colArrival] = c.ints.append(c.in[colArrival], c.nums, int64(NoTime))
	}
}

// encodeRows writes how far each row is from the one after its predecessor's;
// nothing where the chunk goes on as the file's record numbers do.
func (c *requestCodec) encodeRows(h chunkHead, recs []plainRecord) {
	c.nums = resize(c.nums, len(recs))
	next, odd := h.first, false
	for i := range recs {
		c.nums[i] = recs[i].row - next
		odd = odd || c.nums[i] != 0
		next = recs[i].row + 1
	}
	if odd {
		c.in[colRow] = c.ints.append(c.in[colRow], c.nums, 0)
	}
}

// decode reads the columns at cur, which is behind the chunk's head. What the
// records point to is their own, unless the block decoder reuses it.
func (c *requestCodec) decode(cur *cursor, h chunkHead) error {
	c.itemBytes = len(cur.b)
	err := readColumns(cur, requestNames[:], c.out[:])
	if err == nil {
		err = c.decodeColumns(h)
	}
	if err != nil {
		return fmt.Errorf("decode requests chunk %d: %w", h.seq, err)
	}
	return nil
}

func (c *requestCodec) decodeColumns(h chunkHead) error {
	if c.dec == nil {
		c.dec = new(blockDecoder)
	}
	c.one = NewRequest()
	if err := c.dec.decode(&c.out, h.count, c.blockSize); err != nil {
		return err
	}
	if err := c.decodeArrivals(h); err != nil {
		return err
	}
	if err := c.decodeRows(h); err != nil {
		return err
	}
	c.recs, c.spans = c.recs[:0], c.spans[:0]
	for i := range optionalColumns {
		if len(c.out[optionalColumns[i].col]) > 0 {
			c.recs = blanks(c.recs, h.count, NewRequest())
			if err := c.decodeOptional(&c.out, c.recs); err != nil {
				return err
			}
			break
		}
	}
	return c.decodeSpans()
}

// decodeSpans reads where the bodies of recs were cut.
func (c *requestCodec) decodeSpans() (err error) {
	if len(c.out[colSpans]) == 0 {
		return nil
	}
	if c.spans, err = decodeSpans(&cursor{b: c.out[colSpans]}, c.recs, c.spans); err != nil {
		return fmt.Errorf("column bs: %w", err)
	}
	if c.store == nil {
		return nil
	}
	return c.store.check(c.spans)
}

// at is the record i of the chunk, good until the next call.
func (c *requestCodec) at(i int) *Request {
	r := &c.one // blank but for what is set here
	if len(c.recs) > 0 {
		r = &c.recs[i]
	}
	r.Arrival, r.Row = time.Duration(c.arrivals[i]), c.rows[i]
	r.InputTokens, r.OutputTokens, r.Blocks = c.dec.input[i], c.dec.output[i], c.dec.of(i)
	return r
}

// each yields the first n records of the chunk until yield is false. Plain ones
// are put together in place: at would write each to the heap.
func (c *requestCodec) each(n int, yield func(Request, error) bool) bool {
	if len(c.spans) > 0 {
		return c.eachJoined(n, yield)
	}
	if len(c.recs) > 0 {
		return each(c)(n, yield)
	}
	r := NewRequest()
	for i := range n {
		r.Arrival, r.Row = time.Duration(c.arrivals[i]), c.rows[i]
		r.InputTokens, r.OutputTokens, r.Blocks = c.dec.input[i], c.dec.output[i], c.dec.of(i)
		if !yield(r, nil) {
			return false
		}
	}
	return true
}

// eachJoined is each where bodies were cut: one is joined at a time.
func (c *requestCodec) eachJoined(n int, yield func(Request, error) bool) bool {
	for i := range n {
		r := *c.at(i)
		if spans := spansOf(c.spans, i); len(spans) > 0 {
			var err error
			if r.Body, err = c.store.join(r.Body, spans); err != nil {
				yield(Request{}, err)
				return false
			}
		}
		if !yield(r, nil) {
			return false
		}
	}
	return true
}

// blanks is recs with n blank records.
func blanks[T any](recs []T, n int, blank T) []T {
	if cap(recs) < n {
		recs = make([]T, min(max(n, 2*cap(recs)), maxRecords))
	}
	recs = recs[:n]
	for i := range recs {
		recs[i] = blank
	}
	return recs
}

func (c *requestCodec) decodeArrivals(h chunkHead) error {
	c.arrivals = resize(c.arrivals, h.count)
	if len(c.out[colArrival]) == 0 {
		for i := range c.arrivals {
			c.arrivals[i] = int64(NoTime)
		}
		return nil
	}
	if err := c.ints.decode(&cursor{b: c.out[colArrival]}, c.arrivals, int64(NoTime)); err != nil {
		return fmt.Errorf("column ar: %w", err)
	}
	return nil
}

func (c *requestCodec) decodeRows(h chunkHead) error {
	c.rows = resize(c.rows, h.count)
	clear(c.rows)
	if len(c.out[colRow]) > 0 {
		if err := c.ints.decode(&cursor{b: c.out[colRow]}, c.rows, 0); err != nil {
			return fmt.Errorf("column ro: %w", err)
		}
	}
	next := h.first
	for i, v := range c.rows {
		c.rows[i] = next + v
		next = c.rows[i] + 1
	}
	return nil
}

// decodeKeys reads the sort keys of the chunk that decode read last.
func (c *requestCodec) decodeKeys(keys []int64) error {
	if err := c.ints.decode(&cursor{b: c.out[colSortKey]}, keys, math.MinInt64); err != nil {
		return fmt.Errorf("decode sort keys: %w", err)
	}
	return nil
}
