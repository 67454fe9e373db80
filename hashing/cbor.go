package hashing

import (
	"encoding/binary"
	"fmt"
)

// The major types of RFC 8949 §3.1 that block keys need.
const (
	cborUint  = 0 << 5
	cborInt   = 1 << 5
	cborBytes = 2 << 5
	cborText  = 3 << 5
	cborArray = 4 << 5
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

// appendBytes appends a byte string.
func appendBytes(dst, b []byte) []byte {
	return append(appendHead(dst, cborBytes, uint64(len(b))), b...)
}

// appendText appends a text string.
func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, cborText, uint64(len(s))), s...)
}

// appendValue appends one extra key: nil, a string, an integer, a byte string,
// or a list of them.
func appendValue(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, cborNull), nil
	case string:
		return appendText(dst, v), nil
	case []byte:
		return appendBytes(dst, v), nil
	case int:
		return appendInt(dst, int64(v)), nil
	case int64:
		return appendInt(dst, v), nil
	case uint64:
		return appendHead(dst, cborUint, v), nil
	case []any:
		return appendList(dst, v)
	}
	return dst, fmt.Errorf("encode extra key: found %T, expected nil, string, []byte, int, int64, uint64 or []any", v)
}

func appendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return appendHead(dst, cborInt, uint64(-1-n))
	}
	return appendHead(dst, cborUint, uint64(n))
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
