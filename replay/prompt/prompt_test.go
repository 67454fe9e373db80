package prompt

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestNewPromptDropsEmptySegments(t *testing.T) {
	p := NewPrompt(Segment{Key: 1, N: 0}, Segment{Key: 2, N: 3}, Segment{Key: 3, N: 0})
	if want := []Segment{{Key: 2, N: 3}}; !slices.Equal(p.Segments(), want) || p.Tokens() != 3 {
		t.Errorf("segments %v of %d tokens, want %v", p.Segments(), p.Tokens(), want)
	}
}

func TestSize(t *testing.T) {
	if segmentSize != unsafe.Sizeof(Segment{}) {
		t.Errorf("a segment takes %d bytes, not %d", unsafe.Sizeof(Segment{}), segmentSize)
	}
	if got := NewPrompt(Segment{N: 1}, Segment{N: 2}, Segment{}).Size(); got != 2*segmentSize {
		t.Errorf("two segments take %d bytes", got)
	}
}

func TestCutAndTruncate(t *testing.T) {
	p := NewPrompt(Segment{Key: 1, N: 4}, Segment{Key: 2, N: 4}, Segment{Key: 3, N: 2, Kind: Tail})
	for name, c := range map[string]struct {
		got  Prompt
		want []Segment
	}{
		"cut nothing":             {p.Cut(0), p.Segments()},
		"cut less than nothing":   {p.Cut(-5), p.Segments()},
		"cut one token":           {p.Cut(1), []Segment{{Key: 1, N: 4}, {Key: 2, N: 4}, {Key: 3, N: 1, Kind: Tail}}},
		"cut a segment":           {p.Cut(2), []Segment{{Key: 1, N: 4}, {Key: 2, N: 4}}},
		"cut into the one before": {p.Cut(5), []Segment{{Key: 1, N: 4}, {Key: 2, N: 1}}},
		"cut all":                 {p.Cut(10), nil},
		"cut more than all":       {p.Cut(11), nil},
		"truncate at 4":           {p.Truncate(4), []Segment{{Key: 1, N: 4}}},
		"truncate beyond the end": {p.Truncate(99), p.Segments()},
		"truncate at 0":           {p.Truncate(0), nil},
		"truncate before 0":       {p.Truncate(-1), nil},
	} {
		sum := 0
		for _, s := range c.want {
			sum += int(s.N)
		}
		if !slices.Equal(c.got.Segments(), c.want) || c.got.Tokens() != sum {
			t.Errorf("%s: %v of %d tokens, want %v of %d", name, c.got.Segments(), c.got.Tokens(), c.want, sum)
		}
	}
	if p.Tokens() != 10 || p.Segments()[2].N != 2 {
		t.Errorf("cutting copies changed the prompt: %v", p.Segments())
	}
}

// TestCutIsPrefix: the tokens of a cut prompt are the first tokens of the whole.
func TestCutIsPrefix(t *testing.T) {
	m := newMaker(t, Config{BlockSize: 512})
	rapid.Check(t, func(t *rapid.T) {
		p := NewPrompt(drawSegments(t, "segments")...)
		n := rapid.IntRange(0, p.Tokens()).Draw(t, "n")
		ids := m.AppendTokenIDs(nil, p)
		if got := m.AppendTokenIDs(nil, p.Cut(n)); !slices.Equal(got, ids[:len(ids)-n]) {
			t.Fatalf("cut by %d: %d tokens that are not the first %d", n, len(got), len(ids)-n)
		}
	})
}
