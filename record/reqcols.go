package record

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// requestColumn is one optional column of a request chunk: how it is gathered
// from the records and given back to them.
type requestColumn struct {
	col    int
	needed func(*Request) bool
	encode func(*requestCodec, []byte, []Request) []byte
	decode func(*requestCodec, *cursor, []Request) error
}

// optionalColumns holds every column but those that every chunk has and the rows.
var optionalColumns = []requestColumn{
	intField(colDelay, int64(NoTime), func(r *Request) int64 { return int64(r.Delay) },
		func(r *Request, v int64) { r.Delay = time.Duration(v) }),
	intField(colTurn, 0, func(r *Request) int64 { return int64(r.Turn) },
		func(r *Request, v int64) { r.Turn = int(v) }),
	intField(colIncrement, 0, func(r *Request) int64 { return asInt(r.Increment) },
		func(r *Request, v int64) { r.Increment = v != 0 }),
	intField(colObsStatus, 0, func(r *Request) int64 { return int64(r.Observed.Status) },
		func(r *Request, v int64) { r.Observed.Status = int(v) }),
	intField(colObsLatency, int64(NoTime), func(r *Request) int64 { return int64(r.Observed.Latency) },
		func(r *Request, v int64) { r.Observed.Latency = time.Duration(v) }),
	intField(colObsInput, Unknown, func(r *Request) int64 { return r.Observed.InputTokens },
		func(r *Request, v int64) { r.Observed.InputTokens = v }),
	intField(colObsOutput, Unknown, func(r *Request) int64 { return r.Observed.OutputTokens },
		func(r *Request, v int64) { r.Observed.OutputTokens = v }),
	intField(colObsFailed, 0, func(r *Request) int64 { return asInt(r.Observed.Failed) },
		func(r *Request, v int64) { r.Observed.Failed = v != 0 }),
	stringField(colID, func(r *Request) *string { return &r.ID }),
	stringField(colSession, func(r *Request) *string { return &r.Session }),
	stringField(colParent, func(r *Request) *string { return &r.Parent }),
	stringField(colAPI, func(r *Request) *string { return &r.API }),
	stringField(colModel, func(r *Request) *string { return &r.Model }),
	stringField(colKind, func(r *Request) *string { return &r.Kind }),
	bytesField(colBody, func(r *Request) *[]byte { return &r.Body }),
	bytesField(colExtra, func(r *Request) *[]byte { return &r.Extra }),
	priorityField,
	mediaCount, mediaKind, mediaRef, mediaBytes,
	exceptionCount, exceptionField, exceptionRaw,
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// intField is a column of integers; it is left out where all are def, and def is
// what rows without a value have.
func intField(col int, def int64, get func(*Request) int64, set func(*Request, int64)) requestColumn {
	return requestColumn{
		col:    col,
		needed: func(r *Request) bool { return get(r) != def },
		encode: func(c *requestCodec, dst []byte, recs []Request) []byte {
			c.nums = resize(c.nums, len(recs))
			for i := range recs {
				c.nums[i] = get(&recs[i])
			}
			return c.ints.append(dst, c.nums, def)
		},
		decode: func(c *requestCodec, cur *cursor, recs []Request) error {
			c.nums = resize(c.nums, len(recs))
			err := c.ints.decode(cur, c.nums, def)
			for i := range recs {
				set(&recs[i], c.nums[i])
			}
			return err
		},
	}
}

// stringField is a column of strings; it is left out where all are "".
func stringField(col int, at func(*Request) *string) requestColumn {
	return requestColumn{
		col:    col,
		needed: func(r *Request) bool { return *at(r) != "" },
		encode: func(c *requestCodec, dst []byte, recs []Request) []byte {
			c.texts = resize(c.texts, len(recs))
			for i := range recs {
				c.texts[i] = *at(&recs[i])
			}
			return c.strings.append(dst, c.texts)
		},
		decode: func(c *requestCodec, cur *cursor, recs []Request) error {
			c.texts = resize(c.texts, len(recs))
			clear(c.texts)
			err := c.strings.decode(cur, c.texts)
			for i := range recs {
				*at(&recs[i]) = c.texts[i]
			}
			return err
		},
	}
}

// bytesField is a column of byte strings; it is left out where all are nil.
func bytesField(col int, at func(*Request) *[]byte) requestColumn {
	return requestColumn{
		col:    col,
		needed: func(r *Request) bool { return *at(r) != nil },
		encode: func(c *requestCodec, dst []byte, recs []Request) []byte {
			c.blobs = resize(c.blobs, len(recs))
			for i := range recs {
				c.blobs[i] = *at(&recs[i])
			}
			return appendBytes(dst, c.blobs)
		},
		decode: func(c *requestCodec, cur *cursor, recs []Request) error {
			c.blobs = resize(c.blobs, len(recs))
			clear(c.blobs)
			err := decodeBytes(cur, c.blobs)
			for i := range recs {
				*at(&recs[i]) = c.blobs[i]
			}
			return err
		},
	}
}

// priorityField starts with the number that stands for nil: the smallest that
// no record has.
var priorityField = requestColumn{
	col:    colPriority,
	needed: func(r *Request) bool { return r.Priority != nil },
	encode: func(c *requestCodec, dst []byte, recs []Request) []byte {
		none := int64(math.MinInt64)
		for slices.ContainsFunc(recs, func(r Request) bool { return r.Priority != nil && *r.Priority == none }) {
			none++
		}
		c.nums = resize(c.nums, len(recs))
		for i := range recs {
			c.nums[i] = none
			if p := recs[i].Priority; p != nil {
				c.nums[i] = *p
			}
		}
		return c.ints.append(appendZigzag(dst, none), c.nums, none)
	},
	decode: func(c *requestCodec, cur *cursor, recs []Request) error {
		none := cur.zigzag()
		c.nums = resize(c.nums, len(recs))
		if err := c.ints.decode(cur, c.nums, none); err != nil {
			return err
		}
		own := make([]int64, len(recs))
		for i, v := range c.nums {
			if v != none {
				own[i] = v
				recs[i].Priority = &own[i]
			}
		}
		return nil
	},
}

// decodeOptional fills recs from every optional column that is there.
func (c *requestCodec) decodeOptional(cols *columns, recs []Request) error {
	for i := range optionalColumns {
		f := &optionalColumns[i]
		if len(cols[f.col]) == 0 {
			continue
		}
		if err := f.decode(c, &cursor{b: cols[f.col]}, recs); err != nil {
			return fmt.Errorf("column %s: %w", requestNames[f.col], err)
		}
	}
	return nil
}
