package analysis

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
)

// pair is a value and how often it came.
type pair struct{ v, n int64 }

// bufferPairs is how many pairs wait before they are sorted and coded.
const bufferPairs = 1 << 13

// runs is a sparse distribution: a buffer of the newest pairs, and sorted runs
// of pairs coded as varints (difference to the value before, count), each at
// least twice as long as the next, as in a log-structured merge tree. So a
// pair is coded again log2(n/bufferPairs) times at most, and n distinct
// values within a range R take about n·(1 + log128(R/n)) bytes.
type runs struct {
	buffer []pair
	coded  []run
}

func (r *runs) add(v, n int64) {
	r.buffer = append(r.buffer, pair{v, n})
	if len(r.buffer) >= bufferPairs {
		r.flush()
	}
}

// flush codes the buffer and merges runs until each is twice its successor.
func (r *runs) flush() {
	if len(r.buffer) == 0 {
		return
	}
	slices.SortFunc(r.buffer, func(a, b pair) int { return cmp.Compare(a.v, b.v) })
	enc := encoder{data: make([]byte, 0, 2*len(r.buffer))}
	for _, p := range r.buffer {
		enc.put(p)
	}
	r.coded = append(r.coded, enc.close())
	r.buffer = r.buffer[:0]
	for k := len(r.coded); k > 1 && r.coded[k-2].pairs < 2*r.coded[k-1].pairs; k = len(r.coded) {
		merged := mergeRuns(r.coded[k-2], r.coded[k-1])
		r.coded = append(r.coded[:k-2], merged)
	}
}

// all gives the distinct values in ascending order with their counts.
func (r *runs) all() iter.Seq2[int64, int64] {
	return func(yield func(v, n int64) bool) {
		r.flush()
		cursors := make([]cursor, len(r.coded))
		for i, c := range r.coded {
			cursors[i] = c.start()
		}
		for {
			p, ok := lowest(cursors)
			if !ok || !yield(p.v, p.n) {
				return
			}
		}
	}
}

// lowest takes the smallest value that any cursor stands on from all of them.
func lowest(cursors []cursor) (p pair, ok bool) {
	for _, c := range cursors {
		if c.ok && (!ok || c.v < p.v) {
			p.v, ok = c.v, true
		}
	}
	for i := range cursors {
		if c := &cursors[i]; c.ok && c.v == p.v {
			p.n += c.n
			c.next()
		}
	}
	return p, ok
}

// mergeRuns makes one run of two.
func mergeRuns(a, b run) run {
	enc := encoder{data: make([]byte, 0, len(a.data)+len(b.data))}
	x, y := a.start(), b.start()
	for x.ok || y.ok {
		if !y.ok || x.ok && x.v <= y.v {
			enc.put(x.pair)
			x.next()
			continue
		}
		enc.put(y.pair)
		y.next()
	}
	return enc.close()
}

// run is a coded distribution; its values are distinct and ascend.
type run struct {
	data  []byte
	pairs int
}

func (r run) start() cursor {
	c := cursor{data: r.data}
	c.next()
	return c
}

// cursor stands on one pair of a run, or past its end.
type cursor struct {
	pair
	data []byte
	ok   bool
}

func (c *cursor) next() {
	if len(c.data) == 0 {
		c.ok = false
		return
	}
	d, k := binary.Varint(c.data)
	n, l := binary.Uvarint(c.data[k:])
	c.data = c.data[k+l:]
	c.v += d
	c.n = int64(n)
	c.ok = true
}

// encoder makes a run of ascending pairs, joining equal values.
type encoder struct {
	data   []byte
	pairs  int
	before int64
	held   pair
}

func (e *encoder) put(p pair) {
	if e.held.n > 0 && e.held.v == p.v {
		e.held.n += p.n
		return
	}
	e.write()
	e.held = p
}

func (e *encoder) write() {
	if e.held.n == 0 {
		return
	}
	e.data = binary.AppendVarint(e.data, e.held.v-e.before)
	e.data = binary.AppendUvarint(e.data, uint64(e.held.n))
	e.before = e.held.v
	e.pairs++
}

func (e *encoder) close() run {
	e.write()
	return run{data: e.data, pairs: e.pairs}
}
