package record

import (
	"fmt"
	"math"
)

// requestCodec turns requests into a chunk item and back. It keeps its
// scratch from one chunk to the next; the encoder's and the decoder's are apart.
type requestCodec struct {
	blockSize int
	enc       blockEncoder
	dec       *blockDecoder
	in        columns // to encode
	out       columns // decoded, shares the item's memory

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
	if isPlain(r) {
		if r.Arrival != NoTime {
			*p |= 1 // arrivals come first in optionalColumns
		}
		return
	}
	for i := range optionalColumns {
		if *p&(1<<i) == 0 && optionalColumns[i].needed(r) {
			*p |= 1 << i
		}
	}
}

// isPlain says that r needs no optional column but the arrival.
func isPlain(r *Request) bool {
	return r.ID == "" && r.Session == "" && r.Turn == 0 && r.Parent == "" && r.Delay == NoTime &&
		!r.Increment && r.API == "" && r.Body == nil && len(r.Media) == 0 &&
		r.Model == "" && r.Kind == "" && r.Priority == nil && r.Observed == NewObserved() &&
		r.Extra == nil && len(r.Exceptions) == 0
}

// encode appends the item of recs to dst. keys are those of a sorted run, nil
// in a file that stays.
func (c *requestCodec) encode(dst []byte, h chunkHead, recs []Request, need presence, keys []int64) []byte {
	c.in.reset()
	c.enc.encode(&c.in, recs, c.blockSize)
	for i := range optionalColumns {
		if need&(1<<i) != 0 {
			f := &optionalColumns[i]
			c.in[f.col] = f.encode(c, c.in[f.col], recs)
		}
	}
	c.encodeRows(h, recs)
	if keys != nil {
		c.in[colSortKey] = c.ints.append(c.in[colSortKey], keys, math.MinInt64)
	}
	return appendColumns(h.append(dst), requestNames[:], c.in[:])
}

// encodeRows writes how far each row is from the one after its predecessor's;
// nothing where the chunk goes on as the file's record numbers do.
func (c *requestCodec) encodeRows(h chunkHead, recs []Request) {
	c.nums = resize(c.nums, len(recs))
	next, odd := h.first, false
	for i := range recs {
		c.nums[i] = recs[i].Row - next
		odd = odd || c.nums[i] != 0
		next = recs[i].Row + 1
	}
	if odd {
		c.in[colRow] = c.ints.append(c.in[colRow], c.nums, 0)
	}
}

// decode reads the columns at cur, which is behind the chunk's head, into
// recs, of which there are h.count. What the records point to is their own.
func (c *requestCodec) decode(cur *cursor, h chunkHead, recs []Request) error {
	c.itemBytes = len(cur.b)
	if err := readColumns(cur, requestNames[:], c.out[:]); err != nil {
		return fmt.Errorf("decode requests chunk %d: %w", h.seq, err)
	}
	if c.dec == nil {
		c.dec = new(blockDecoder)
	}
	blank := NewRequest()
	for i := range recs {
		recs[i] = blank
	}
	err := c.dec.decode(&c.out, recs, c.blockSize)
	if err == nil {
		err = c.decodeRequestColumns(&c.out, recs)
	}
	if err == nil {
		err = c.decodeRows(h, recs)
	}
	if err != nil {
		return fmt.Errorf("decode requests chunk %d: %w", h.seq, err)
	}
	return nil
}

func (c *requestCodec) decodeRows(h chunkHead, recs []Request) error {
	next := h.first
	if len(c.out[colRow]) == 0 {
		for i := range recs {
			recs[i].Row = next + int64(i)
		}
		return nil
	}
	c.nums = resize(c.nums, len(recs))
	if err := c.ints.decode(&cursor{b: c.out[colRow]}, c.nums, 0); err != nil {
		return fmt.Errorf("column ro: %w", err)
	}
	for i, v := range c.nums {
		recs[i].Row = next + v
		next = recs[i].Row + 1
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
