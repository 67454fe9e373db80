package record

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// How an integer column is written: flags of its first byte.
const (
	intDelta  = 1 << iota // differences to the value before
	intMasked             // a bit mask says which rows have a value
	intConst              // one value stands for all
	intFlags  = 1<<iota - 1
)

var errQuantum = errors.New("quantum beyond 2^63")

// intColumn writes and reads columns of int64, keeping its scratch.
type intColumn struct {
	vals []int64 // the values of rows that have one
}

// append writes vals; rows that equal none have no value.
//
//	flags (1) · [mask ⌈n/8⌉] · const:  zigzag value
//	                           delta:  zigzag first · uvarint q · zigzag difference/q …
//	                           plain:  uvarint q · zigzag value/q …
//
// q is the greatest common divisor of what follows it; 0 says that all that
// follows is 0 and left out.
func (c *intColumn) append(dst []byte, vals []int64, none int64) []byte {
	c.vals = c.vals[:0]
	for _, v := range vals {
		if v != none {
			c.vals = append(c.vals, v)
		}
	}
	flags := len(dst)
	dst = append(dst, 0)
	if len(c.vals) < len(vals) {
		dst[flags] |= intMasked
		dst = appendMask(dst, vals, none)
	}
	if len(c.vals) == 0 {
		return dst
	}
	return c.appendPresent(dst, flags)
}

func appendMask(dst []byte, vals []int64, none int64) []byte {
	for i, v := range vals {
		if i%8 == 0 {
			dst = append(dst, 0)
		}
		if v != none {
			dst[len(dst)-1] |= 1 << (i % 8)
		}
	}
	return dst
}

// appendPresent writes c.vals by whichever way is shortest.
func (c *intColumn) appendPresent(dst []byte, flags int) []byte {
	var qPlain, qDelta uint64
	prev := c.vals[0]
	for _, v := range c.vals {
		qPlain = gcd(qPlain, magnitude(v))
		qDelta = gcd(qDelta, magnitude(v-prev))
		prev = v
	}
	if qDelta == 0 {
		dst[flags] |= intConst
		return appendZigzag(dst, prev)
	}
	plain, delta := 0, 0
	prev = c.vals[0]
	for _, v := range c.vals {
		plain += zigzagLen(divide(v, qPlain))
		delta += zigzagLen(divide(v-prev, qDelta))
		prev = v
	}
	if plain <= delta {
		dst = binary.AppendUvarint(dst, qPlain)
		for _, v := range c.vals {
			dst = appendZigzag(dst, divide(v, qPlain))
		}
		return dst
	}
	dst[flags] |= intDelta
	prev = c.vals[0]
	dst = appendZigzag(dst, prev)
	dst = binary.AppendUvarint(dst, qDelta)
	for _, v := range c.vals[1:] {
		dst = appendZigzag(dst, divide(v-prev, qDelta))
		prev = v
	}
	return dst
}

// decode fills vals from cur, which must hold nothing after it.
func (c *intColumn) decode(cur *cursor, vals []int64, none int64) error {
	flags := cur.byte()
	if flags > intFlags || flags&intConst != 0 && flags&intDelta != 0 {
		return fmt.Errorf("integer column has flags 0x%02x", flags)
	}
	var mask []byte
	if flags&intMasked != 0 {
		mask = cur.bytes(uint64(len(vals)+7) / 8)
	}
	if cur.err != nil {
		return cur.err
	}
	if mask == nil {
		c.decodePresent(cur, vals, flags)
		return cur.done()
	}
	n := 0
	for i := range vals {
		n += int(mask[i/8] >> (i % 8) & 1)
	}
	c.vals = resize(c.vals, n)
	c.decodePresent(cur, c.vals, flags)
	n = 0
	for i := range vals {
		vals[i] = none
		if mask[i/8]>>(i%8)&1 != 0 {
			vals[i] = c.vals[n]
			n++
		}
	}
	return cur.done()
}

func (c *intColumn) decodePresent(cur *cursor, vals []int64, flags byte) {
	if len(vals) == 0 {
		return
	}
	var first int64
	if flags&(intConst|intDelta) != 0 {
		first = cur.zigzag()
		vals[0] = first
	}
	if flags&intConst != 0 {
		for i := range vals {
			vals[i] = first
		}
		return
	}
	q := cur.uvarint()
	if q > 1<<63 {
		cur.fail(errQuantum)
	}
	if flags&intDelta != 0 {
		decodeDeltas(cur, vals, q)
		return
	}
	for i := range vals {
		vals[i] = 0
		if q != 0 {
			vals[i] = cur.zigzag() * int64(q)
		}
	}
}

// decodeDeltas runs on from vals[0].
func decodeDeltas(cur *cursor, vals []int64, q uint64) {
	v, rest := vals[0], vals[1:]
	if q == 0 {
		for i := range rest {
			rest[i] = v
		}
		return
	}
	for i := range rest {
		if cur.pos < len(cur.b) && cur.b[cur.pos] == 0 {
			cur.pos++
		} else {
			v += cur.zigzag() * int64(q)
		}
		rest[i] = v
	}
}

// magnitude is |v|, of the smallest int64 too.
func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// gcd is quick where b is a multiple of a, as nearly always.
func gcd(a, b uint64) uint64 {
	if b == 0 || a == 1 {
		return a
	}
	if a == 0 {
		return b
	}
	for {
		r := b % a
		if r == 0 {
			return a
		}
		a, b = r, a
	}
}

// divide is v/q for a q that divides v exactly; q 0 goes with v 0.
func divide(v int64, q uint64) int64 {
	switch {
	case q <= 1 || v == 0:
		return v
	case v < 0:
		return -int64(magnitude(v) / q)
	}
	return int64(uint64(v) / q)
}

func zigzagLen(v int64) int {
	n := 1
	for u := zigzag(v); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// resize makes s n long, keeping its memory where it can; the contents are undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
