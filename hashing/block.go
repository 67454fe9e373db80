package hashing

import (
	"encoding/binary"
	"slices"
)

// block serialises blocks of one size and algorithm: (parent, tokens, extra
// keys). What is the same in each is laid out once.
type block struct {
	pickle bool
	digest int // length of the parent's digest
	size   int // tokens in a block

	// head is what precedes the tokens, flush right: from index from, with the
	// parent's digest at index parent.
	head         [headSize]byte
	from, parent int
	// tail is what follows the tokens; it begins with the extra keys in CBOR,
	// and with the end of the tuple of tokens in a pickle. spare is its next
	// memory.
	tail, spare []byte
	// buf has the tokens up to index tokens in CBOR, from there on in a pickle.
	buf    []byte
	tokens int
}

// headSize is room for the longest head: a pickle's is 48 bytes.
const headSize = 64

// frameAt is where a pickle has the length of its frame: behind PROTO, its
// argument and FRAME.
const frameAt = 3

// newBlock lays out blocks of so many tokens. They have no extra keys before
// setExtra is called.
func newBlock(alg Algorithm, size int) block {
	b := block{pickle: alg.pickled(), digest: alg.Size(), size: size}
	var before, behind []byte // the parent's digest
	if b.pickle {
		before = append(before, opProto, 5, opFrame)
		before = append(before, make([]byte, 8)...)
		before = append(before, opShortBinBytes, byte(b.digest))
		behind = append(behind, opMemoize)
		if size > 3 {
			behind = append(behind, opMark)
		}
		b.tokens = headSize
	} else {
		before = appendHead(before, cborArray, 3)
		before = appendHead(before, cborBytes, uint64(b.digest))
		behind = appendHead(behind, cborArray, uint64(size))
		b.tokens = cborRoom + size*maxCBORToken
	}
	b.parent = headSize - len(behind) - b.digest
	b.from = b.parent - len(before)
	copy(b.head[b.from:], before)
	copy(b.head[headSize-len(behind):], behind)
	return b
}

// setExtra lays out the extra keys of the blocks to come. After an error they
// are what they were.
func (b *block) setExtra(extra any) error {
	var tail []byte
	var err error
	if b.pickle {
		tail, err = b.pickleTail(extra)
	} else {
		tail, err = appendValue(b.spare[:0], extra)
	}
	if err != nil {
		return err
	}
	b.tail, b.spare = tail, b.tail
	if b.pickle {
		b.grow(b.tokens + b.size*maxPickleToken + pickleSlack + len(tail))
		return nil
	}
	b.grow(b.tokens + len(tail) + cborSlack)
	copy(b.buf[b.tokens:], tail)
	return nil
}

// grow makes buf at least n bytes long.
func (b *block) grow(n int) {
	b.buf = slices.Grow(b.buf, max(0, n-len(b.buf)))
	b.buf = b.buf[:cap(b.buf)]
}

// pickleTail is what follows the tokens in a pickle, where the parent's digest
// is the one object before them.
func (b *block) pickleTail(extra any) ([]byte, error) {
	p := pickler{out: b.spare[:0], frame: -1, unframed: true, objects: 1}
	p.endTuple(b.size)
	if err := p.save(extra); err != nil {
		return nil, err
	}
	p.endTuple(3)
	p.write(opStop)
	return p.out, nil
}

// serialise gives the bytes of a block behind the parent's digest. They are
// the block's own and change with the next call. There are none for a pickle
// so long that it needs several frames.
func serialise[T uint32 | uint64](b *block, parent *[maxDigest]byte, tokens []T) []byte {
	if !b.pickle {
		start := prependTokens(b.buf, b.tokens, tokens) - headSize
		*(*[headSize]byte)(b.buf[start:]) = b.head
		b.setParent(b.buf[start:], parent)
		return b.buf[start+b.from : b.tokens+len(b.tail)]
	}
	end := appendTokens(b.buf, b.tokens, tokens)
	end += copy(b.buf[end:], b.tail)
	frame := end - (b.from + frameAt + 8)
	if frame >= frameTarget {
		return nil
	}
	binary.LittleEndian.PutUint64(b.head[b.from+frameAt:], uint64(frame))
	*(*[headSize]byte)(b.buf) = b.head
	b.setParent(b.buf, parent)
	return b.buf[b.from:end]
}

// setParent writes the parent's digest into a head.
func (b *block) setParent(head []byte, parent *[maxDigest]byte) {
	switch b.digest {
	case 32:
		digest := *parent // which cannot overlap: so the compiler needs no call to copy it
		*(*[32]byte)(head[b.parent:]) = digest
	case 16:
		*(*[16]byte)(head[b.parent:]) = [16]byte(parent[:16])
	default:
		*(*[8]byte)(head[b.parent:]) = [8]byte(parent[:8])
	}
}
