package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// leastBlob is the length from which on a string of base64 in a body is stored
// apart: pictures and recordings come back in request after request.
const leastBlob = 64 << 10

// bodySpan is one place of a body where a string was cut out: the request's
// number in its chunk, the offset in what is left of the body, and the string.
type bodySpan struct {
	row, at int
	blob    int64 // its number
	length  int
}

// cutter takes long strings of base64 out of bodies and numbers the distinct ones.
type cutter struct {
	least int // bytes of a string; 0: nothing is cut
	known map[[sha256.Size]byte]int64
	// put stores the blob of the next number.
	put func(number int64, digest [sha256.Size]byte, data []byte) error

	body  []byte // what is left of the latest body
	spans []bodySpan
}

// cut gives what is left of body without the long strings (their quotes stay),
// and where they were, both good until the next call. The spans' rows
// are 0.
func (c *cutter) cut(body []byte) ([]byte, []bodySpan, error) {
	c.body, c.spans = c.body[:0], c.spans[:0]
	done := 0 // what of body is dealt with
	for from := 0; ; {
		start, end, ok := nextString(body, from)
		if !ok {
			break
		}
		if end-start >= c.least && isBase64(body[start:end]) {
			n, err := c.number(body[start:end])
			if err != nil {
				return nil, nil, err
			}
			c.body = append(c.body, body[done:start]...)
			c.spans = append(c.spans, bodySpan{at: len(c.body), blob: n, length: end - start})
			done = end
		}
		from = end + 1
	}
	if len(c.spans) == 0 {
		return body, nil, nil
	}
	c.body = append(c.body, body[done:]...)
	return c.body, c.spans, nil
}

// number is that of the blob data, which is stored where it is new.
func (c *cutter) number(data []byte) (int64, error) {
	digest := sha256.Sum256(data)
	if n, ok := c.known[digest]; ok {
		return n, nil
	}
	n := int64(len(c.known))
	if err := c.put(n, digest, data); err != nil {
		return 0, err
	}
	if c.known == nil {
		c.known = make(map[[sha256.Size]byte]int64)
	}
	c.known[digest] = n
	return n, nil
}

// nextString finds the JSON string that begins at or behind from, without its quotes.
func nextString(b []byte, from int) (start, end int, ok bool) {
	k := bytes.IndexByte(b[from:], '"')
	if k < 0 {
		return 0, 0, false
	}
	start = from + k + 1
	for end = start; ; end++ {
		k := bytes.IndexByte(b[end:], '"')
		if k < 0 {
			return 0, 0, false
		}
		end += k
		escapes := 0
		for escapes < end-start && b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return start, end, true
		}
	}
}

// base64Bytes are those of base64 in either alphabet, and of a data URL's head.
var base64Bytes = func() (set [256]bool) {
	for _, b := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=:;,.") {
		set[b] = true
	}
	return set
}()

// isBase64 says whether the inside of a JSON string is base64, or a data URL of
// it. Text is not: a prompt begins as earlier ones do, which a chunk makes use
// of and a blob cannot.
func isBase64(s []byte) bool {
	for i, b := range s {
		if !base64Bytes[b] && !bytes.HasPrefix(s[i:], escapedSlash) {
			return false
		}
	}
	return true
}

var escapedSlash = []byte(`\/`)

// appendSpans appends the column of spans: for each, varints of its row less
// the one before, its offset (from the span before, in the same row), its
// blob's number and its length.
func appendSpans(dst []byte, spans []bodySpan) []byte {
	var last bodySpan
	for _, s := range spans {
		if s.row != last.row {
			last.at = 0
		}
		for _, v := range [...]int64{int64(s.row - last.row), int64(s.at - last.at), s.blob, int64(s.length)} {
			dst = binary.AppendUvarint(dst, uint64(v))
		}
		last = s
	}
	return dst
}

// decodeSpans reads the column of spans of recs, whose bodies are what is left.
func decodeSpans(cur *cursor, recs []Request, spans []bodySpan) ([]bodySpan, error) {
	var last bodySpan
	total := 0 // of the row's body, joined
	for first := true; cur.err == nil && cur.left() > 0; first = false {
		row, at, blob, length := cur.uvarint(), cur.uvarint(), cur.uvarint(), cur.uvarint()
		if cur.err != nil {
			break
		}
		if row >= uint64(len(recs)-last.row) {
			return spans, fmt.Errorf("span of row %d + %d, the chunk has %d", last.row, row, len(recs))
		}
		s := bodySpan{row: last.row + int(row)}
		left := len(recs[s.row].Body)
		if first || row > 0 {
			last.at, total = 0, left
		}
		if at > uint64(left-last.at) || blob > maxCount || length > uint64(maxRecordBytes-min(total, maxRecordBytes)) {
			return spans, fmt.Errorf("span at %d + %d of blob %d, %d bytes, in a body of %d, of joined %d", last.at, at, blob, length, left, total)
		}
		if len(spans) == maxSpans {
			return spans, fmt.Errorf("more than %d spans", maxSpans)
		}
		s.at, s.blob, s.length = last.at+int(at), int64(blob), int(length)
		total += s.length
		spans = append(spans, s)
		last = s
	}
	return spans, cur.err
}

// spansOf are those of one row.
func spansOf(spans []bodySpan, row int) []bodySpan {
	byRow := func(s bodySpan, row int) int { return s.row - row }
	from, _ := slices.BinarySearchFunc(spans, row, byRow)
	to, _ := slices.BinarySearchFunc(spans, row+1, byRow)
	return spans[from:to]
}
