package prompt

import (
	"errors"
	"fmt"
)

// PredictorConfig describes the server that hits are predicted for.
type PredictorConfig struct {
	// Maker renders the prompts; Text says that it renders them as text.
	Maker *Maker
	Text  bool
	// BlockSize is the length of the server's prefix blocks in tokens.
	BlockSize int
	// Head is how many tokens the server's template puts before every prompt,
	// Overhead how many it adds in all. Both are 0 for prompts of token ids.
	Head, Overhead int
}

// Predictor tells which tokens of each prompt a server's prefix cache can have
// from the prompts sent before it, if it never evicts any.
//
// It remembers a hash of each distinct block in its place, whatever the
// server's block size: about 8 bytes each, 12 for partial ones. It is not safe
// for concurrent use.
type Predictor struct {
	cfg     PredictorConfig
	speller *speller
	// whole holds the places of whole blocks; partial those of all other
	// segments, with the most tokens seen there.
	whole, partial hashMap
	// heads holds what stands in the places where a first token that happens
	// to be another segment's too would fill up a block of the server.
	heads hashMap
	// ends holds where prompts ended, which is to be known where the template
	// goes on behind them.
	ends hashMap
	// starts holds the place where the prompts of each adapter start; those of
	// the model itself start at 0.
	starts map[string]uint64

	hits, tokens int64
}

// NewPredictor makes a Predictor that has seen no prompt.
func NewPredictor(cfg PredictorConfig) (*Predictor, error) {
	switch {
	case cfg.Maker == nil:
		return nil, errors.New("predict hits: no maker of prompts")
	case cfg.BlockSize <= 0:
		return nil, fmt.Errorf("predict hits: server block size %d, want 1 or more", cfg.BlockSize)
	case cfg.Head < 0 || cfg.Overhead < cfg.Head:
		return nil, fmt.Errorf("predict hits: head of %d and overhead of %d tokens, want 0 <= head <= overhead",
			cfg.Head, cfg.Overhead)
	}
	p := &Predictor{
		cfg: cfg, speller: &cfg.Maker.tokens, partial: hashMap{lengths: true}, starts: map[string]uint64{"": 0},
	}
	if cfg.Text {
		p.speller = &cfg.Maker.words
	}
	return p, nil
}

// Add returns how many tokens of the prompt the cache can hold, and puts the
// prompt in. Prompts come in the order of sending, cut as they are sent.
//
// With the server's block size B, head h, tokens s that the prompt shares with
// the start of any earlier one, and length n with the overhead, the hits are
// B · min(⌊(h+s)/B⌋, ⌊(n−1)/B⌋): whole blocks, and never the last token, which
// must be computed to get an answer. A prompt that was sent before as a whole
// shares the template behind it too.
func (p *Predictor) Add(prompt Prompt) int64 { return p.AddFor("", prompt) }

// AddFor does as Add for a prompt to an adapter, or another model of the same
// server, by its name: it shares blocks with prompts to the same one only. The
// template's head too is new to an adapter at its first prompt. The empty name
// is the model that Add is for.
func (p *Predictor) AddFor(adapter string, prompt Prompt) int64 {
	start, known := p.starts[adapter]
	if !known {
		start = mix(uint64(len(p.starts)) * golden)
		p.starts[adapter] = start
	}
	shared, before := p.walk(start, prompt)
	if !known {
		shared = -p.cfg.Head // whatever the walk found by chance
	}
	if tail := p.cfg.Overhead - p.cfg.Head; tail > 0 {
		end := p.end(prompt, before)
		if _, again := p.ends.get(end); again {
			shared = prompt.tokens + tail
		}
		p.ends.put(end, 0)
	}
	n := prompt.tokens + p.cfg.Overhead
	size := p.cfg.BlockSize
	hits := int64(size) * int64(max(0, min((p.cfg.Head+shared)/size, (n-1)/size)))
	p.hits += hits
	p.tokens += int64(n)
	return hits
}

// Totals returns the sums over all prompts so far: predicted hit tokens, and
// tokens as the server counts them.
func (p *Predictor) Totals() (hits, tokens int64) { return p.hits, p.tokens }

// walk follows the prompt from a start and from place to place as far as
// earlier prompts go, which is what it returns in tokens, marks the places that
// are new, and returns the place of the last segment, the start where there is
// none.
func (p *Predictor) walk(start uint64, prompt Prompt) (shared int, last uint64) {
	known := true // all before this segment was sent before
	place, last, offset := start, start, 0
	for _, seg := range prompt.segs {
		here := mix(place ^ mix(seg.Key+uint64(seg.Kind+1)*golden))
		if known {
			seen := p.seen(here, seg)
			shared += seen
			if known = seen == int(seg.N); seen == 0 {
				shared += p.collide(place, offset, seg)
			}
		}
		if !known {
			p.mark(here, seg)
		}
		p.markHead(place, offset, seg)
		last, place = place, mix(here+uint64(seg.N)*golden)
		offset += int(seg.N)
	}
	return shared, last
}

// end is where the prompt ends, whose last segment stands at place. Segments
// shorter than a head are known by their tokens, which others may have too.
func (p *Predictor) end(prompt Prompt, place uint64) uint64 {
	if len(prompt.segs) == 0 {
		return place
	}
	seg := prompt.segs[len(prompt.segs)-1]
	if int(seg.N) >= p.speller.head {
		return mix(mix(place^mix(seg.Key+uint64(seg.Kind+1)*golden)) + uint64(seg.N)*golden)
	}
	var buf [maxHead]uint32
	tokens := buf[:seg.N]
	p.speller.spell(tokens, seg.Kind, seg.Key, 0)
	hash := ^place
	for _, t := range tokens {
		hash = mix(hash + uint64(t+1)*golden)
	}
	return hash
}

// seen is how many of the segment's tokens an earlier prompt had in this place.
func (p *Predictor) seen(here uint64, seg Segment) int {
	if _, found := p.whole.get(here); found {
		return int(seg.N)
	}
	n, _ := p.partial.get(here)
	return int(min(n, seg.N))
}

// mark stores that the segment stands here, of which less was seen so far.
func (p *Predictor) mark(here uint64, seg Segment) {
	if seg.Kind == Block && int(seg.N) == p.cfg.Maker.blockSize {
		p.whole.put(here, 0)
		return
	}
	p.partial.put(here, seg.N)
}

// collide is how many tokens a segment that is new in its place shares with
// others in that place, for chance: their heads differ, but maybe not from the
// first token on. It counts only up to the last that completes a block of the
// server; no other matters.
func (p *Predictor) collide(place uint64, offset int, seg Segment) int {
	shared := 0
	p.eachHead(place, offset, seg, func(hash uint64, n int) {
		if _, found := p.heads.get(hash); found {
			shared = n
		}
	})
	return shared
}

// markHead stores the starts of the segment's head that collide looks for.
func (p *Predictor) markHead(place uint64, offset int, seg Segment) {
	p.eachHead(place, offset, seg, func(hash uint64, _ int) { p.heads.put(hash, 0) })
}

// eachHead calls f for each n smaller than a head whose n tokens, from the
// offset on, end at the end of a block of the server.
func (p *Predictor) eachHead(place uint64, offset int, seg Segment, f func(hash uint64, n int)) {
	first := p.cfg.BlockSize - (p.cfg.Head+offset)%p.cfg.BlockSize
	last := min(p.speller.head-1, int(seg.N))
	if first > last {
		return
	}
	var buf [maxHead]uint32
	head := buf[:last]
	p.speller.spell(head, seg.Kind, seg.Key, 0)
	hash := ^place
	for n := 1; n <= last; n++ {
		hash = mix(hash + uint64(head[n-1]+1)*golden)
		if n >= first && (n-first)%p.cfg.BlockSize == 0 {
			f(hash, n)
		}
	}
}
