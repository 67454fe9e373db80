package formats

import (
	"errors"
	"math/big"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTime(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		lit   string
		unit  time.Duration
		want  time.Duration
		exact bool
		err   error
	}{
		{"27482", ms, 27482 * ms, true, nil},
		{"27.482", s, 27482 * ms, true, nil},
		{"61.11400000001", s, 61114000000, false, nil}, // 61.114 s and 0.01 ns
		{"5.0", s, 5 * s, true, nil},
		{"1e3", ms, s, true, nil},
		{"1E+2", s, 100 * s, true, nil},
		{"12e-7", s, 1200, true, nil},
		{"-0", ms, 0, true, nil},
		{"-0.000", ms, 0, true, nil},
		{"0e999999999999", ms, 0, true, nil},
		{"0.5", 1, 0, false, nil}, // half a nanosecond, to even
		{"1.5", 1, 2, false, nil}, // to even
		{"2.5", 1, 2, false, nil}, // to even
		{"9223372036854775807", 1, 1<<63 - 1, true, nil},
		{"9223372036854775808", 1, 0, false, ErrRange},
		{"9223372036.854775807", s, 1<<63 - 1, true, nil},
		{"-5", ms, 0, false, ErrRange},
		{"1e400", ms, 0, false, ErrRange},
		{"1e99999999999999999999", ms, 0, false, ErrRange},
		{"1e-99999999999999999999", ms, 0, false, ErrRange},
		{"inf", s, 0, false, ErrLiteral},
		{"NaN", s, 0, false, ErrLiteral},
		{"", s, 0, false, ErrLiteral},
		{"0x10", s, 0, false, ErrLiteral},
		{"1_000", s, 0, false, ErrLiteral},
		{"1e", s, 0, false, ErrLiteral},
		{".", s, 0, false, ErrLiteral},
	} {
		got, exact, err := ParseTime([]byte(c.lit), c.unit)
		if !errors.Is(err, c.err) || err == nil && (got != c.want || exact != c.exact) {
			t.Errorf("%s × %s: %d exact %v, %v; want %d exact %v, %v", c.lit, c.unit, got, exact, err, c.want, c.exact, c.err)
		}
	}
}

// ParseTime against math/big, which rounds nothing away.
func TestParseTimeExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second}).Draw(t, "unit")
		lit := rapid.StringMatching(`(0|[1-9][0-9]{0,9})(\.[0-9]{1,12})?(e-?[0-3])?`).Draw(t, "literal")
		r, ok := new(big.Rat).SetString(lit)
		if !ok {
			t.Fatalf("%s is no number", lit)
		}
		r.Mul(r, new(big.Rat).SetInt64(int64(unit)))
		got, exact, err := ParseTime([]byte(lit), unit)
		if r.Cmp(new(big.Rat).SetInt64(1<<62)) > 0 {
			return // near the range's end
		}
		if err != nil {
			t.Fatalf("%s: %v", lit, err)
		}
		off := new(big.Rat).Sub(r, new(big.Rat).SetInt64(int64(got)))
		if exact != (off.Sign() == 0) || off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
			t.Fatalf("%s × %s = %s, got %d exact %v", lit, unit, r.FloatString(3), got, exact)
		}
	})
}

// What AppendTime writes, ParseTime reads back exactly.
func TestAppendTime(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", 27482: "0.027482", 5000000: "5", 5500000: "5.5", -1500000: "-1.5"} {
		if got := string(AppendTime(nil, d, time.Millisecond)); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second}).Draw(t, "unit")
		d := time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "time"))
		got, exact, err := ParseTime(AppendTime(nil, d, unit), unit)
		if err != nil || !exact || got != d {
			t.Fatalf("%d became %d, %v", d, got, err)
		}
	})
}

func TestParseCount(t *testing.T) {
	for lit, want := range map[string]int64{"0": 0, "70": 70, "7e1": 70, "70.0": 70, "700e-1": 70, "-0": 0, "9007199254740991": 1<<53 - 1} {
		if got, err := ParseCount([]byte(lit)); err != nil || got != want {
			t.Errorf("%s: %d, %v", lit, got, err)
		}
	}
	for lit, want := range map[string]error{"-1": ErrRange, "1.5": ErrInexact, "9007199254740992": ErrRange, "1e400": ErrRange, "x": ErrLiteral, "": ErrLiteral} {
		if _, err := ParseCount([]byte(lit)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", lit, err, want)
		}
	}
}

func TestParseID(t *testing.T) {
	for lit, want := range map[string]uint64{"0": 0, "18446744073709551615": 1<<64 - 1, "1e3": 1000, "9007199254740993": 9007199254740993, "5.0": 5} {
		if got, err := ParseID([]byte(lit)); err != nil || got != want {
			t.Errorf("%s: %d, %v", lit, got, err)
		}
	}
	for _, lit := range []string{"-1", "18446744073709551616", "1e20", "0.5", `"7"`, "null"} {
		if _, err := ParseID([]byte(lit)); err == nil {
			t.Errorf("%s is taken", lit)
		}
	}
}

func TestStrings(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`: "a", `"\u0061\n\/"`: "a\n/", `"\ud83d\ude00"`: "😀", `"\ud800x"`: "\uFFFDx", `""`: "", `"\ude00\ud83d"`: "\uFFFD\uFFFD",
	} {
		got, faithful := DecodeString([]byte(raw))
		if got != want || faithful == (raw == `"\ud800x"` || raw == `"\ude00\ud83d"`) {
			t.Errorf("%s: %q, faithful %v", raw, got, faithful)
		}
	}
	for _, raw := range []string{`"\ud800"`, `"a\udfffb"`, `"\ud83d\ude00"`, `"퟿"`, `"\u0000\u001f\""`} {
		if got := string(AppendString(nil, decodeKey([]byte(raw)))); !EqualValue([]byte(got), []byte(raw)) {
			t.Errorf("key %s became %s", raw, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "string")
		if got, _ := DecodeString(AppendString(nil, s)); got != s {
			t.Fatalf("%s became %s", strconv.Quote(s), strconv.Quote(got))
		}
	})
}
