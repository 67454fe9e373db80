package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// How a string column is written: its first byte.
const (
	stringRaw     = iota // lengths, then bytes
	stringDict           // a dictionary, then an index a row
	stringDecimal        // an integer column; "" has no value
)

// noDecimal stands for "" in a decimal column.
const noDecimal = math.MinInt64

// stringColumn writes and reads columns of strings, keeping its scratch.
type stringColumn struct {
	ints  intColumn
	nums  []int64
	dict  map[string]int
	words []string
	index []int
}

// append writes vals the way that fits them: decimal integers as numbers,
// few distinct strings as a dictionary, others as they are.
//
//	0 · uvarint length …(n) · bytes
//	1 · uvarint d · uvarint length …(d) · bytes · uvarint index …(n)
//	2 · integer column
func (c *stringColumn) append(dst []byte, vals []string) []byte {
	if c.decimals(vals) {
		return c.ints.append(append(dst, stringDecimal), c.nums, noDecimal)
	}
	if c.dictionary(vals) {
		dst = binary.AppendUvarint(append(dst, stringDict), uint64(len(c.words)))
		dst = appendStrings(dst, c.words)
		for _, k := range c.index {
			dst = binary.AppendUvarint(dst, uint64(k))
		}
		return dst
	}
	return appendStrings(append(dst, stringRaw), vals)
}

func appendStrings(dst []byte, vals []string) []byte {
	for _, s := range vals {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
	}
	for _, s := range vals {
		dst = append(dst, s...)
	}
	return dst
}

// decimals fills c.nums where every string is "" or a canonical decimal.
func (c *stringColumn) decimals(vals []string) bool {
	c.nums = resize(c.nums, len(vals))
	for i, s := range vals {
		if s == "" {
			c.nums[i] = noDecimal
			continue
		}
		v, ok := canonicalDecimal(s)
		if !ok {
			return false
		}
		c.nums[i] = v
	}
	return true
}

// canonicalDecimal parses what strconv.FormatInt would print, but not the
// smallest int64, which stands for "".
func canonicalDecimal(s string) (int64, bool) {
	if len(s) > 20 || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v == noDecimal {
		return 0, false
	}
	var buf [20]byte
	return v, string(strconv.AppendInt(buf[:0], v, 10)) == s
}

// dictionary fills c.words and c.index where at most half of vals differ.
func (c *stringColumn) dictionary(vals []string) bool {
	if c.dict == nil {
		c.dict = make(map[string]int)
	}
	clear(c.dict)
	c.words, c.index = c.words[:0], c.index[:0]
	for _, s := range vals {
		k, ok := c.dict[s]
		if !ok {
			k = len(c.words)
			if k > len(vals)/2 {
				return false
			}
			c.dict[s] = k
			c.words = append(c.words, s)
		}
		c.index = append(c.index, k)
	}
	return true
}

// decode fills vals from cur, which must hold nothing after it. The strings
// share memory of their own, not that of cur.
func (c *stringColumn) decode(cur *cursor, vals []string) error {
	switch kind := cur.byte(); {
	case cur.err != nil:
		return cur.err
	case kind == stringRaw:
		decodeStrings(cur, vals)
	case kind == stringDict:
		c.decodeDict(cur, vals)
	case kind == stringDecimal:
		return c.decodeDecimals(cur, vals)
	default:
		return fmt.Errorf("string column has encoding %d", kind)
	}
	return cur.done()
}

func decodeStrings(cur *cursor, vals []string) {
	start := *cur
	var total uint64
	for range vals {
		n := cur.uvarint()
		if n > uint64(cur.left()) {
			cur.fail(errShort)
			return
		}
		total += n
	}
	text := string(cur.bytes(total))
	if cur.err != nil {
		return
	}
	for i := range vals {
		n := int(start.uvarint())
		vals[i], text = text[:n], text[n:]
	}
}

func (c *stringColumn) decodeDict(cur *cursor, vals []string) {
	d := cur.uvarint()
	if d > uint64(len(vals)) {
		cur.fail(fmt.Errorf("dictionary of %d words for %d rows", d, len(vals)))
		return
	}
	c.words = resize(c.words, int(d))
	decodeStrings(cur, c.words)
	for i := range vals {
		k := cur.uvarint()
		if cur.err != nil {
			return
		}
		if k >= d {
			cur.fail(fmt.Errorf("row %d: word %d of a dictionary of %d", i, k, d))
			return
		}
		vals[i] = c.words[k]
	}
	clear(c.words)
}

func (c *stringColumn) decodeDecimals(cur *cursor, vals []string) error {
	c.nums = resize(c.nums, len(vals))
	if err := c.ints.decode(cur, c.nums, noDecimal); err != nil {
		return err
	}
	var buf []byte
	for _, v := range c.nums {
		if v != noDecimal {
			buf = strconv.AppendInt(buf, v, 10)
		}
	}
	text := string(buf)
	for i, v := range c.nums {
		vals[i] = ""
		if v != noDecimal {
			n := decimalLen(v)
			vals[i], text = text[:n], text[n:]
		}
	}
	return nil
}

func decimalLen(v int64) int {
	n := 1
	if v < 0 {
		n++
	}
	for u := magnitude(v); u >= 10; u /= 10 {
		n++
	}
	return n
}

// appendBytes writes a column of byte strings; nil differs from empty.
//
//	uvarint length+1, 0 for nil …(n) · bytes
func appendBytes(dst []byte, vals [][]byte) []byte {
	for _, b := range vals {
		n := 0
		if b != nil {
			n = len(b) + 1
		}
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, b := range vals {
		dst = append(dst, b...)
	}
	return dst
}

// decodeBytes fills vals from cur, which must hold nothing after it. The byte
// strings share memory of their own.
func decodeBytes(cur *cursor, vals [][]byte) error {
	start := *cur
	var total uint64
	for range vals {
		n := cur.uvarint()
		if n > uint64(cur.left())+1 {
			cur.fail(errShort)
			return cur.err
		}
		total += n - min(n, 1)
	}
	own := append(make([]byte, 0, min(total, uint64(cur.left()))), cur.bytes(total)...)
	if err := cur.done(); err != nil {
		return err
	}
	for i := range vals {
		vals[i] = nil
		if n := int(start.uvarint()); n > 0 {
			vals[i], own = own[:n-1:n-1], own[n-1:]
		}
	}
	return nil
}
