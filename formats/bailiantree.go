package formats

// chatTrees knows whose follow-up each chat is.
type chatTrees struct {
	// parent of each chat that is no root; after root has walked over it, an
	// ancestor of it.
	parent map[uint64]uint64
}

func newChatTrees() *chatTrees { return &chatTrees{parent: map[uint64]uint64{}} }

// add notes a chat's parent; the first word on it counts.
func (t *chatTrees) add(chat, parent uint64) {
	if _, ok := t.parent[chat]; !ok && chat != parent {
		t.parent[chat] = parent
	}
}

// root is the farthest ancestor that is known of: a chat without a parent, one
// that no row describes, or, where parents go round in a circle, the least of
// the circle.
func (t *chatTrees) root(chat uint64) uint64 {
	var path []uint64
	seen := map[uint64]bool(nil)
	at := chat
	for {
		up, ok := t.parent[at]
		if !ok {
			break
		}
		if len(path) > fewAncestors && seen == nil {
			seen = map[uint64]bool{}
			for _, c := range path {
				seen[c] = true
			}
		}
		if seen[at] || seen == nil && contains(path, at) {
			at = t.breakCircle(at)
			break
		}
		if seen != nil {
			seen[at] = true
		}
		path = append(path, at)
		at = up
	}
	for _, c := range path {
		if c != at {
			t.parent[c] = at
		}
	}
	return at
}

const fewAncestors = 32

func contains(path []uint64, chat uint64) bool {
	for _, c := range path {
		if c == chat {
			return true
		}
	}
	return false
}

// breakCircle makes the least chat of the circle through at its root.
func (t *chatTrees) breakCircle(at uint64) uint64 {
	least := at
	for c := t.parent[at]; c != at; c = t.parent[c] {
		least = min(least, c)
	}
	delete(t.parent, least)
	return least
}
