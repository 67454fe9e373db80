package record

import "fmt"

// The columns of media references and exceptions: a count a record, then the
// fields of all of them, one after another.

var mediaCount = countField(colMediaCount,
	func(r *Request) int { return len(r.Media) },
	func(c *requestCodec, recs []Request, total int) {
		own := make([]Media, total)
		for i, n := range c.nums {
			if n > 0 {
				recs[i].Media, own = own[:n:n], own[n:]
			}
		}
	})

var exceptionCount = countField(colExceptionCount,
	func(r *Request) int { return len(r.Exceptions) },
	func(c *requestCodec, recs []Request, total int) {
		own := make([]Exception, total)
		for i, n := range c.nums {
			if n > 0 {
				recs[i].Exceptions, own = own[:n:n], own[n:]
			}
		}
	})

var mediaKind = nestedStrings(colMediaKind, gatherMedia(func(m *Media) *string { return &m.Kind }))

var mediaRef = nestedStrings(colMediaRef, gatherMedia(func(m *Media) *string { return &m.Ref }))

var exceptionField = nestedStrings(colExceptionField, func(recs []Request, dst []*string) []*string {
	for i := range recs {
		for k := range recs[i].Exceptions {
			dst = append(dst, &recs[i].Exceptions[k].Field)
		}
	}
	return dst
})

func gatherMedia(at func(*Media) *string) func([]Request, []*string) []*string {
	return func(recs []Request, dst []*string) []*string {
		for i := range recs {
			for k := range recs[i].Media {
				dst = append(dst, at(&recs[i].Media[k]))
			}
		}
		return dst
	}
}

func hasMedia(r *Request) bool      { return len(r.Media) > 0 }
func hasExceptions(r *Request) bool { return len(r.Exceptions) > 0 }

var mediaBytes = requestColumn{
	col:    colMediaBytes,
	needed: hasMedia,
	encode: func(c *requestCodec, dst []byte, recs []Request) []byte {
		c.nums = c.nums[:0]
		for i := range recs {
			for k := range recs[i].Media {
				c.nums = append(c.nums, recs[i].Media[k].Bytes)
			}
		}
		return c.ints.append(dst, c.nums, Unknown)
	},
	decode: func(c *requestCodec, cur *cursor, recs []Request) error {
		n := 0
		for i := range recs {
			n += len(recs[i].Media)
		}
		c.nums = resize(c.nums, n)
		err := c.ints.decode(cur, c.nums, Unknown)
		rest := c.nums
		for i := range recs {
			for k := range recs[i].Media {
				recs[i].Media[k].Bytes, rest = rest[0], rest[1:]
			}
		}
		return err
	},
}

var exceptionRaw = requestColumn{
	col:    colExceptionRaw,
	needed: hasExceptions,
	encode: func(c *requestCodec, dst []byte, recs []Request) []byte {
		c.blobs = c.blobs[:0]
		for i := range recs {
			for k := range recs[i].Exceptions {
				c.blobs = append(c.blobs, recs[i].Exceptions[k].Raw)
			}
		}
		return appendBytes(dst, c.blobs)
	},
	decode: func(c *requestCodec, cur *cursor, recs []Request) error {
		n := 0
		for i := range recs {
			n += len(recs[i].Exceptions)
		}
		c.blobs = resize(c.blobs, n)
		clear(c.blobs)
		err := decodeBytes(cur, c.blobs)
		rest := c.blobs
		for i := range recs {
			for k := range recs[i].Exceptions {
				recs[i].Exceptions[k].Raw, rest = rest[0], rest[1:]
			}
		}
		return err
	},
}

// countField is the number of nested things of each record.
func countField(col int, count func(*Request) int, alloc func(*requestCodec, []Request, int)) requestColumn {
	f := intField(col, 0, func(r *Request) int64 { return int64(count(r)) }, func(*Request, int64) {})
	plain := f.decode
	f.decode = func(c *requestCodec, cur *cursor, recs []Request) error {
		if err := plain(c, cur, recs); err != nil {
			return err
		}
		total := 0
		for i, n := range c.nums {
			if n < 0 || n > int64(c.itemBytes-total) {
				return fmt.Errorf("record %d: %d entries in an item of %d bytes", i, n, c.itemBytes)
			}
			total += int(n)
		}
		alloc(c, recs, total)
		return nil
	}
	return f
}

// nestedStrings is one string field of all nested things.
func nestedStrings(col int, gather func([]Request, []*string) []*string) requestColumn {
	needed := hasExceptions
	if col != colExceptionField {
		needed = hasMedia
	}
	return requestColumn{
		col:    col,
		needed: needed,
		encode: func(c *requestCodec, dst []byte, recs []Request) []byte {
			c.refs = gather(recs, c.refs[:0])
			c.texts = resize(c.texts, len(c.refs))
			for i, p := range c.refs {
				c.texts[i] = *p
			}
			return c.strings.append(dst, c.texts)
		},
		decode: func(c *requestCodec, cur *cursor, recs []Request) error {
			c.refs = gather(recs, c.refs[:0])
			c.texts = resize(c.texts, len(c.refs))
			clear(c.texts)
			err := c.strings.decode(cur, c.texts)
			for i, p := range c.refs {
				*p = c.texts[i]
			}
			return err
		},
	}
}
