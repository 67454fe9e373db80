package capture

// idMap gives digests their numbers, in the order of their coming.
type idMap struct {
	// young are those that came last, old those before them. Where keep is set,
	// what is old when the young ones are so many is forgotten.
	keep       int
	young, old map[digest]uint64
	next       uint64
	forgotten  int64
}

// of is the digest's number.
func (n *idMap) of(d digest) uint64 {
	if id, ok := n.young[d]; ok {
		return id
	}
	id, ok := n.old[d]
	if ok {
		delete(n.old, d)
	} else {
		id = n.next
		n.next++
	}
	if n.keep > 0 && len(n.young) >= n.keep {
		n.forgotten += int64(len(n.old))
		n.young, n.old = map[digest]uint64{}, n.young
	}
	n.young[d] = id
	return id
}
