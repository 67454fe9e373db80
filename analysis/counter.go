package analysis

import (
	"iter"
	"math"
)

// The dense part of a Counter: counts of the values 0 to denseLimit-1, in
// pages that are made when first used. Microseconds up to 0.26 s, which holds
// nearly every gap between tokens.
const (
	pageBits   = 10
	pageSize   = 1 << pageBits
	densePages = 256
	denseLimit = densePages * pageSize
)

type page [pageSize]int64

// Counter holds the exact distribution of whole numbers (microseconds,
// tokens) in little memory: at most 2 MiB for small values and some two bytes
// for each distinct value beyond. The zero Counter is empty and ready.
type Counter struct {
	n     int64
	dense []*page
	tail  runs
}

// Add counts one value.
func (c *Counter) Add(v int64) { c.AddN(v, 1) }

// AddN counts a value n times; n below 1 does nothing.
func (c *Counter) AddN(v, n int64) {
	if n < 1 {
		return
	}
	c.n += n
	if v < 0 || v >= denseLimit {
		c.tail.add(v, n)
		return
	}
	if c.dense == nil {
		c.dense = make([]*page, densePages)
	}
	p := c.dense[v>>pageBits]
	if p == nil {
		p = new(page)
		c.dense[v>>pageBits] = p
	}
	p[v&(pageSize-1)] += n
}

// Merge counts all that other has counted.
func (c *Counter) Merge(other *Counter) {
	for v, n := range other.All() {
		c.AddN(v, n)
	}
}

// Count is the number of values.
func (c *Counter) Count() int64 { return c.n }

// All gives the distinct values in ascending order, each with its count.
func (c *Counter) All() iter.Seq2[int64, int64] {
	return func(yield func(v, n int64) bool) {
		below := true
		for v, n := range c.tail.all() {
			if below && v >= denseLimit {
				below = false
				if !c.eachDense(yield) {
					return
				}
			}
			if !yield(v, n) {
				return
			}
		}
		if below {
			c.eachDense(yield)
		}
	}
}

func (c *Counter) eachDense(yield func(v, n int64) bool) bool {
	for i, p := range c.dense {
		if p == nil {
			continue
		}
		for j, n := range p {
			if n != 0 && !yield(int64(i)<<pageBits|int64(j), n) {
				return false
			}
		}
	}
	return true
}

// Sum is the sum of all values; exact while it stays below 2^63.
func (c *Counter) Sum() int64 {
	var sum int64
	for v, n := range c.All() {
		sum += v * n
	}
	return sum
}

// Stats describes the values, each divided by unit: 1000 makes milliseconds
// of microseconds.
func (c *Counter) Stats(unit float64) Stats {
	if c.n == 0 {
		return Stats{}
	}
	mean := float64(c.Sum()) / float64(c.n) / unit
	st := Stats{Count: c.n, Mean: Some(mean)}
	out := []*Value{&st.P50, &st.P90, &st.P95, &st.P99}
	marks := newMarks(c.n)
	var squares, v float64
	var seen int64
	for raw, n := range c.All() {
		v = float64(raw) / unit
		if seen == 0 {
			st.Min = Some(v)
		}
		seen += n
		squares += (v - mean) * (v - mean) * float64(n)
		marks.pass(v, seen)
	}
	st.Max = Some(v)
	st.Std = Some(math.Sqrt(squares / float64(c.n)))
	for i := range marks {
		*out[i] = Some(lerp(marks[i].low, marks[i].high, marks[i].t))
	}
	return st
}

// mark picks up the two values between which a percentile lies.
type mark struct {
	lo        int64
	t         float64
	low, high float64
	haveLow   bool
	haveHigh  bool
}

type marks [len(percentiles)]mark

func newMarks(n int64) (m marks) {
	for i, q := range percentiles {
		m[i].lo, m[i].t = rank(n, q)
	}
	return m
}

// pass notes that the values of rank below seen are at most v.
func (m *marks) pass(v float64, seen int64) {
	for i := range m {
		k := &m[i]
		if !k.haveLow && seen > k.lo {
			k.low, k.high, k.haveLow = v, v, true
		}
		if k.haveLow && !k.haveHigh && seen > k.lo+1 {
			k.high, k.haveHigh = v, true
		}
	}
}
