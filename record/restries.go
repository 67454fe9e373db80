package record

import (
	"fmt"
	"time"
	"unsafe"
)

// resultTries are the columns of the attempts that were made again: how many a
// result has, then the fields of all, one result's after another's.
var resultTries = []resultColumn{
	tryCount(),
	tryInt("ys", noValue, func(t *Try) int64 { return fromTime(t.Sent) }, func(t *Try, v int64) { t.Sent = toTime(v) }),
	tryInt("yw", noValue, func(t *Try) int64 { return fromTime(t.Wait) }, func(t *Try, v int64) { t.Wait = toTime(v) }),
	tryInt("yh", 0, func(t *Try) int64 { return int64(t.Status) }, func(t *Try, v int64) { t.Status = int(v) }),
	tryClass,
}

func tryCount() resultColumn {
	col := resultInt("yn", 0, func(r *Result) int64 { return int64(len(r.Tries)) }, func(*Result, int64) {})
	plain := col.decode
	col.decode = func(c *resultCodec, cur *cursor, recs []Result) error {
		if err := plain(c, cur, recs); err != nil {
			return err
		}
		const most = maxItemBytes / int(unsafe.Sizeof(Try{}))
		total := 0
		for i, n := range c.nums {
			if n < 0 || n > int64(most-total) {
				return fmt.Errorf("record %d: %d attempts, at most %d are allowed in a chunk", i, n, most)
			}
			total += int(n)
		}
		own := make([]Try, total)
		for i := range own {
			own[i] = Try{Sent: NoTime, Wait: NoTime}
		}
		for i, n := range c.nums {
			if n > 0 {
				recs[i].Tries, own = own[:n:n], own[n:]
			}
		}
		return nil
	}
	return col
}

// tries are those of all results, in order.
func tries(recs []Result) []*Try {
	var list []*Try
	for i := range recs {
		for k := range recs[i].Tries {
			list = append(list, &recs[i].Tries[k])
		}
	}
	return list
}

func tryInt(name string, none int64, get func(*Try) int64, set func(*Try, int64)) resultColumn {
	return resultColumn{
		name: name,
		encode: func(c *resultCodec, dst []byte, recs []Result) []byte {
			c.nums = c.nums[:0]
			needed := false
			for _, t := range tries(recs) {
				v := get(t)
				c.nums = append(c.nums, v)
				needed = needed || v != none
			}
			if !needed {
				return dst
			}
			return c.ints.append(dst, c.nums, none)
		},
		decode: func(c *resultCodec, cur *cursor, recs []Result) error {
			list := tries(recs)
			c.nums = resize(c.nums, len(list))
			err := c.ints.decode(cur, c.nums, none)
			for i, t := range list {
				set(t, c.nums[i])
			}
			return err
		},
	}
}

var tryClass = resultColumn{
	name: "yc",
	encode: func(c *resultCodec, dst []byte, recs []Result) []byte {
		c.texts = c.texts[:0]
		for _, t := range tries(recs) {
			c.texts = append(c.texts, t.Class)
		}
		if len(c.texts) == 0 {
			return dst
		}
		return c.strings.append(dst, c.texts)
	},
	decode: func(c *resultCodec, cur *cursor, recs []Result) error {
		list := tries(recs)
		c.texts = resize(c.texts, len(list))
		clear(c.texts)
		err := c.strings.decode(cur, c.texts)
		for i, t := range list {
			t.Class = c.texts[i]
		}
		return err
	},
}

// Try is an attempt that failed and was made again.
type Try struct {
	// Sent is when it was handed to the connection, NoTime where it was not; Wait
	// the time that was waited before the next one.
	Sent time.Duration
	Wait time.Duration
	// Status is the HTTP status, 0 where no response came; Class the error class.
	Status int
	Class  string
}
