package prompt

import (
	"fmt"
	"testing"

	"retrace/record"
)

// FuzzParseVocab: what is taken makes a Maker, and is what the text says.
func FuzzParseVocab(f *testing.F) {
	for _, s := range []string{"1000:31999", "0:1", "5:5", "", ":", "1:2:3", "+1:2", "0x1:9", "999998:999999", "1:4294967297"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lo, hi, err := ParseVocab(s)
		if err != nil {
			return
		}
		if _, err := New(Config{VocabLo: lo, VocabHi: hi}); err != nil {
			t.Errorf("%q is taken, but %v", s, err)
		}
		if again, _, err := ParseVocab(fmt.Sprintf("%d:%d", lo, hi)); again != lo || err != nil {
			t.Errorf("%q reads as %d:%d, which reads as %d, %v", s, lo, hi, again, err)
		}
	})
}

// FuzzPlan: no request breaks the planner, and a plan has the request's tokens.
func FuzzPlan(f *testing.F) {
	f.Add(int64(20), int64(5), []byte{1, 2}, uint8(16), "s", "mixed")
	f.Add(int64(-1), int64(-1), []byte{}, uint8(0), "", "")
	f.Add(int64(1<<62), int64(1<<62), []byte{9}, uint8(1), "s", "increment")
	f.Fuzz(func(t *testing.T, input, output int64, ids []byte, blockSize uint8, session, turns string) {
		p := NewPlanner(record.Header{BlockSize: int(blockSize), Turns: turns})
		r := inSession(request(0, input, output), session)
		for _, id := range ids {
			r.Blocks = append(r.Blocks, uint64(id)<<56|uint64(id))
		}
		first, err := p.Plan(r)
		if err != nil {
			return
		}
		if input >= 0 && int64(first.Tokens()) != input {
			t.Errorf("%d tokens planned, want %d", first.Tokens(), input)
		}
		r.Row++
		second, err := p.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		want := first.Tokens()
		if session != "" && (turns == "increment" || turns == "mixed") {
			want += int(clamp(output)) + first.Tokens()
		}
		if second.Tokens() != want {
			t.Errorf("second turn of %d tokens, want %d", second.Tokens(), want)
		}
	})
}
