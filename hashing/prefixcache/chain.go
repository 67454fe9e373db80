package prefixcache

import "math/bits"

// root is the predecessor of a prompt's first block.
const root = ^uint32(0)

// chain numbers blocks by their identity (id and predecessors): equal blocks
// get equal numbers, new ones the next number from 0 on. It is a hash table
// with linear probing that holds only numbers; the keys are in lists beside
// it. A million requests of 8 new blocks take 136 MB.
type chain struct {
	slots   []uint32 // number + 1, 0 where empty
	ids     list[uint64]
	parents list[uint32]
}

// number gives the number of the block id after the block parent.
func (c *chain) number(parent uint32, id uint64) uint32 {
	if c.ids.n*5 >= len(c.slots)*4 {
		c.grow()
	}
	at := c.slot(parent, id)
	for c.slots[at] != 0 {
		n := c.slots[at] - 1
		if c.ids.at(int(n)) == id && c.parents.at(int(n)) == parent {
			return n
		}
		if at++; at == len(c.slots) {
			at = 0
		}
	}
	n := uint32(c.ids.n)
	c.ids.add(id)
	c.parents.add(parent)
	c.slots[at] = n + 1
	return n
}

// slot is where the search for a key starts.
func (c *chain) slot(parent uint32, id uint64) int {
	h := (id ^ uint64(parent)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	h ^= h >> 32
	h *= 0x94d049bb133111eb
	hi, _ := bits.Mul64(h, uint64(len(c.slots)))
	return int(hi)
}

// grow makes room for half as many blocks again.
func (c *chain) grow() {
	c.slots = make([]uint32, max(1024, len(c.slots)+len(c.slots)/2))
	for n := range c.ids.n {
		at := c.slot(c.parents.at(n), c.ids.at(n))
		for c.slots[at] != 0 {
			if at++; at == len(c.slots) {
				at = 0
			}
		}
		c.slots[at] = uint32(n) + 1
	}
}
