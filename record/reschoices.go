package record

import (
	"fmt"
	"time"
	"unsafe"
)

// resultChoices are the columns of the first outputs of several choices: how
// many a result has, then the times of all, one result's after another's.
var resultChoices = []resultColumn{choiceCount(), choiceFirst}

func choiceCount() resultColumn {
	col := resultInt("on", 0, func(r *Result) int64 { return int64(len(r.ChoiceFirsts)) }, func(*Result, int64) {})
	plain := col.decode
	col.decode = func(c *resultCodec, cur *cursor, recs []Result) error {
		if err := plain(c, cur, recs); err != nil {
			return err
		}
		const most = maxItemBytes / int(unsafe.Sizeof(time.Duration(0)))
		total := 0
		for i, n := range c.nums {
			if n < 0 || n > int64(most-total) {
				return fmt.Errorf("record %d: %d choices, at most %d are allowed in a chunk", i, n, most)
			}
			total += int(n)
		}
		own := make([]time.Duration, total)
		for i := range own {
			own[i] = NoTime
		}
		for i, n := range c.nums {
			if n > 0 {
				recs[i].ChoiceFirsts, own = own[:n:n], own[n:]
			}
		}
		return nil
	}
	return col
}

var choiceFirst = resultColumn{
	name: "of",
	encode: func(c *resultCodec, dst []byte, recs []Result) []byte {
		c.nums = c.nums[:0]
		for i := range recs {
			for _, d := range recs[i].ChoiceFirsts {
				c.nums = append(c.nums, fromTime(d))
			}
		}
		if len(c.nums) == 0 {
			return dst
		}
		return c.ints.append(dst, c.nums, noValue)
	},
	decode: func(c *resultCodec, cur *cursor, recs []Result) error {
		n := 0
		for i := range recs {
			n += len(recs[i].ChoiceFirsts)
		}
		c.nums = resize(c.nums, n)
		err := c.ints.decode(cur, c.nums, noValue)
		n = 0
		for i := range recs {
			for k := range recs[i].ChoiceFirsts {
				recs[i].ChoiceFirsts[k] = toTime(c.nums[n])
				n++
			}
		}
		return err
	},
}
