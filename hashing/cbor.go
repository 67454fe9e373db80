package hashing

import (
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// The major types of RFC 8949 §3.1 that block keys need, and simple values.
const (
	cborUint  = 0 << 5
	cborInt   = 1 << 5
	cborBytes = 2 << 5
	cborText  = 3 << 5
	cborArray = 4 << 5
	cborFalse = 0xf4
	cborTrue  = 0xf5
	cborNull  = 0xf6
)

// appendHead appends a data item's head: its major type and the shortest form
// of its argument.
func appendHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= 0xff:
		return append(dst, major|24, byte(n))
	case n <= 0xffff:
		return append(dst, major|25, byte(n>>8), byte(n))
	case n <= 0xffffffff:
		return append(dst, major|26, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}

// appendValue appends a value in canonical CBOR. A Constant is a text like any.
func appendValue(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, cborNull), nil
	case bool:
		if v {
			return append(dst, cborTrue), nil
		}
		return append(dst, cborFalse), nil
	case string:
		return append(appendHead(dst, cborText, uint64(len(v))), v...), nil
	case Constant:
		return append(appendHead(dst, cborText, uint64(len(v))), v...), nil
	case []byte:
		return append(appendHead(dst, cborBytes, uint64(len(v))), v...), nil
	case int:
		return appendInt(dst, int64(v)), nil
	case int64:
		return appendInt(dst, v), nil
	case uint64:
		return appendHead(dst, cborUint, v), nil
	case float64:
		return appendFloat(dst, v)
	case []any:
		return appendList(dst, v)
	case []uint32:
		return appendInts(dst, v), nil
	case []uint64:
		return appendInts(dst, v), nil
	}
	return dst, unknownValue(v)
}

func appendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return appendHead(dst, cborInt, uint64(-1-n))
	}
	return appendHead(dst, cborUint, uint64(n))
}

// floats has the shortest form of floating-point numbers, as cbor2's canonical
// mode.
var floats = func() cbor.EncMode {
	mode, err := cbor.CanonicalEncOptions().EncMode()
	if err != nil {
		panic(err) // the library's own options
	}
	return mode
}()

func appendFloat(dst []byte, f float64) ([]byte, error) {
	b, err := floats.Marshal(f)
	if err != nil {
		return dst, fmt.Errorf("encode float: %w", err)
	}
	return append(dst, b...), nil
}

func appendList(dst []byte, list []any) ([]byte, error) {
	dst = appendHead(dst, cborArray, uint64(len(list)))
	var err error
	for _, v := range list {
		if dst, err = appendValue(dst, v); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendInts appends an array of integers, filled from its end.
func appendInts[T uint32 | uint64](dst []byte, list []T) []byte {
	dst = appendHead(dst, cborArray, uint64(len(list)))
	from := len(dst)
	room := cborRoom + len(list)*maxCBORToken
	buf := append(dst, make([]byte, room+cborSlack)...)
	start := prependTokens(buf, from+room, list)
	return append(dst, buf[start:from+room]...)
}
