package record

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errShort    = errors.New("ends too early")
	errVarint   = errors.New("number longer than 64 bits")
	errTrailing = errors.New("has bytes left over")
)

// cursor reads a byte string from front to back. Its first error sticks, so
// that a decoder can run straight on and check once.
type cursor struct {
	b   []byte
	pos int
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
		c.b, c.pos = nil, 0
	}
}

func (c *cursor) left() int { return len(c.b) - c.pos }

// bytes takes the next n bytes.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.fail(errShort)
		return nil
	}
	b := c.b[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) byte() byte {
	if c.pos >= len(c.b) {
		c.fail(errShort)
		return 0
	}
	c.pos++
	return c.b[c.pos-1]
}

// uvarint takes a LEB128 number.
func (c *cursor) uvarint() uint64 {
	if c.pos < len(c.b) && c.b[c.pos] < 0x80 {
		c.pos++
		return uint64(c.b[c.pos-1])
	}
	v, n := binary.Uvarint(c.b[c.pos:])
	switch {
	case n == 0:
		c.fail(errShort)
	case n < 0:
		c.fail(errVarint)
	}
	if c.err != nil {
		return 0
	}
	c.pos += n
	return v
}

// zigzag takes a signed number.
func (c *cursor) zigzag() int64 { return unzigzag(c.uvarint()) }

// done says whether everything was read, and nothing failed.
func (c *cursor) done() error {
	if c.err == nil && c.left() != 0 {
		c.err = fmt.Errorf("%w: %d", errTrailing, c.left())
	}
	return c.err
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func appendZigzag(dst []byte, v int64) []byte { return binary.AppendUvarint(dst, zigzag(v)) }
