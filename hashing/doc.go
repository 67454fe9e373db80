// Package hashing turns token ids into the block hashes by which a serving
// engine knows its prefix cache, byte for byte as vLLM computes them.
//
// A prompt is cut into blocks of a fixed number of tokens; only full blocks
// have a hash. A block's digest covers its predecessor's digest, so that two
// blocks with equal digests end equal prefixes:
//
//	root     = H(CBOR(seed text))
//	digest_i = H(CBOR([digest_{i-1}, [token ids…], extra keys or null]))
//
// CBOR is the canonical encoding (RFC 8949, shortest integers, definite
// lengths) and H is SHA-256 or XXH3-128. The 64-bit value that vLLM puts into
// its KV-cache events is the last eight bytes of the digest, big-endian; the
// chain itself always uses the whole digest.
//
// A Chain is incremental and allocates nothing per block. It is for one
// goroutine; give each its own.
package hashing
