package formats

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDigits8(t *testing.T) {
	for text, want := range map[string][2]uint64{
		"12345678": {12345678, 8}, "1234567,": {1234567, 7}, "0, 1, 2,": {0, 1}, "46]}\n46]": {46, 2},
		",1234567": {0, 0}, "12:34567": {12, 2}, "12/34567": {12, 2}, "9\xff\xff999\xff9": {9, 1}, "99999999": {99999999, 8},
	} {
		if v, n := digits8(binary.LittleEndian.Uint64([]byte(text))); v != want[0] && n != 0 || n != int(want[1]) {
			t.Errorf("%q: %d of %d digits, want %d of %d", text, v, n, want[0], want[1])
		}
	}
}

// Lists of runs, of whatever spelling, come out as they were written.
func TestScanLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []uint64
		var text []string
		for range rapid.IntRange(1, 5).Draw(t, "runs") {
			start := rapid.OneOf(
				rapid.Uint64Range(0, 20), rapid.Uint64Range(80, 120), rapid.Uint64Range(99_900, 100_020),
				rapid.Uint64Range(9_999_900, 10_000_010), rapid.Uint64Range(0, 1<<53-100),
			).Draw(t, "start")
			for k := range rapid.Uint64Range(1, 40).Draw(t, "length") {
				want = append(want, start+k)
				text = append(text, strconv.FormatUint(start+k, 10))
			}
		}
		comma := rapid.SampledFrom([]string{",", ", "}).Draw(t, "comma")
		end := rapid.SampledFrom([]string{"]}", "] }", `],"timestamp":7}`}).Draw(t, "end")
		line := `{"timestamp":1,"input_length":5,"hash_ids":[` + strings.Join(text, comma) + end
		if end == `],"timestamp":7}` {
			line = strings.Replace(line, `"timestamp":1,`, "", 1)
		}
		s, row := newMooncakeScanner(time.Millisecond), plainRow{}
		if ok := s.scan([]byte(line), &row); ok != (end != "] }") {
			t.Fatalf("%s: taken: %v", line, ok)
		} else if ok && fmt.Sprint(row.blocks) != fmt.Sprint(want) {
			t.Fatalf("%s: read as %v", line, row.blocks)
		}
	})
}
