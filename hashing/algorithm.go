package hashing

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"
)

// Algorithm names a block hash: a serialisation and a digest. Its zero value
// is no algorithm.
type Algorithm uint8

const (
	// SHA256CBOR is vLLM's sha256_cbor: SHA-256 of canonical CBOR.
	SHA256CBOR Algorithm = iota + 1
	// XXHashCBOR is vLLM's xxhash_cbor: XXH3-128, big-endian, of canonical CBOR.
	// It is fast and not proof against collisions made on purpose.
	XXHashCBOR
)

// DefaultSeed is the seed text of vLLM's sha256 algorithms where PYTHONHASHSEED
// is unset (vLLM 0.32). Its xxhash ones draw a random seed instead, so a chain
// of theirs can be compared only where the server's seed was set.
const DefaultSeed = "vllm-none-hash"

var algorithmNames = map[Algorithm]string{SHA256CBOR: "sha256_cbor", XXHashCBOR: "xxhash_cbor"}

// Algorithms lists the algorithms, in the order of their names.
func Algorithms() []Algorithm { return []Algorithm{SHA256CBOR, XXHashCBOR} }

// ParseAlgorithm finds an algorithm by vLLM's name for it.
func ParseAlgorithm(name string) (Algorithm, error) {
	known := make([]string, 0, len(algorithmNames))
	for _, a := range Algorithms() {
		if a.String() == name {
			return a, nil
		}
		known = append(known, a.String())
	}
	return 0, fmt.Errorf("parse hash algorithm: found %q, expected one of %s", name, strings.Join(known, ", "))
}

// String is vLLM's name of the algorithm.
func (a Algorithm) String() string {
	if name, ok := algorithmNames[a]; ok {
		return name
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// Size is the length of a digest in bytes: 32 or 16; 0 for no algorithm.
func (a Algorithm) Size() int {
	switch a {
	case SHA256CBOR:
		return sha256.Size
	case XXHashCBOR:
		return 16
	}
	return 0
}

// sum writes the digest of data to the first Size bytes of dst.
func (a Algorithm) sum(dst *[maxDigest]byte, data []byte) {
	if a == SHA256CBOR {
		*dst = sha256.Sum256(data)
		return
	}
	h := xxh3.Hash128(data)
	binary.BigEndian.PutUint64(dst[0:8], h.Hi)
	binary.BigEndian.PutUint64(dst[8:16], h.Lo)
}

// maxDigest is the length of the longest digest.
const maxDigest = sha256.Size
