package hashing_test

import (
	"fmt"
	"testing"

	"retrace/hashing"
)

// benchTokens are those of trace-analyze bench-hash.
func benchTokens(n int) []uint32 {
	tokens := make([]uint32, n)
	for j := range tokens {
		tokens[j] = uint32((j*7919 + 13) % 151643)
	}
	return tokens
}

// perSecond reports what is done n times an iteration.
func perSecond(b *testing.B, n int, unit string) {
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), unit)
}

// BenchmarkChain hashes blocks of a sequence, and beside each algorithm the
// same bytes without serialising them.
func BenchmarkChain(b *testing.B) {
	const blocks = 1000
	for _, alg := range hashing.Algorithms() {
		for _, size := range []int{16, 32, 128} {
			tokens := benchTokens(size * blocks)
			b.Run(fmt.Sprintf("%v/%d", alg, size), func(b *testing.B) {
				c := mustChain(b, alg, size, "0")
				dst := make([]uint64, 0, blocks)
				b.ReportAllocs()
				for b.Loop() {
					dst = c.Append(dst[:0], tokens)
				}
				perSecond(b, blocks, "blocks/s")
			})
			b.Run(fmt.Sprintf("%v/%d/raw", alg, size), func(b *testing.B) {
				var data []byte
				ends := []int{0}
				c := mustChain(b, alg, size, "0")
				for i := range blocks {
					block := tokens[i*size : (i+1)*size]
					var err error
					if data, err = alg.AppendValue(data, []any{c.Digest(), block, nil}); err != nil {
						b.Fatal(err)
					}
					c.Append(nil, block)
					ends = append(ends, len(data))
				}
				sum := make([]byte, 0, alg.Size())
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					for i := range blocks {
						sum = alg.AppendSum(sum[:0], data[ends[i]:ends[i+1]])
					}
				}
				perSecond(b, blocks, "blocks/s")
			})
		}
	}
}

// BenchmarkCall hashes one (bytes, tuple of ints) object a call.
func BenchmarkCall(b *testing.B) {
	for _, alg := range hashing.Algorithms() {
		b.Run(alg.String(), func(b *testing.B) {
			h, err := hashing.NewHasher(alg)
			if err != nil {
				b.Fatal(err)
			}
			value := any([]any{make([]byte, 32), benchTokens(32)})
			var sum []byte
			b.ReportAllocs()
			for b.Loop() {
				if sum, err = h.Append(sum[:0], value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
