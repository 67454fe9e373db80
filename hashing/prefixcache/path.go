package prefixcache

import "math/bits"

// path holds the predecessor of every block. That of block n is nearly always
// n-1, the block before it in the prompt that brought both; a bit marks the
// others, whose predecessors are in a list of their own.
type path struct {
	n      uint32
	jumps  list[uint64] // a bit for each block
	before list[uint32] // the number of bits set in all earlier words
	to     list[uint32] // the predecessor of each block whose bit is set
}

// add appends the next block.
func (p *path) add(parent uint32) {
	if p.n%64 == 0 {
		p.jumps.add(0)
		p.before.add(uint32(p.to.n))
	}
	if parent != p.n-1 { // for block 0 that is root
		*p.jumps.ref(int(p.n / 64)) |= 1 << (p.n % 64)
		p.to.add(parent)
	}
	p.n++
}

// extend appends k blocks, each of which follows the one before it.
func (p *path) extend(k int) {
	end := p.n + uint32(k)
	for p.jumps.n*64 < int(end) {
		p.jumps.add(0)
		p.before.add(uint32(p.to.n))
	}
	p.n = end
}

// parent is the predecessor of block n, root where it is the first of its prompt.
func (p *path) parent(n uint32) uint32 {
	word := p.jumps.at(int(n / 64))
	if word>>(n%64)&1 == 0 {
		return n - 1
	}
	i := int(p.before.at(int(n/64))) + bits.OnesCount64(word&(1<<(n%64)-1))
	return p.to.at(i)
}

// follows says that the predecessor of block n is n-1.
func (p *path) follows(n uint32) bool { return p.jumps.at(int(n/64))>>(n%64)&1 == 0 }

// following counts how many of the k blocks from first on follow the one before
// them, up to the first that does not.
func (p *path) following(first uint32, k int) int {
	end := first + uint32(k)
	for at := first; at < end; at = at&^63 + 64 {
		if jumps := p.jumps.at(int(at/64)) >> (at % 64); jumps != 0 {
			return min(k, int(at-first)+bits.TrailingZeros64(jumps))
		}
	}
	return k
}

// walk fills dst with the path that ends in block last.
func (p *path) walk(dst []uint32, last uint32) {
	for i := len(dst) - 1; i >= 0; {
		// Down to the nearest jump, or to the start of its word.
		jumps := p.jumps.at(int(last/64)) & (2<<(last%64) - 1)
		first := last &^ 63
		if jumps != 0 {
			first |= uint32(bits.Len64(jumps)) - 1
		}
		for at := last; i >= 0; at-- {
			dst[i] = at
			i--
			if at == first {
				break
			}
		}
		if i >= 0 {
			last = p.parent(first)
		}
	}
}
