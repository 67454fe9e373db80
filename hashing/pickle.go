package hashing

import (
	"encoding/binary"
	"math"
)

// The opcodes of pickle protocol 5 that block keys need (Lib/pickletools.py);
// those of integers are beside their writer.
const (
	opProto           = 0x80
	opFrame           = 0x95
	opStop            = '.'
	opMark            = '('
	opNone            = 'N'
	opTrue            = 0x88
	opFalse           = 0x89
	opBinFloat        = 'G'
	opShortBinUnicode = 0x8c
	opBinUnicode      = 'X'
	opBinUnicode8     = 0x8d
	opShortBinBytes   = 'C'
	opBinBytes        = 'B'
	opBinBytes8       = 0x8e
	opEmptyTuple      = ')'
	opTuple1          = 0x85 // and two and three elements behind it
	opTuple           = 't'
	opMemoize         = 0x94
	opBinGet          = 'h'
	opLongBinGet      = 'j'
)

// Sizes of CPython's framing (Modules/_pickle.c): a frame is closed before the
// first object that finds it this long, and an object this long is in no frame.
const (
	frameTarget = 64 << 10
	frameMin    = 4
	frameHead   = 9
)

// pickler writes values as CPython's C pickler with protocol 5 does.
type pickler struct {
	out []byte
	// frame is where the open frame's head is; no frame is open at -1.
	frame    int
	unframed bool // write no frames at all
	objects  int  // memoised so far
	memo     []memoEntry
}

// memoEntry is an object that may be met again.
type memoEntry struct {
	object any // string or Constant: a text; see objectOf
	number int
}

// appendPickle appends pickle.dumps(value, protocol=5).
func appendPickle(dst []byte, value any) ([]byte, error) {
	// Frames count from the pickle's own beginning, so dst is only prefixed.
	p := pickler{out: dst, frame: -1}
	p.out = append(p.out, opProto, 5)
	if err := p.save(value); err != nil {
		return dst, err
	}
	p.write(opStop)
	p.commit()
	return p.out, nil
}

// write appends opcodes and their short arguments to the frame, which it opens
// where there is none.
func (p *pickler) write(ops ...byte) {
	p.open()
	p.out = append(p.out, ops...)
}

func (p *pickler) open() {
	if p.frame < 0 && !p.unframed {
		p.frame = len(p.out)
		p.out = append(p.out, make([]byte, frameHead)...)
	}
}

// commit closes the frame; a tiny one loses its head.
func (p *pickler) commit() {
	if p.frame < 0 {
		return
	}
	body := p.out[p.frame+frameHead:]
	if len(body) >= frameMin {
		p.out[p.frame] = opFrame
		binary.LittleEndian.PutUint64(p.out[p.frame+1:], uint64(len(body)))
	} else {
		p.out = append(p.out[:p.frame], body...)
	}
	p.frame = -1
}

// save writes a value.
func (p *pickler) save(value any) error {
	p.boundary()
	switch v := value.(type) {
	case nil:
		p.write(opNone)
	case bool:
		if v {
			p.write(opTrue)
		} else {
			p.write(opFalse)
		}
	case int:
		p.saveInt(int64(v))
	case int64:
		p.saveInt(v)
	case uint64:
		p.saveUint(v)
	case float64:
		p.write(opBinFloat)
		p.out = binary.BigEndian.AppendUint64(p.out, math.Float64bits(v))
	case string, Constant, []byte:
		p.saveObject(value)
	case []any:
		return p.saveTuple(v)
	case []uint32:
		saveInts(p, v)
	case []uint64:
		saveInts(p, v)
	default:
		return unknownValue(value)
	}
	return nil
}

// boundary closes a frame that is long enough.
func (p *pickler) boundary() {
	if p.frame >= 0 && len(p.out)-p.frame-frameHead >= frameTarget {
		p.commit()
	}
}

func (p *pickler) saveInt(n int64) {
	if n >= 0 {
		p.saveUint(uint64(n))
		return
	}
	if p.open(); n >= math.MinInt32 {
		p.out = binary.LittleEndian.AppendUint32(append(p.out, opBinInt), uint32(n))
		return
	}
	p.out = appendLong(p.out, uint64(n), 0xff)
}

func (p *pickler) saveUint(n uint64) {
	p.open()
	switch {
	case n < 1<<8:
		p.out = append(p.out, opBinInt1, byte(n))
	case n < 1<<16:
		p.out = append(p.out, opBinInt2, byte(n), byte(n>>8))
	case n < 1<<31:
		p.out = binary.LittleEndian.AppendUint32(append(p.out, opBinInt), uint32(n))
	default:
		p.out = appendLong(p.out, n, 0)
	}
}

// saveObject writes a text or byte string, or refers back to it.
func (p *pickler) saveObject(value any) {
	object := objectOf(value)
	if object != nil {
		for _, m := range p.memo {
			if m.object == object {
				p.get(m.number)
				return
			}
		}
		p.memo = append(p.memo, memoEntry{object, p.objects})
	}
	switch v := value.(type) {
	case string:
		p.saveString([3]byte{opShortBinUnicode, opBinUnicode, opBinUnicode8}, v)
	case Constant:
		p.saveString([3]byte{opShortBinUnicode, opBinUnicode, opBinUnicode8}, string(v))
	case []byte:
		p.saveString([3]byte{opShortBinBytes, opBinBytes, opBinBytes8}, string(v))
	}
	p.memoize()
}

// oneByte is a byte string of at most one byte: of those CPython keeps one
// object each.
type oneByte string

// objectOf is what tells whether a text or byte string is an object that the
// pickle may have met: nil says that it is one of its own. CPython has one
// object for each text of at most one character up to U+00FF.
func objectOf(value any) any {
	switch v := value.(type) {
	case Constant:
		if small(string(v)) {
			return string(v)
		}
		return v
	case string:
		if small(v) {
			return v
		}
	case []byte:
		if len(v) <= 1 {
			return oneByte(v)
		}
	}
	return nil
}

// small says whether a text has at most one character, and that up to U+00FF.
func small(s string) bool {
	return len(s) < 2 || len(s) == 2 && (s[0] == 0xc2 || s[0] == 0xc3)
}

// saveString writes a text or byte string behind the opcode for its length of
// one, four or eight bytes. A long one stands outside of all frames.
func (p *pickler) saveString(ops [3]byte, s string) {
	long := len(s) >= frameTarget
	if long {
		p.commit()
	} else {
		p.open()
	}
	switch n := uint64(len(s)); {
	case n <= math.MaxUint8:
		p.out = append(p.out, ops[0], byte(n))
	case n <= math.MaxUint32:
		p.out = binary.LittleEndian.AppendUint32(append(p.out, ops[1]), uint32(n))
	default:
		p.out = binary.LittleEndian.AppendUint64(append(p.out, ops[2]), n)
	}
	p.out = append(p.out, s...)
}

// saveTuple writes a tuple, which is never met twice. The empty one is not
// memoised.
func (p *pickler) saveTuple(list []any) error {
	p.beginTuple(len(list))
	for _, v := range list {
		if err := p.save(v); err != nil {
			return err
		}
	}
	p.endTuple(len(list))
	return nil
}

func (p *pickler) beginTuple(n int) {
	if n > 3 {
		p.write(opMark)
	}
}

func (p *pickler) endTuple(n int) {
	switch {
	case n == 0:
		p.write(opEmptyTuple)
		return
	case n <= 3:
		p.write(opTuple1 + byte(n) - 1)
	default:
		p.write(opTuple)
	}
	p.memoize()
}

// saveInts is saveTuple for integers.
func saveInts[T uint32 | uint64](p *pickler, list []T) {
	p.beginTuple(len(list))
	for _, v := range list {
		p.boundary()
		p.saveUint(uint64(v))
	}
	p.endTuple(len(list))
}

func (p *pickler) memoize() {
	p.write(opMemoize)
	p.objects++
}

// get refers back to an object.
func (p *pickler) get(number int) {
	if number <= math.MaxUint8 {
		p.write(opBinGet, byte(number))
		return
	}
	p.write(opLongBinGet)
	p.out = binary.LittleEndian.AppendUint32(p.out, uint32(number))
}
