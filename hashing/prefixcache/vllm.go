package prefixcache

import "fmt"

// none ends the lists of a VLLMPool.
const none = int32(-1)

// VLLMPool is the KV-cache block pool of a real vLLM engine: a fixed number of
// blocks, a queue of the free ones from whose front new blocks are taken, and
// an index from block hash to block. A free block keeps its content and its
// hash until it is taken for something else, so the queue's order is the order
// of eviction.
//
// Its rules, as observed on vLLM 0.32: a hit takes its block out of the free
// queue; a finished request gives its blocks back tail first, those with a hash
// to the back of the queue, those without to its front; the same hash may sit
// in several blocks, and look-ups find the one that got it first.
//
// Blocks are counted by reference, so running requests share them. Every
// operation is O(1) per block. A VLLMPool is for one goroutine.
type VLLMPool struct {
	blocks []poolBlock
	free   int
	front  int32 // next to be taken; none where all blocks are in use
	back   int32
	index  map[uint64]int32 // hash → the first block that got it

	// OnStore and OnRemove, where set, are told each hash that enters or leaves
	// a block, in the order of the engine's BlockStored and BlockRemoved events.
	OnStore  func(hash uint64)
	OnRemove func(hash uint64)
}

// poolBlock is one block: its references, its place in the free queue, and its
// place in the ring of blocks with the same hash.
type poolBlock struct {
	hash       uint64
	refs       int32
	hashed     bool
	prev, next int32 // free queue
	older      int32 // ring of copies: the first one's older is the last one
	newer      int32
}

// NewVLLMPool makes a pool of n usable blocks, all free and empty. (A vLLM
// server keeps one block of its num_gpu_blocks for itself: the null block.)
func NewVLLMPool(n int) (*VLLMPool, error) {
	if n < 1 || n > 1<<30 {
		return nil, fmt.Errorf("make block pool: found %d blocks, expected 1 to %d", n, 1<<30)
	}
	p := &VLLMPool{blocks: make([]poolBlock, n), index: make(map[uint64]int32, n)}
	p.Reset()
	return p, nil
}

// Reset empties every block and frees it, in the order of their numbers.
func (p *VLLMPool) Reset() {
	clear(p.index)
	last := int32(len(p.blocks) - 1)
	for i := range p.blocks {
		p.blocks[i] = poolBlock{prev: int32(i) - 1, next: int32(i) + 1}
	}
	p.blocks[last].next = none
	p.front, p.back, p.free = 0, last, len(p.blocks)
}

// Len is the number of blocks, free and in use.
func (p *VLLMPool) Len() int { return len(p.blocks) }

// Free is the number of blocks that no request holds, with content or without.
func (p *VLLMPool) Free() int { return p.free }

// Lookup appends to dst the blocks that hold the leading hashes, up to the
// first that is in none. It changes nothing; Touch takes them.
func (p *VLLMPool) Lookup(dst []int32, hashes []uint64) []int32 {
	for _, h := range hashes {
		b, ok := p.index[h]
		if !ok {
			break
		}
		dst = append(dst, b)
	}
	return dst
}

// Idle counts those of the blocks that are free: what a Touch of them takes
// from the free queue.
func (p *VLLMPool) Idle(blocks []int32) int {
	n := 0
	for _, b := range blocks {
		if p.blocks[b].refs == 0 {
			n++
		}
	}
	return n
}

// Touch takes one reference to each of the blocks.
func (p *VLLMPool) Touch(blocks []int32) {
	for _, b := range blocks {
		if p.blocks[b].refs == 0 {
			p.unlink(b)
		}
		p.blocks[b].refs++
	}
}

// Take appends to dst n blocks from the front of the free queue, evicting what
// they held. It takes none and says false where fewer are free.
func (p *VLLMPool) Take(dst []int32, n int) ([]int32, bool) {
	if n > p.free {
		return dst, false
	}
	for range n {
		b := p.front
		p.unlink(b)
		p.evict(b)
		p.blocks[b].refs = 1
		dst = append(dst, b)
	}
	return dst, true
}

// Commit gives a taken block its hash: from now on look-ups find it. A block
// that has a hash keeps it.
func (p *VLLMPool) Commit(block int32, hash uint64) {
	b := &p.blocks[block]
	if b.hashed {
		return
	}
	b.hash, b.hashed = hash, true
	first, ok := p.index[hash]
	if !ok {
		b.older, b.newer = block, block
		p.index[hash] = block
	} else {
		last := p.blocks[first].older
		b.older, b.newer = last, first
		p.blocks[last].newer, p.blocks[first].older = block, block
	}
	if p.OnStore != nil {
		p.OnStore(hash)
	}
}

// Release gives back one reference to each of a request's blocks, which are in
// the order of its tokens. Those that nobody holds any more become free, the
// last one first.
func (p *VLLMPool) Release(blocks []int32) {
	before := none // the front-most block given back so far that has no hash
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		p.blocks[b].refs--
		switch {
		case p.blocks[b].refs > 0:
		case p.blocks[b].hashed:
			p.linkAfter(p.back, b)
		default: // several keep their order, as a list put before the queue
			p.linkAfter(before, b)
			before = b
		}
	}
}

// unlink takes a block out of the free queue.
func (p *VLLMPool) unlink(block int32) {
	b := &p.blocks[block]
	if b.prev == none {
		p.front = b.next
	} else {
		p.blocks[b.prev].next = b.next
	}
	if b.next == none {
		p.back = b.prev
	} else {
		p.blocks[b.next].prev = b.prev
	}
	p.free--
}

// linkAfter puts a block into the free queue behind another, or at its front.
func (p *VLLMPool) linkAfter(prev, block int32) {
	next := p.front
	if prev != none {
		next = p.blocks[prev].next
		p.blocks[prev].next = block
	} else {
		p.front = block
	}
	if next != none {
		p.blocks[next].prev = block
	} else {
		p.back = block
	}
	p.blocks[block].prev, p.blocks[block].next = prev, next
	p.free++
}

// evict takes a block's hash away.
func (p *VLLMPool) evict(block int32) {
	b := &p.blocks[block]
	if !b.hashed {
		return
	}
	b.hashed = false
	if b.newer == block {
		delete(p.index, b.hash)
	} else {
		p.blocks[b.older].newer, p.blocks[b.newer].older = b.newer, b.older
		if p.index[b.hash] == block {
			p.index[b.hash] = b.newer
		}
	}
	if p.OnRemove != nil {
		p.OnRemove(b.hash)
	}
}
