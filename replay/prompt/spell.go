package prompt

import "math/bits"

// golden is 2^64 divided by the golden ratio, the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of
// 64-bit numbers in which every bit of the input sways every bit of the output.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// maxHead is the length of the longest head: 64 digits in base 2.
const maxHead = 64

// speller turns a segment's key into indices of a vocabulary.
//
// The first head indices of a segment are its key's digits, lowest first,
// scrambled by a bijection of the digit strings; those behind them are drawn
// from a generator seeded with the key. Hence two keys of one kind never have
// the same head, and two keys that agree in all but the lowest digit, such as
// small neighbouring numbers, differ in the very first index.
type speller struct {
	keys  [kinds]uint64
	width uint32
	head  int
}

// newSpeller makes a speller over width indices, at least two.
func newSpeller(keys [kinds]uint64, width uint32) speller {
	s := speller{keys: keys, width: width}
	for rest := ^uint64(0); rest > 0; rest /= uint64(width) {
		s.head++
	}
	return s
}

// spell writes the indices [from, from+len(dst)) of a segment's text to dst.
func (s *speller) spell(dst []uint32, kind Kind, key uint64, from int) {
	if from < s.head {
		var head [maxHead]uint32
		s.spellHead(head[:s.head], kind, key)
		n := copy(dst, head[from:s.head])
		dst, from = dst[n:], from+n
	}
	s.draw(dst, mix(s.keys[kind]^key), from-s.head)
}

// spellHead writes the scrambled digits of key: each digit in turn, the lowest
// first, is moved by a hash of all the others, which can be undone in the
// opposite order.
func (s *speller) spellHead(d []uint32, kind Kind, key uint64) {
	width := uint64(s.width)
	for i := range d {
		d[i] = uint32(key % width)
		key /= width
	}
	for i := range d {
		s.moveDigit(d, kind, i)
	}
}

// moveDigit adds a hash of the other digits to digit i.
func (s *speller) moveDigit(d []uint32, kind Kind, i int) {
	width := uint64(s.width)
	h := s.keys[kind] + uint64(i+1)*golden
	for j, digit := range d {
		if j != i {
			h = mix(h ^ uint64(digit))
		}
	}
	shift, _ := bits.Mul64(h, width)
	d[i] = uint32((uint64(d[i]) + shift) % width)
}

// draw fills dst with the numbers from, from+1, … of the sequence that seed
// begins: two of each output of SplitMix64, the low half first.
func (s *speller) draw(dst []uint32, seed uint64, from int) {
	width := uint64(s.width)
	if from&1 == 1 && len(dst) > 0 {
		dst[0] = uint32(mix(seed+uint64(from/2+1)*golden) >> 32 * width >> 32)
		dst, from = dst[1:], from+1
	}
	state := seed + uint64(from/2)*golden
	for len(dst) >= 2 {
		state += golden
		x := mix(state)
		dst[0] = uint32(x & 0xffffffff * width >> 32)
		dst[1] = uint32(x >> 32 * width >> 32)
		dst = dst[2:]
	}
	if len(dst) == 1 {
		dst[0] = uint32(mix(state+golden) & 0xffffffff * width >> 32)
	}
}
