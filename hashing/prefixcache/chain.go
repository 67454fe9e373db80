package prefixcache

// root is the predecessor of a prompt's first block.
const root = ^uint32(0)

// chain numbers blocks by their identity (id and predecessors): equal blocks
// get equal numbers, new ones the next number from 0 on. A block's number
// stands for its whole path from the prompt's start.
//
// The blocks that one prompt brings follow each other, so the first successor
// of block n is nearly always n+1, which one look finds. The others are in a
// hash table that holds only numbers; the keys are beside it, the id in a list
// and the predecessor in path. Its parts grow one by one, so that growing
// leaves little behind.
type chain struct {
	parts [chainParts]chainPart
	ids   list[uint64]
	path  path
}

const (
	chainPartBits = 6
	chainParts    = 1 << chainPartBits
	chainSlots    = 256 // of a part at first
)

// chainPart is a part of the table, with linear probing.
type chainPart struct {
	slots []uint32 // number + 1, 0 where empty
	used  int
}

// numberAll writes the numbers of the blocks ids, which follow the block parent
// one after the other, to dst, which is as long, and gives the last.
func (c *chain) numberAll(dst []uint32, parent uint32, ids []uint64) uint32 {
	for len(ids) > 0 {
		fresh := uint32(c.ids.n)
		first := c.number(parent, ids[0])
		k := len(ids)
		if first == fresh { // and so are all that follow it
			c.ids.addAll(ids[1:])
			c.path.extend(k - 1)
		} else {
			k = 1 + c.run(first+1, ids[1:])
		}
		for i := range dst[:k] {
			dst[i] = first + uint32(i)
		}
		parent, dst, ids = first+uint32(k-1), dst[k:], ids[k:]
	}
	return parent
}

// run counts the leading ids that are those of the blocks from first on, each
// of which follows the one before it.
func (c *chain) run(first uint32, ids []uint64) int {
	k := 0
	for k < len(ids) && int(first)+k < c.ids.n {
		page := c.ids.page(int(first) + k)
		rest := ids[k:]
		rest = rest[:min(len(rest), len(page))]
		page = page[:len(rest)]
		same := 0
		for same < len(rest) && page[same] == rest[same] {
			same++
		}
		k += same
		if same < len(rest) {
			break
		}
	}
	return c.path.following(first, k)
}

// number gives the number of the block id after the block parent.
func (c *chain) number(parent uint32, id uint64) uint32 {
	n := uint32(c.ids.n)
	next := parent + 1 // 0 after root, which is no successor of it
	if next < n && parent < n && c.ids.at(int(next)) == id && c.path.follows(next) {
		return next
	}
	if next == n && parent < n { // the newest block has no successors yet
		c.add(parent, id)
		return n
	}
	h := chainHash(parent, id)
	p := &c.parts[h>>(64-chainPartBits)]
	if p.used*2 >= len(p.slots) {
		c.grow(p)
	}
	at := p.slot(h)
	for ; p.slots[at] != 0; at = p.after(at) {
		known := p.slots[at] - 1
		if c.ids.at(int(known)) == id && c.path.parent(known) == parent {
			return known
		}
	}
	c.add(parent, id)
	p.slots[at] = n + 1
	p.used++
	return n
}

// add appends the next block.
func (c *chain) add(parent uint32, id uint64) {
	c.ids.add(id)
	c.path.add(parent)
}

// grow makes room in a part for as many blocks again.
func (c *chain) grow(p *chainPart) {
	old := p.slots
	p.slots = make([]uint32, max(chainSlots, 2*len(old)))
	for _, s := range old {
		if s == 0 {
			continue
		}
		at := p.slot(chainHash(c.path.parent(s-1), c.ids.at(int(s-1))))
		for p.slots[at] != 0 {
			at = p.after(at)
		}
		p.slots[at] = s
	}
}

// slot is where the search for a hash starts: its bits below those that chose
// the part, scaled to the part's length.
func (p *chainPart) slot(h uint64) int {
	return int((h << chainPartBits >> 32) * uint64(len(p.slots)) >> 32)
}

func (p *chainPart) after(at int) int {
	if at++; at < len(p.slots) {
		return at
	}
	return 0
}

// chainHash mixes a key (the finaliser of SplitMix64, Steele, Lea and Flood,
// OOPSLA 2014).
func chainHash(parent uint32, id uint64) uint64 {
	h := id ^ uint64(parent)*0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
