package prefixcache

import (
	"cmp"
	"maps"
	"slices"
)

// Popularity is how many requests use each block of a sequence.
type Popularity struct {
	s    *Sequence
	uses []uint32 // by block number
	// lacks are the blocks that prompts end in without filling them, where
	// such a prompt was there before.
	lacks map[uint32]lack
}

// lack is the tokens that a partial block has too few.
type lack struct {
	once int64 // the last request's
	all  int64 // of all requests that hit it together
}

// Popularity counts the uses of every block, warm-up included. The sequence
// must be frozen.
func (s *Sequence) Popularity() *Popularity {
	p := &Popularity{s: s, uses: make([]uint32, s.unique), lacks: map[uint32]lack{}}
	size := int64(s.blockSize)
	var start, known uint32
	for i := range s.ends.n {
		end := s.ends.at(i)
		if n := int64(end - start); n > 0 {
			b := s.last.at(i)
			p.uses[b]++
			if missing := n*size - int64(s.input.at(i)); missing > 0 && b < known {
				missing = min(missing, size)
				p.lacks[b] = lack{once: missing, all: p.lacks[b].all + missing}
			}
			known = max(known, b+1)
		}
		start = end
	}
	// A block is used where any of its successors is, and has a lower number.
	for b := uint32(s.unique); b > 0; b-- {
		if parent := s.chain.path.parent(b - 1); parent < uint32(s.unique) {
			p.uses[parent] += p.uses[b-1]
		}
	}
	return p
}

// Frequency is how many blocks are used by so many requests.
type Frequency struct{ Uses, Blocks int64 }

// Frequencies counts the blocks by their uses, the most used ones first.
func (p *Popularity) Frequencies() []Frequency {
	counts := map[uint32]int64{}
	once := int64(0)
	for _, u := range p.uses {
		if u == 1 {
			once++ // nearly all
		} else {
			counts[u]++
		}
	}
	if once > 0 {
		counts[1] = once
	}
	list := make([]Frequency, 0, len(counts))
	for _, u := range slices.Backward(slices.Sorted(maps.Keys(counts))) {
		list = append(list, Frequency{int64(u), counts[u]})
	}
	return list
}

// Prefix is a beginning that several prompts share: the longest one that just
// these prompts have in common.
type Prefix struct {
	// Blocks and Tokens are its length.
	Blocks, Tokens int64
	// Requests is how many prompts begin with it.
	Requests int64
	// SavedTokens are the hit tokens of an endless cache in the part of the
	// prefix that goes beyond the next shorter Prefix, so that those of all
	// prefixes add up to Ideal's HitTokens.
	SavedTokens int64
	// First is the index of the first request that begins with it.
	First int
}

// Prefixes are the n prefixes that save most tokens and the n that most
// requests share, the first ones first.
func (p *Popularity) Prefixes(n int) (bySaved, byRequests []Prefix) {
	saved := ranking{n: n, before: func(a, b shared) int {
		return cmp.Or(cmp.Compare(b.saved, a.saved), cmp.Compare(b.uses, a.uses), cmp.Compare(a.block, b.block))
	}}
	uses := ranking{n: n, before: func(a, b shared) int {
		return cmp.Or(cmp.Compare(b.uses, a.uses), cmp.Compare(b.saved, a.saved), cmp.Compare(a.block, b.block))
	}}
	p.eachShared(func(x shared) {
		saved.add(x)
		uses.add(x)
	})
	return p.describe(saved.best()), p.describe(uses.best())
}

// shared is a Prefix by its last block.
type shared struct {
	block uint32
	uses  uint32
	saved int64
}

// eachShared calls f for every prefix that two or more prompts share and that
// is the longest one which just these prompts do: no successor of its last
// block has as many uses.
func (p *Popularity) eachShared(f func(shared)) {
	parent := p.s.chain.path.parent
	longer := make([]bool, len(p.uses))
	for b, u := range p.uses {
		if at := parent(uint32(b)); u > 1 && int(at) < len(p.uses) && p.uses[at] == u {
			longer[at] = true
		}
	}
	for b, u := range p.uses {
		if u < 2 || longer[b] {
			continue
		}
		x := shared{block: uint32(b), uses: u}
		length := int64(0)
		for at := uint32(b); int(at) < len(p.uses) && p.uses[at] == u; at = parent(at) {
			length++
		}
		x.saved = length*int64(p.s.blockSize)*int64(u-1) - p.lacks[x.block].all
		f(x)
	}
}

// describe finds the lengths and the first requests of prefixes.
func (p *Popularity) describe(list []shared) []Prefix {
	prefixes := make([]Prefix, len(list))
	for i, x := range list {
		blocks := int64(0)
		for at := x.block; int(at) < len(p.uses); at = p.s.chain.path.parent(at) {
			blocks++
		}
		prefixes[i] = Prefix{
			Blocks: blocks, Tokens: blocks*int64(p.s.blockSize) - p.lacks[x.block].once,
			Requests: int64(x.uses), SavedTokens: x.saved, First: -1,
		}
	}
	left, index := len(list), 0
	p.s.each(0, func(r *request) {
		for i := range prefixes {
			x := &prefixes[i]
			if left > 0 && x.First < 0 && x.Blocks <= int64(len(r.blocks)) && r.blocks[x.Blocks-1] == list[i].block {
				x.First = index
				left--
			}
		}
		index++
	})
	return prefixes
}

// ranking keeps the best n of many.
type ranking struct {
	n      int
	before func(a, b shared) int
	list   []shared
}

func (r *ranking) add(x shared) {
	const slack = 64
	r.list = append(r.list, x)
	if len(r.list) >= 2*r.n+slack {
		r.best()
	}
}

// best sorts the best ones and forgets the others.
func (r *ranking) best() []shared {
	slices.SortFunc(r.list, r.before)
	r.list = r.list[:min(r.n, len(r.list))]
	return r.list
}
