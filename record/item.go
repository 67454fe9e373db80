package record

import (
	"errors"
	"fmt"
)

// An item of a container is a CBOR array whose first element says what it is.
const (
	itemHeader   = "retrace" // version, header map
	itemRequests = "requests"
	itemResults  = "results"
	itemSeries   = "series"
	itemBlob     = "blob"   // number, digest, data
	itemFooter   = "footer" // footer map
)

// The major types of CBOR (RFC 8949) that an item uses.
const (
	cborUint  = 0
	cborBytes = 2
	cborText  = 3
	cborArray = 4
	cborMap   = 5
)

// appendHead appends a head in its shortest form, as deterministic encoding asks.
func appendHead(dst []byte, major byte, v uint64) []byte {
	major <<= 5
	switch {
	case v < 24:
		return append(dst, major|byte(v))
	case v <= 0xFF:
		return append(dst, major|24, byte(v))
	case v <= 0xFFFF:
		return append(dst, major|25, byte(v>>8), byte(v))
	case v <= 0xFFFFFFFF:
		return append(dst, major|26, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return append(dst, major|27, byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, cborText, uint64(len(s))), s...)
}

var errNotShortest = errors.New("number not in its shortest form")

// head takes a head of the given major type.
func (c *cursor) head(major byte) uint64 {
	b := c.byte()
	if c.err != nil {
		return 0
	}
	if b>>5 != major {
		c.fail(fmt.Errorf("CBOR major type %d, expected %d", b>>5, major))
		return 0
	}
	info := b & 31
	if info < 24 {
		return uint64(info)
	}
	if info > 27 {
		c.fail(fmt.Errorf("CBOR additional information %d", info))
		return 0
	}
	size := uint(1) << (info - 24)
	var v uint64
	for _, b := range c.bytes(uint64(size)) {
		v = v<<8 | uint64(b)
	}
	if c.err == nil && (v < 24 || size > 1 && v>>(4*size) == 0) {
		c.fail(errNotShortest)
	}
	return v
}

// text takes a text string, which shares the cursor's memory.
func (c *cursor) text() []byte { return c.bytes(c.head(cborText)) }

// chunkHead opens a chunk: what it holds, its number in the file, how many
// records of its sort precede it, and how many it holds.
type chunkHead struct {
	kind  string
	seq   int64
	first int64
	count int
}

const maxCount = 1 << 62

func (h *chunkHead) append(dst []byte) []byte {
	dst = appendHead(dst, cborArray, 5)
	dst = appendText(dst, h.kind)
	dst = appendHead(dst, cborUint, uint64(h.seq))
	dst = appendHead(dst, cborUint, uint64(h.first))
	return appendHead(dst, cborUint, uint64(h.count))
}

// itemKind reads the start of any item and leaves the cursor behind its kind.
func itemKind(cur *cursor) (kind string, elements uint64, err error) {
	elements = cur.head(cborArray)
	name := cur.text()
	if cur.err != nil {
		return "", 0, fmt.Errorf("read item: %w", cur.err)
	}
	for _, k := range [...]string{itemRequests, itemResults, itemSeries, itemBlob, itemFooter, itemHeader} {
		if string(name) == k {
			return k, elements, nil
		}
	}
	return "", 0, fmt.Errorf("read item: unknown kind %.32q", name)
}

// readChunkHead reads on after itemKind.
func readChunkHead(cur *cursor, kind string, elements uint64) (chunkHead, error) {
	seq, first, count := cur.head(cborUint), cur.head(cborUint), cur.head(cborUint)
	switch {
	case cur.err != nil:
		return chunkHead{}, fmt.Errorf("read %s chunk: %w", kind, cur.err)
	case elements != 5:
		return chunkHead{}, fmt.Errorf("read %s chunk: array of %d elements, expected 5", kind, elements)
	case count == 0 || count > maxRecords || seq > maxCount || first > maxCount:
		return chunkHead{}, fmt.Errorf("read %s chunk: number %d, first record %d, %d records; 1 to %d records are allowed", kind, seq, first, count, maxRecords)
	}
	return chunkHead{kind: kind, seq: int64(seq), first: int64(first), count: int(count)}, nil
}

// appendColumns appends the map of columns; empty ones are left out. names
// must be of one length and sorted.
func appendColumns(dst []byte, names []string, cols [][]byte) []byte {
	n := 0
	for _, b := range cols {
		if len(b) > 0 {
			n++
		}
	}
	dst = appendHead(dst, cborMap, uint64(n))
	for i, b := range cols {
		if len(b) > 0 {
			dst = appendText(dst, names[i])
			dst = append(appendHead(dst, cborBytes, uint64(len(b))), b...)
		}
	}
	return dst
}

// readColumns reads the map of columns to the end of the item. The columns
// share the cursor's memory. Names must be known and in order, so that none
// comes twice.
func readColumns(cur *cursor, names []string, cols [][]byte) error {
	clear(cols)
	n := cur.head(cborMap)
	k := 0
	for ; n > 0 && cur.err == nil; n-- {
		name := cur.text()
		if cur.err != nil {
			break
		}
		for k < len(names) && names[k] != string(name) {
			k++
		}
		if k == len(names) {
			return fmt.Errorf("column %.16q is unknown, doubled or out of order", name)
		}
		cols[k] = cur.bytes(cur.head(cborBytes))
		k++
	}
	if err := cur.done(); err != nil {
		return fmt.Errorf("read columns: %w", err)
	}
	return nil
}
