package formats

import (
	"bytes"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Faults of a literal.
var (
	ErrRange   = errors.New("out of range")
	ErrLiteral = errors.New("not a number")
	ErrInexact = errors.New("not an integer")
)

// maxExponent bounds e-notation, so that 1e999999999 costs nothing.
const maxExponent = 400

// ParseTime reads a decimal literal (JSON's, or one with a leading zero, plus
// sign or bare point as in CSV) of the given unit as a duration, exactly: no
// float64 comes in between. Where nanoseconds cannot hold it, exact is false
// and the duration is rounded to the nearest, halves to even. Negative times
// and those beyond 292 years are ErrRange.
func ParseTime(lit []byte, unit time.Duration) (d time.Duration, exact bool, err error) {
	digits, scale, neg, err := splitDecimal(lit)
	if err != nil {
		return 0, false, err
	}
	if len(digits) <= 18 && scale <= 0 && scale >= -9 {
		if d, exact, ok := smallTime(digits, -scale, unit); ok && (!neg || d == 0) {
			return d, exact, nil
		}
	}
	if len(digits) == 0 {
		return 0, true, nil
	}
	if neg || len(digits)+scale > 30 {
		return 0, false, ErrRange
	}
	return bigTime(digits, scale, unit)
}

// smallTime is digits / 10^down · unit where all of it fits 64 bits and comes out even.
func smallTime(digits string, down int, unit time.Duration) (time.Duration, bool, bool) {
	var n int64
	for i := range len(digits) {
		n = n*10 + int64(digits[i]-'0')
	}
	u := int64(unit)
	for ; down > 0 && u%10 == 0; down-- {
		u /= 10
	}
	if down > 0 || n > (1<<63-1)/u {
		return 0, false, false
	}
	return time.Duration(n * u), true, true
}

func bigTime(digits string, scale int, unit time.Duration) (time.Duration, bool, error) {
	n, _ := new(big.Int).SetString(digits, 10)
	n.Mul(n, big.NewInt(int64(unit)))
	exact := true
	if scale >= 0 {
		n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
	} else {
		down := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-scale)), nil)
		rest := new(big.Int)
		n.QuoRem(n, down, rest)
		exact = rest.Sign() == 0
		if c := rest.Lsh(rest, 1).Cmp(down); c > 0 || c == 0 && n.Bit(0) == 1 {
			n.Add(n, big.NewInt(1))
		}
	}
	if !n.IsInt64() {
		return 0, false, ErrRange
	}
	return time.Duration(n.Int64()), exact, nil
}

// splitDecimal splits a literal into significant digits (no leading or
// trailing zeros) and a power of ten.
func splitDecimal(lit []byte) (digits string, scale int, neg bool, err error) {
	s := string(lit)
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if scale, err = parseExponent(s[i+1:]); err != nil {
			return "", 0, neg, err
		}
		s = s[:i]
	}
	whole, frac, _ := strings.Cut(s, ".")
	digits = whole + frac
	scale -= len(frac)
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", 0, neg, ErrLiteral
	}
	digits = strings.TrimLeft(digits, "0")
	if n := len(strings.TrimRight(digits, "0")); n < len(digits) {
		scale += len(digits) - n
		digits = digits[:n]
	}
	if digits == "" {
		return "", 0, neg, nil
	}
	if scale < -maxExponent || scale > maxExponent {
		return "", 0, neg, ErrRange
	}
	return digits, scale, neg, nil
}

func parseExponent(s string) (int, error) {
	if strings.Trim(s, "0123456789+-") != "" {
		return 0, ErrLiteral
	}
	n, err := strconv.Atoi(s)
	if errors.Is(err, strconv.ErrRange) {
		if strings.HasPrefix(s, "-") {
			return -1 << 40, nil
		}
		return 1 << 40, nil
	}
	if err != nil {
		return 0, ErrLiteral
	}
	return n, nil
}

// AppendTime writes d in the given unit as the shortest plain decimal: 27482,
// 27.482. It is what exporters write, and what ParseTime reads back.
func AppendTime(dst []byte, d, unit time.Duration) []byte {
	if d < 0 {
		dst = append(dst, '-')
		d = -d
	}
	dst = strconv.AppendInt(dst, int64(d/unit), 10)
	rest := d % unit
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for rest > 0 {
		rest *= 10
		dst = append(dst, byte('0'+rest/unit))
		rest %= unit
	}
	return dst
}

// ParseCount reads a count of tokens: a literal whose value is an integer from
// 0 to 2^53−1, however it is written (70, 7e1, 70.0, -0).
func ParseCount(lit []byte) (int64, error) {
	if n, ok := plainCount(lit); ok {
		return n, nil
	}
	const limit = 1<<53 - 1
	digits, err := wholeDigits(lit, 16)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > limit {
		return 0, ErrRange
	}
	return n, nil
}

// wholeDigits gives the plain digits, at most so many, of a literal whose value
// is a whole number and not below 0.
func wholeDigits(lit []byte, most int) (string, error) {
	digits, scale, neg, err := splitDecimal(lit)
	switch {
	case err != nil:
		return "", err
	case digits == "":
		return "0", nil
	case scale < 0:
		return "", ErrInexact
	case neg || len(digits)+scale > most:
		return "", ErrRange
	}
	return digits + strings.Repeat("0", scale), nil
}

func plainCount(lit []byte) (int64, bool) {
	if len(lit) == 0 || len(lit) > 15 || lit[0] == '0' && len(lit) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range lit {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// ParseID reads a block id: an integer from 0 to 2^64−1, however it is written.
func ParseID(lit []byte) (uint64, error) {
	if n, err := strconv.ParseUint(string(lit), 10, 64); err == nil {
		return n, nil
	}
	digits, err := wholeDigits(lit, 20)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, ErrRange
	}
	return n, nil
}

// DecodeString decodes a JSON string literal. faithful is false where it holds
// a lone surrogate, which a Go string cannot: it becomes U+FFFD.
func DecodeString(raw []byte) (s string, faithful bool) {
	return decodeString(raw, utf8.RuneError)
}

// decodeKey is DecodeString for keys, which have to stay apart: a lone
// surrogate becomes the three bytes that UTF-8 would give it if it were
// allowed, and AppendString turns these back into its escape.
func decodeKey(raw []byte) string {
	switch string(raw) { // the usual ones cost no allocation
	case `"timestamp"`:
		return "timestamp"
	case `"input_length"`:
		return "input_length"
	case `"output_length"`:
		return "output_length"
	case `"hash_ids"`:
		return "hash_ids"
	case `"session_id"`:
		return "session_id"
	case `"delay"`:
		return "delay"
	}
	s, _ := decodeString(raw, -1)
	return s
}

// decodeString replaces a lone surrogate by lone, or by its own three bytes.
func decodeString(raw []byte, lone rune) (s string, faithful bool) {
	if len(raw) < 2 {
		return "", false
	}
	body := raw[1 : len(raw)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body), true
	}
	faithful = true
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			out = append(out, body[i])
			continue
		}
		i++
		if body[i] != 'u' {
			out = append(out, unescape(body[i]))
			continue
		}
		r := hex4(body[i+1:])
		i += 4
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+6 < len(body) && body[i+1] == '\\' && body[i+2] == 'u' {
				low = hex4(body[i+3:])
			}
			if dec := utf16.DecodeRune(r, low); dec != utf8.RuneError {
				r, i = dec, i+6
			} else if faithful = false; lone >= 0 {
				r = lone
			} else {
				out = append(out, 0xed, 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
				continue
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out), faithful
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return -1
	}
	return rune(n)
}

const hexDigits = "0123456789abcdef"

// AppendString writes s as a JSON string, escaping only what must be. s has to
// be valid UTF-8, or a key as ParseObject gives it.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0xed && i+2 < len(s) && s[i+1] >= 0xa0:
			r := 0xd000 | uint16(s[i+1]&0x3f)<<6 | uint16(s[i+2]&0x3f)
			dst = append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			i += 2
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
