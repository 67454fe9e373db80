package hashing

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file write token ids, which is most of the work of
// hashing a block. Nearly all ids of a real vocabulary take three or five
// bytes, in no foreseeable order, so these two lengths are told apart without
// a branch. Writing into an array of fixed length at an index of eight bits
// needs no bounds check; run is how many tokens surely fit.

// run is the number of tokens that one call of a kernel writes at the most.
const run = 48

// window is what a kernel writes into: run tokens of five bytes each from or to
// index 256, and what is written beyond an id's end or before its beginning
// and written over by the next one.
type window = [256 + 16]byte

// What prependTokens needs before the tokens and behind them.
const (
	cborRoom     = 256
	cborSlack    = 16
	maxCBORToken = 9
)

// prependTokens writes CBOR integers before buf[end], and returns where they
// begin. Before them lie cborRoom bytes that it may use, behind them cborSlack
// bytes that it leaves alone.
//
// They are written from the last to the first: four big-endian bytes of the
// id, of which a three-byte integer shows two; the head and the id before
// write over the others.
func prependTokens[T uint32 | uint64](buf []byte, end int, tokens []T) int {
	for n := len(tokens); n > 0; {
		from := max(0, n-run)
		left, at := prependRun((*window)(buf[end-256:]), tokens[from:n])
		end -= 256 - at
		if n = from + left; left > 0 {
			n--
			end -= 9
			buf[end] = cborUint | 27
			binary.BigEndian.PutUint64(buf[end+1:], uint64(tokens[n]))
		}
	}
	return end
}

// prependRun writes tokens so that they end before w[256], from the last one
// until one has more than 32 bits, and returns how many are left and where
// what it wrote begins.
//
// In pairs they cost a quarter less than one by one: there the index moves by
// what the two differ from ten bytes, which saves an instruction at each place.
func prependRun[T uint32 | uint64](w *window, tokens []T) (left, at int) {
	_ = w[0]
	i := uint8(256 - 10) // the next token ends before w[i+10]
	for len(tokens) > 0 {
		for len(tokens) >= 2 {
			b, a := uint64(tokens[len(tokens)-1]), uint64(tokens[len(tokens)-2])
			if b < 1<<8 || a < 1<<8 || (a|b)>>32 != 0 {
				break
			}
			short := int64(b-1<<16) >> 63 // -1 for two bytes, 0 for four
			binary.BigEndian.PutUint32(w[int(i)+6:][:4], uint32(b))
			i -= uint8(short + short)
			w[int(i)+5] = byte(short + (cborUint | 26))
			short = int64(a-1<<16) >> 63
			binary.BigEndian.PutUint32(w[int(i)+1:][:4], uint32(a))
			i -= uint8(short + short)
			w[i] = byte(short + (cborUint | 26))
			i -= 10
			tokens = tokens[:len(tokens)-2]
		}
		for range min(len(tokens), 2) {
			v := uint64(tokens[len(tokens)-1])
			if v >= 1<<32 {
				return len(tokens), int(i) + 10
			}
			i = prependOne(w, i, v)
			tokens = tokens[:len(tokens)-1]
		}
	}
	return 0, int(i) + 10
}

// prependOne writes one id of any length so that it ends before w[i+10], and
// returns that index for the next one.
func prependOne(w *window, i uint8, v uint64) uint8 {
	end := w[int(i)+5:][:5]
	switch {
	case v < 24:
		end[4] = byte(v)
		return i - 1
	case v < 1<<8:
		end[3], end[4] = cborUint|24, byte(v)
		return i - 2
	case v < 1<<16:
		end[2], end[3], end[4] = cborUint|25, byte(v>>8), byte(v)
		return i - 3
	}
	end[0] = cborUint | 26
	binary.BigEndian.PutUint32(end[1:], uint32(v))
	return i - 5
}

// The opcodes of integers (Lib/pickletools.py).
const (
	opBinInt  = 'J' // four bytes, signed
	opBinInt1 = 'K' // one byte
	opBinInt2 = 'M' // two bytes
	opLong1   = 0x8a
)

// What appendTokens needs behind the tokens, and a token's greatest length.
const (
	pickleSlack    = 256 + 16
	maxPickleToken = 11
)

// appendTokens writes the pickles of integers from buf[at] on, behind which lie
// pickleSlack bytes more than they can need, and returns where they end. Each
// is one word of eight bytes, whose surplus the next one overwrites.
func appendTokens[T uint32 | uint64](buf []byte, at int, tokens []T) int {
	for len(tokens) > 0 {
		done, n := appendRun((*window)(buf[at:]), tokens[:min(run, len(tokens))])
		at += n
		if tokens = tokens[done:]; done < run && len(tokens) > 0 {
			at = len(appendLong(buf[:at], uint64(tokens[0]), 0))
			tokens = tokens[1:]
		}
	}
	return at
}

// appendRun writes tokens from w[0] on until one has more than 31 bits, and
// returns how many and where they end.
func appendRun[T uint32 | uint64](w *window, tokens []T) (done, end int) {
	_ = w[0]
	i := uint8(0)
	for n, t := range tokens {
		v := uint64(t)
		if v >= 1<<8 && v < 1<<31 {
			short := uint64(int64(v-1<<16) >> 63) // all ones for two bytes, 0 for four
			binary.LittleEndian.PutUint64(w[i:][:8], bits.RotateLeft64(v, 8)^opBinInt^short&(opBinInt^opBinInt2))
			i += 5 + 2*uint8(short)
			continue
		}
		if v >= 1<<31 {
			return n, int(i)
		}
		w[i], w[int(i)+1] = opBinInt1, byte(v)
		i += 2
	}
	return len(tokens), int(i)
}

// appendLong appends LONG1: n, whose sign is in neg (all ones or 0), in two's
// complement with no more bytes than needed.
func appendLong(dst []byte, n uint64, neg byte) []byte {
	size := 8
	for size > 1 && byte(n>>(8*size-8)) == neg && byte(n>>(8*size-16))>>7 == neg>>7 {
		size--
	}
	extra := byte(n>>(8*size-8))>>7 != neg>>7 // the sign needs a byte of its own
	dst = append(dst, opLong1, byte(size))
	if extra {
		dst[len(dst)-1]++
	}
	for i := range size {
		dst = append(dst, byte(n>>(8*i)))
	}
	if extra {
		dst = append(dst, neg)
	}
	return dst
}
