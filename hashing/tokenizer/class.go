package tokenizer

import (
	"sort"
	"unicode"
)

// class is a set of runes.
type class struct {
	// basic has a bit for each rune below 0x10000.
	basic [1024]uint64
	// ranges are pairs of a first and a last rune, in order.
	ranges []rune
}

// newClass makes the set of the ranges, which are pairs of a first and a last
// rune in order.
func newClass(ranges []rune) *class {
	c := &class{ranges: ranges}
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= min(ranges[i+1], 0xffff); r++ {
			c.basic[r>>6] |= 1 << (r & 63)
		}
	}
	return c
}

// has says whether r is in the set.
func (c *class) has(r rune) bool {
	if uint32(r) < 0x10000 {
		return c.basic[r>>6]>>(r&63)&1 == 1
	}
	n := len(c.ranges) / 2
	i := sort.Search(n, func(i int) bool { return c.ranges[2*i+1] >= r })
	return i < n && c.ranges[2*i] <= r
}

// foldClass is the set of the runes that are r but for their case.
func foldClass(r rune) *class {
	list := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	var ranges []rune
	for _, f := range list {
		ranges = append(ranges, f, f)
	}
	return newClass(ranges)
}

// complement turns ranges into those between them.
func complement(ranges []rune) []rune {
	var out []rune
	next := rune(0)
	for i := 0; i < len(ranges); i += 2 {
		if next < ranges[i] {
			out = append(out, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

// spaces are the runes with the property White_Space, which is what \s means
// to the engine that these patterns are written for.
var spaces = []rune{
	'\t', '\r', ' ', ' ', 0x85, 0x85, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a,
	0x2028, 0x2029, 0x202f, 0x202f, 0x205f, 0x205f, 0x3000, 0x3000,
}
