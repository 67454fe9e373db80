package record

import (
	"fmt"
	"time"
	"unsafe"
)

// resultInt is a column of integers; it is left out where all are def.
func resultInt(name string, def int64, get func(*Result) int64, set func(*Result, int64)) resultColumn {
	return resultColumn{
		name: name,
		encode: func(c *resultCodec, dst []byte, recs []Result) []byte {
			c.nums = resize(c.nums, len(recs))
			needed := false
			for i := range recs {
				c.nums[i] = get(&recs[i])
				needed = needed || c.nums[i] != def
			}
			if !needed {
				return dst
			}
			return c.ints.append(dst, c.nums, def)
		},
		decode: func(c *resultCodec, cur *cursor, recs []Result) error {
			c.nums = resize(c.nums, len(recs))
			err := c.ints.decode(cur, c.nums, def)
			for i := range recs {
				set(&recs[i], c.nums[i])
			}
			return err
		},
	}
}

// resultTime is a column of durations; it is left out where there is none.
func resultTime(name string, at func(*Result) *time.Duration) resultColumn {
	return resultInt(name, noValue, func(r *Result) int64 { return fromTime(*at(r)) }, func(r *Result, v int64) { *at(r) = toTime(v) })
}

// resultString is a column of strings; it is left out where all are "".
func resultString(name string, at func(*Result) *string) resultColumn {
	return resultColumn{
		name: name,
		encode: func(c *resultCodec, dst []byte, recs []Result) []byte {
			c.texts = resize(c.texts, len(recs))
			needed := false
			for i := range recs {
				c.texts[i] = *at(&recs[i])
				needed = needed || c.texts[i] != ""
			}
			if !needed {
				return dst
			}
			return c.strings.append(dst, c.texts)
		},
		decode: func(c *resultCodec, cur *cursor, recs []Result) error {
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

// resultOutput is the answers' texts.
var resultOutput = resultColumn{
	name: "ou",
	encode: func(c *resultCodec, dst []byte, recs []Result) []byte {
		c.blobs = resize(c.blobs, len(recs))
		needed := false
		for i := range recs {
			c.blobs[i] = recs[i].Output
			needed = needed || recs[i].Output != nil
		}
		if !needed {
			return dst
		}
		return appendBytes(dst, c.blobs)
	},
	decode: func(c *resultCodec, cur *cursor, recs []Result) error {
		c.blobs = resize(c.blobs, len(recs))
		clear(c.blobs)
		err := decodeBytes(cur, c.blobs)
		for i := range recs {
			recs[i].Output = c.blobs[i]
		}
		return err
	},
}

// gapCount is the number of gaps of each result.
var gapCount = func() resultColumn {
	f := resultInt("gn", 0, func(r *Result) int64 { return int64(len(r.Gaps)) }, func(*Result, int64) {})
	plain := f.decode
	f.decode = func(c *resultCodec, cur *cursor, recs []Result) error {
		if err := plain(c, cur, recs); err != nil {
			return err
		}
		const most = maxItemBytes / int(unsafe.Sizeof(Gap{}))
		total := 0
		for i, n := range c.nums {
			if n < 0 || n > int64(most-total) {
				return fmt.Errorf("record %d: %d gaps, at most %d are allowed in a chunk", i, n, most)
			}
			total += int(n)
		}
		own := make([]Gap, total)
		for i, n := range c.nums {
			if n > 0 {
				recs[i].Gaps, own = own[:n:n], own[n:]
			}
		}
		return nil
	}
	return f
}()

// gapWait is all gaps' waits in microseconds, gapTokens their tokens.
var (
	gapWait = gapField("gw", noValue, func(g *Gap) int64 { return fromTime(g.Wait) },
		func(g *Gap, v int64) { g.Wait = toTime(v) })
	gapTokens = gapField("gt", Unknown, func(g *Gap) int64 { return g.Tokens },
		func(g *Gap, v int64) { g.Tokens = v })
)

// gapField is one number of all gaps, one result's after another's; none is
// what stands for no value.
func gapField(name string, none int64, get func(*Gap) int64, set func(*Gap, int64)) resultColumn {
	return resultColumn{
		name: name,
		encode: func(c *resultCodec, dst []byte, recs []Result) []byte {
			c.nums = c.nums[:0]
			for i := range recs {
				for k := range recs[i].Gaps {
					c.nums = append(c.nums, get(&recs[i].Gaps[k]))
				}
			}
			if len(c.nums) == 0 {
				return dst
			}
			return c.ints.append(dst, c.nums, none)
		},
		decode: func(c *resultCodec, cur *cursor, recs []Result) error {
			n := 0
			for i := range recs {
				n += len(recs[i].Gaps)
			}
			c.nums = resize(c.nums, n)
			err := c.ints.decode(cur, c.nums, none)
			n = 0
			for i := range recs {
				for k := range recs[i].Gaps {
					set(&recs[i].Gaps[k], c.nums[n])
					n++
				}
			}
			return err
		},
	}
}

// span is the smallest and the largest time of a chunk; nil where none is known.
type span struct{ first, last *int64 }

func (s *span) add(d time.Duration) {
	if d == NoTime {
		return
	}
	v := int64(d)
	if s.first == nil {
		first, last := v, v
		s.first, s.last = &first, &last
		return
	}
	*s.first, *s.last = min(*s.first, v), max(*s.last, v)
}
