package formats

import (
	"encoding/binary"
	"math/bits"
)

// The digits of eight bytes of text, as one little-endian word.
const (
	asciiZeros = 0x3030303030303030
	topBits    = 0x8080808080808080
)

// digits8 reads the number that the eight bytes of w, least significant first,
// start with: its value and how many digits it has, 0 to 8.
func digits8(w uint64) (value uint64, n int) {
	t := w ^ asciiZeros // digits become 0 to 9
	// A byte above 9 gets its top bit; what it carries only spoils those behind it.
	other := (t + 0x7676767676767676 | t) & topBits
	n = bits.TrailingZeros64(other) / 8
	t <<= 64 - 8*uint(n) // leading zeros; all gone where n is 0
	t = (t*10 + t>>8) & 0x00FF00FF00FF00FF
	t = (t*100 + t>>16) & 0x0000FFFF0000FFFF
	return (t*10000 + t>>32) & 0xFFFFFFFF, n
}

// plainNumber reads the digits at line[i:] and gives where they end. The value
// is wrong where there are more than maxPlain of them.
func plainNumber(line []byte, i int) (n uint64, end int) {
	if len(line)-i >= 8 {
		if v, k := digits8(binary.LittleEndian.Uint64(line[i:])); k < 8 {
			return v, i + k
		}
	}
	for i < len(line) {
		d := line[i] - '0'
		if d > 9 {
			break
		}
		n = n*10 + uint64(d)
		i++
	}
	return n, i
}

// successors goes on in a list of ids, where line[start:end] is the latest one
// and a comma follows it: as long as the text of the next one is what counting
// up by one gives, as nearly always, it need not be read as a number. It gives
// the longer list and the end of its last id.
func successors(list []uint64, line []byte, start, end int) ([]uint64, int) {
	digits, stride := end-start, end-start+1
	if end+1 < len(line) && line[end+1] == ' ' {
		stride++
	}
	if stride > 8 || len(line)-start < 8 {
		return list, end
	}
	last := 8 * uint(digits-1)                  // the place of the last digit
	mask := ^uint64(0) >> (64 - 8*uint(stride)) // the id and what is between two
	one, ten, low := uint64(1)<<last, uint64(10)<<last, uint64(15)<<last
	id := list[len(list)-1]
	want := binary.LittleEndian.Uint64(line[start:])&mask + one
	batches := true
	for start += stride; len(line)-start >= 8; start += stride {
		if want&low == ten {
			if want = carryDigits(want, last); want == 0 {
				break
			}
		}
		if batches && want&low <= 5*one {
			if batches = spellsFive(line[start:], stride, want, one, mask); batches {
				list = append(list, id+1, id+2, id+3, id+4, id+5)
				id, want, start = id+5, want+5*one, start+4*stride
				continue
			}
		}
		have := binary.LittleEndian.Uint64(line[start:])
		if have&mask != want {
			// The last one has another end behind it.
			if end := line[start+digits]; (have^want)<<(64-8*uint(digits)) == 0 && (end == ',' || end == ']') {
				return append(list, id+1), start + digits
			}
			break
		}
		want += one
		id++
		list = append(list, id)
	}
	return list, start - stride + digits
}

// spellsFive says whether text starts with five numbers in a row, of which want
// is the first, in the bits of mask, and the last digit goes up by one.
func spellsFive(text []byte, stride int, want, one, mask uint64) bool {
	at := uint(stride)
	if at > 8 || len(text) < 5*8 {
		return false
	}
	differ := binary.LittleEndian.Uint64(text) ^ want
	differ |= binary.LittleEndian.Uint64(text[at:at+8]) ^ (want + one)
	differ |= binary.LittleEndian.Uint64(text[2*at:2*at+8]) ^ (want + 2*one)
	differ |= binary.LittleEndian.Uint64(text[3*at:3*at+8]) ^ (want + 3*one)
	differ |= binary.LittleEndian.Uint64(text[4*at:4*at+8]) ^ (want + 4*one)
	return differ&mask == 0
}

// carryDigits puts right a number in ASCII whose digit at a place has become
// ten; 0 where that takes one digit more.
func carryDigits(w uint64, place uint) uint64 {
	for byte(w>>place) > '9' {
		if place == 0 {
			return 0
		}
		w -= 10 << place
		place -= 8
		w += 1 << place
	}
	return w
}
