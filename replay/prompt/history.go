package prompt

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
)

// turn is what one turn adds to its session.
type turn struct {
	parent ref
	// key names the turn's own tail and its output.
	key uint64
	// tokens counts the new part, output the answer to it.
	tokens, output uint32
	blocks         []uint64
}

// appendNew appends the turn's new part to a prompt.
func (t *turn) appendNew(p *Prompt, blockSize int) {
	if p.segs == nil {
		p.segs = make([]Segment, 0, len(t.blocks)+1)
	}
	rest := t.tokens
	for _, id := range t.blocks {
		n := min(rest, uint32(blockSize))
		p.add(Segment{Kind: Block, Key: id, N: n})
		rest -= n
	}
	p.add(Segment{Kind: Tail, Key: t.key, N: rest})
}

// ref is where a history keeps a turn: the page and the offset in it, plus
// one; 0 is no turn.
type ref uint64

// pageSize is how much of a history is allocated at a time.
const pageSize = 1 << 20

// history remembers the turns of the sessions of increments. Each is stored
// once, as what it adds and where the turn before it lies; so a session costs
// what its turns add, however long its prompts grow.
type history struct {
	pages [][]byte
	// last finds a turn by its session (the latest one) and by its own key,
	// both hashed.
	last map[uint64]ref
	path []ref
	buf  []byte
}

// newHistory is an empty history.
func newHistory() *history { return &history{last: make(map[uint64]ref)} }

// sessionKey and turnKey keep the names of sessions and turns apart.
func sessionKey(name string) uint64 { return hashName('s', name) }

func turnKey(name string) uint64 { return hashName('t', name) }

// hashName is the XXH64 of a tag and a name.
func hashName(tag byte, name string) uint64 {
	var b [64]byte
	return xxhash.Sum64(append(append(b[:0], tag), name...))
}

// parent finds the turn that r follows.
func (h *history) parent(r *record.Request) (at ref, found bool) {
	switch {
	case r.Parent != "":
		at, found = h.last[turnKey(r.Parent)]
	case r.Session != "":
		at, found = h.last[sessionKey(r.Session)]
	}
	return at, found
}

// remember stores the turn under the names of its request.
func (h *history) remember(r *record.Request, t turn) {
	at := h.store(t)
	if r.Session != "" {
		h.last[sessionKey(r.Session)] = at
	}
	if r.ID != "" {
		h.last[turnKey(r.ID)] = at
	}
}

// prompt is the whole prompt of a turn: those of its ancestors, each with its
// output, from the first on, then its own part.
func (h *history) prompt(t turn, blockSize int) Prompt {
	h.path = h.path[:0]
	for at := t.parent; at != 0; at = h.parentOf(at) {
		h.path = append(h.path, at)
	}
	var p Prompt
	for i := len(h.path) - 1; i >= 0; i-- {
		earlier := h.load(h.path[i])
		earlier.appendNew(&p, blockSize)
		p.add(Segment{Kind: Output, Key: earlier.key, N: earlier.output})
	}
	t.appendNew(&p, blockSize)
	return p
}

// store writes a turn: parent, key, tokens, output, the number of blocks and
// their ids, each as the difference to the one before it.
func (h *history) store(t turn) ref {
	b := binary.AppendUvarint(h.buf[:0], uint64(t.parent))
	b = binary.LittleEndian.AppendUint64(b, t.key)
	b = binary.AppendUvarint(b, uint64(t.tokens))
	b = binary.AppendUvarint(b, uint64(t.output))
	b = binary.AppendUvarint(b, uint64(len(t.blocks)))
	before := uint64(0)
	for _, id := range t.blocks {
		b = binary.AppendVarint(b, int64(id-before))
		before = id
	}
	h.buf = b
	last := len(h.pages) - 1
	if last < 0 || cap(h.pages[last])-len(h.pages[last]) < len(b) {
		h.pages = append(h.pages, make([]byte, 0, max(pageSize, len(b))))
		last++
	}
	off := len(h.pages[last])
	h.pages[last] = append(h.pages[last], b...)
	return ref(uint64(last)<<32|uint64(off)) + 1
}

// bytes is what is stored at a turn's place, and behind it.
func (h *history) bytes(at ref) []byte {
	at--
	return h.pages[at>>32][at&0xffffffff:]
}

// parentOf reads a turn's parent alone.
func (h *history) parentOf(at ref) ref {
	v, _ := binary.Uvarint(h.bytes(at))
	return ref(v)
}

// load reads a turn back.
func (h *history) load(at ref) turn {
	b := h.bytes(at)
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	t := turn{parent: ref(next())}
	t.key = binary.LittleEndian.Uint64(b)
	b = b[8:]
	t.tokens, t.output = uint32(next()), uint32(next())
	t.blocks = make([]uint64, next())
	id := uint64(0)
	for i := range t.blocks {
		v, n := binary.Varint(b)
		b = b[n:]
		id += uint64(v)
		t.blocks[i] = id
	}
	return t
}
