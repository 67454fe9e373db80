package hashing

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"
)

// Algorithm names a block hash: a serialisation and a digest. Its zero value
// is no algorithm.
type Algorithm uint8

// The algorithms of vLLM, and behind them three for comparison, which no
// server has: they digest the bytes that SHA256CBOR and XXHashCBOR do.
const (
	// SHA256 is vLLM's sha256: SHA-256 of a Python pickle, protocol 5.
	SHA256 Algorithm = iota + 1
	// SHA256CBOR is vLLM's sha256_cbor: SHA-256 of canonical CBOR.
	SHA256CBOR
	// XXHash is vLLM's xxhash: XXH3-128 of a Python pickle, protocol 5. XXH3 is
	// fast and not proof against collisions made on purpose.
	XXHash
	// XXHashCBOR is vLLM's xxhash_cbor: XXH3-128 of canonical CBOR.
	XXHashCBOR
	// XXH64 is XXH64 with seed 0 of canonical CBOR.
	XXH64
	// XXH3 is the 64-bit XXH3 with seed 0 of canonical CBOR.
	XXH3
	// BLAKE3 is the 256-bit BLAKE3 without a key of canonical CBOR.
	BLAKE3
)

// DefaultSeed is the seed text of vLLM's sha256 algorithms where PYTHONHASHSEED
// is unset (vLLM 0.32). Its xxhash ones draw a random seed instead, so a chain
// of theirs can be compared only where the server's seed was set.
const DefaultSeed = "vllm-none-hash"

// maxDigest is the length of the longest digest.
const maxDigest = sha256.Size

// algorithms describes them, by number.
var algorithms = [...]struct {
	name, about string
	size        int
	pickle      bool
}{
	SHA256:     {"sha256", "SHA-256 of a Python pickle", sha256.Size, true},
	SHA256CBOR: {"sha256_cbor", "SHA-256 of canonical CBOR", sha256.Size, false},
	XXHash:     {"xxhash", "XXH3-128, seed 0, of a Python pickle", 16, true},
	XXHashCBOR: {"xxhash_cbor", "XXH3-128, seed 0, of canonical CBOR", 16, false},
	XXH64:      {"xxh64", "XXH64, seed 0, of canonical CBOR", 8, false},
	XXH3:       {"xxh3", "XXH3-64, seed 0, of canonical CBOR", 8, false},
	BLAKE3:     {"blake3", "BLAKE3-256 of canonical CBOR", 32, false},
}

// Algorithms lists all algorithms: vLLM's, then those for comparison.
func Algorithms() []Algorithm {
	return []Algorithm{SHA256, SHA256CBOR, XXHash, XXHashCBOR, XXH64, XXH3, BLAKE3}
}

// VLLM lists the algorithms that vLLM has.
func VLLM() []Algorithm { return []Algorithm{SHA256, SHA256CBOR, XXHash, XXHashCBOR} }

// ParseAlgorithm finds an algorithm by its name, among those given, or among
// all where none is given.
func ParseAlgorithm(name string, among ...Algorithm) (Algorithm, error) {
	if len(among) == 0 {
		among = Algorithms()
	}
	known := make([]string, 0, len(among))
	for _, a := range among {
		if a.String() == name {
			return a, nil
		}
		known = append(known, a.String())
	}
	return 0, fmt.Errorf("parse hash algorithm: found %q, expected one of %s", name, strings.Join(known, ", "))
}

// known says whether there is such an algorithm.
func (a Algorithm) known() bool { return a > 0 && int(a) < len(algorithms) }

// String is the algorithm's name: vLLM's, where it is one of vLLM's.
func (a Algorithm) String() string {
	if a.known() {
		return algorithms[a].name
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// About says in a few words what is digested how: variant, seed, bytes.
func (a Algorithm) About() string {
	if a.known() {
		return algorithms[a].about
	}
	return "no algorithm"
}

// Size is the length of a digest in bytes: 32, 16 or 8; 0 for no algorithm.
func (a Algorithm) Size() int {
	if a.known() {
		return algorithms[a].size
	}
	return 0
}

// Seed is the seed text of a vLLM server whose PYTHONHASHSEED is unset. The
// xxhash ones have none: vLLM draws it at random.
func (a Algorithm) Seed() (text string, ok bool) {
	return DefaultSeed, a == SHA256 || a == SHA256CBOR
}

// pickled says whether the bytes are a pickle; else they are CBOR.
func (a Algorithm) pickled() bool { return a.known() && algorithms[a].pickle }

// AppendSum appends the digest of data, of Size bytes; nothing for no
// algorithm. Values of 64 and 128 bits are big-endian, as xxHash's canonical
// form has them.
func (a Algorithm) AppendSum(dst, data []byte) []byte {
	var sum [maxDigest]byte
	a.sum(&sum, data)
	return append(dst, sum[:a.Size()]...)
}

// AppendValue appends the bytes that are digested for a value, which may be
// what an extra key may be (see SetExtra), []uint32 or []uint64: a tuple of
// integers, without a box for each.
func (a Algorithm) AppendValue(dst []byte, value any) ([]byte, error) {
	if a.pickled() {
		return appendPickle(dst, value)
	}
	return appendValue(dst, value)
}

// sum writes the digest of data to the first Size bytes of dst.
func (a Algorithm) sum(dst *[maxDigest]byte, data []byte) {
	switch a {
	case SHA256, SHA256CBOR:
		*dst = sha256.Sum256(data)
	case XXHash, XXHashCBOR:
		h := xxh3.Hash128(data)
		binary.BigEndian.PutUint64(dst[0:8], h.Hi)
		binary.BigEndian.PutUint64(dst[8:16], h.Lo)
	case XXH64:
		binary.BigEndian.PutUint64(dst[:8], xxhash.Sum64(data))
	case XXH3:
		binary.BigEndian.PutUint64(dst[:8], xxh3.Hash(data))
	case BLAKE3:
		*dst = blake3.Sum256(data)
	}
}

// Hasher digests values one by one and reuses its memory. It is for one
// goroutine; use a Chain for blocks.
type Hasher struct {
	alg Algorithm
	buf []byte
}

// NewHasher makes a hasher.
func NewHasher(alg Algorithm) (*Hasher, error) {
	if !alg.known() {
		return nil, fmt.Errorf("make hasher: found %v, expected a known algorithm", alg)
	}
	return &Hasher{alg: alg}, nil
}

// Append appends the digest of a value, which may be what AppendValue takes.
func (h *Hasher) Append(dst []byte, value any) ([]byte, error) {
	var err error
	if h.buf, err = h.alg.AppendValue(h.buf[:0], value); err != nil {
		return dst, fmt.Errorf("hash value: %w", err)
	}
	return h.alg.AppendSum(slices.Grow(dst, maxDigest), h.buf), nil
}
