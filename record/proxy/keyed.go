package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// digest is what is kept of an HMAC-SHA-256: 128 bits, for which a chance
// collision among 2^40 blocks has odds of 2^-49.
type digest [16]byte

// keyed makes keyed hashes. Each purpose has a key of its own, so that a name
// and a block of equal bytes have nothing in common. It is for one goroutine.
type keyed struct {
	block, name hash.Hash
	sum         [sha256.Size]byte
}

func newKeyed(salt Salt) *keyed {
	derive := func(purpose string) hash.Hash {
		mac := hmac.New(sha256.New, salt[:])
		mac.Write([]byte("retrace " + purpose))
		return hmac.New(sha256.New, mac.Sum(nil))
	}
	return &keyed{block: derive("blocks"), name: derive("names")}
}

// nameOf is the pseudonym of an identity of a sort, "" of none.
func (k *keyed) nameOf(sort, identity string) string {
	if identity == "" {
		return ""
	}
	k.name.Reset()
	k.name.Write([]byte(sort))
	k.name.Write([]byte{0})
	k.name.Write([]byte(identity))
	return hex.EncodeToString(k.name.Sum(k.sum[:0])[:16])
}

// chain is the digests of a growing prompt, block by block: each covers its
// predecessor's.
type chain struct {
	k    *keyed
	size int // bytes of a block
	last [sha256.Size]byte
	open []byte // of the block under way
	out  []digest
}

// newChain starts a chain of blocks of size bytes. Chains with different roots
// have nothing in common.
func (k *keyed) newChain(size int, root ...string) *chain {
	c := &chain{k: k, size: size}
	var head []byte
	for _, part := range root {
		head = binary.AppendUvarint(head, uint64(len(part)))
		head = append(head, part...)
	}
	k.block.Reset()
	k.block.Write(head)
	k.block.Sum(c.last[:0])
	return c
}

// write adds content to the prompt.
func (c *chain) write(b []byte) {
	for len(b) > 0 {
		n := min(len(b), c.size-len(c.open))
		c.open, b = append(c.open, b[:n]...), b[n:]
		if len(c.open) == c.size {
			c.close()
		}
	}
}

// close ends the block under way.
func (c *chain) close() {
	c.k.block.Reset()
	c.k.block.Write(c.last[:])
	c.k.block.Write(c.open)
	c.k.block.Sum(c.last[:0])
	c.open = c.open[:0]
	c.out = append(c.out, digest(c.last[:16]))
}

// digests ends the prompt; a last partial block counts as one.
func (c *chain) digests() []digest {
	if len(c.open) > 0 {
		c.close()
	}
	return c.out
}
