package simserver

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrace/openai"
)

// The formula of docs/simserver.md, by hand.
func TestStepCost(t *testing.T) {
	c := Config{PrefillTokensPerSecond: 25_000, DecodeStep: 8 * time.Millisecond, BatchSlowdown: 0.005}
	for _, x := range []struct {
		prefill, decoding int
		want              time.Duration
	}{
		{0, 1, 8 * time.Millisecond},
		{0, 0, 7960 * time.Microsecond},
		{0, 256, 18200 * time.Microsecond},
		{25_000, 1, 1008 * time.Millisecond},
		{8192, 0, 327_680*time.Microsecond + 7960*time.Microsecond},
	} {
		if got := c.stepCost(x.prefill, x.decoding).Round(time.Microsecond); got != x.want {
			t.Errorf("%d prefill tokens, %d decoding: %v, want %v", x.prefill, x.decoding, got, x.want)
		}
	}
}

func TestInstant(t *testing.T) {
	for _, x := range []struct {
		cfg  Config
		want bool
	}{
		{Config{}, true},
		{Config{PrefillTokensPerSecond: math.Inf(1)}, true},
		{Config{PrefillTokensPerSecond: 1}, false},
		{Config{DecodeStep: 1}, false},
		{DefaultConfig(), false},
	} {
		if got := x.cfg.instant(); got != x.want {
			t.Errorf("%+v: instant %v, want %v", x.cfg, got, x.want)
		}
	}
	c := Config{PrefillTokensPerSecond: math.Inf(1)}
	if got := c.stepCost(1e6, 100); got != 0 {
		t.Errorf("an instant step takes %v", got)
	}
}

// The defaults are valid, and what a zero Config becomes has no zero count.
func TestDefaults(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.CacheBlocks*c.BlockSize != 393_216 || c.MaxModelLen != 131_072 || c.MaxBatch != 256 || c.MaxBatchTokens != 8192 {
		t.Errorf("the defaults are %+v", c)
	}
	small := Config{CacheBlocks: 10}
	small.fill()
	if small.MaxModelLen != 160 {
		t.Errorf("a cache of 10 blocks has a context of %d, want 160", small.MaxModelLen)
	}
}

// The waiting line is a list with two ends, whatever is done to it.
func TestQueueLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var q queue
		var want []*sequence
		for range rapid.IntRange(0, 300).Draw(rt, "steps") {
			switch op := rapid.IntRange(0, 3).Draw(rt, "what"); {
			case op == 0:
				s := &sequence{}
				q.pushFront(s)
				want = append([]*sequence{s}, want...)
			case op == 1 && len(want) > 0:
				if q.front() != want[0] {
					rt.Fatal("the front is another one")
				}
				q.popFront()
				want = want[1:]
			default:
				s := &sequence{}
				q.pushBack(s)
				want = append(want, s)
			}
			if q.len() != len(want) {
				rt.Fatalf("length %d, want %d", q.len(), len(want))
			}
		}
		for _, s := range want {
			if q.front() != s {
				rt.Fatal("out of order")
			}
			q.popFront()
		}
	})
}

// A long line that only moves on does not grow.
func TestQueueForgets(t *testing.T) {
	var q queue
	for range 100_000 {
		q.pushBack(&sequence{})
		q.pushBack(&sequence{})
		q.popFront()
		if q.len() > 5000 {
			for q.len() > 10 {
				q.popFront()
			}
		}
	}
	if cap(q.items) > 40_000 {
		t.Errorf("a line of %d holds memory for %d", q.len(), cap(q.items))
	}
}

// A value counts in the first bucket whose bound it does not pass.
func TestHistogram(t *testing.T) {
	h := newHistogram([]float64{1, 2, 5})
	for _, v := range []float64{0, 1, 1.5, 2, 5, 5.1, 100} {
		h.observe(v)
	}
	want := []uint64{2, 2, 1, 2}
	for i, n := range want {
		if h.counts[i] != n {
			t.Errorf("bucket %d has %d, want %d", i, h.counts[i], n)
		}
	}
	if h.count != 7 || h.sum != 114.6 {
		t.Errorf("count %d, sum %v; want 7, 114.6", h.count, h.sum)
	}
}

func TestResponseIDs(t *testing.T) {
	s, client := started(t, Config{})
	seen := map[string]bool{}
	for range 20 {
		_, body := post(t, client, s.URL()+"/v1/completions", `{"prompt":"x","max_tokens":1}`)
		id := body[:len(`{"id":"cmpl-0123456789abcdef"`)]
		if seen[id] {
			t.Fatalf("%s came twice", id)
		}
		seen[id] = true
	}
}

// The text of a stream is that of the whole answer, cut at any stop string.
func TestTextInPieces(t *testing.T) {
	s := stepped(t, Config{})
	rapid.Check(t, func(rt *rapid.T) {
		g := &generation{api: rapid.SampledFrom([]openai.API{openai.Completions, openai.Chat}).Draw(rt, "api")}
		q := &sequence{seed: rapid.Uint64().Draw(rt, "seed"), target: rapid.IntRange(1, 30).Draw(rt, "tokens")}
		q.textLen = rapid.IntRange(-1, 200).Draw(rt, "shown bytes")
		whole, _ := s.appendText(nil, g, q, textPart{0, q.target, 0})
		var pieces []byte
		at := 0
		for from := 0; from < q.target; {
			to := rapid.IntRange(from+1, q.target).Draw(rt, "to")
			pieces, at = s.appendText(pieces, g, q, textPart{from, to, at})
			from = to
		}
		if string(pieces) != string(whole) || (q.textLen >= 0 && len(whole) > q.textLen) {
			rt.Fatalf("pieces %q, whole %q, shown %d", pieces, whole, q.textLen)
		}
	})
}
