package hashing_test

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/zeebo/xxh3"

	"retrace/hashing"
)

// The digests are Python's xxhash and blake3, over bytes i·131 mod 251: some
// builds of XXH3 differ from it only in inputs of more than 240 bytes.
func TestDigestsOfManyLengths(t *testing.T) {
	for _, c := range []struct {
		n                            int
		xxh64, xxh3, xxh3128, blake3 string
	}{
		{0, "ef46db3751d8e999", "2d06800538d394c2", "99aa06d3014798d86001c324468d497f", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{1, "e934a84adb052768", "c44bdff4074eecdb", "a6cd5e9392000f6ac44bdff4074eecdb", "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
		{16, "a4bc34545c4b5bd3", "bea42f62eac454d0", "7bf040f53be48d8c0deb840adcd7a040", "ce891c5835834b7cfc1558136c66f547e637f60dcf58c7bf838fc223bf2f68fb"},
		{128, "c347d958e8fb55f9", "3d41caa0b80a4385", "ace2e3f98ca779b2f5f648d02c5ea199", "e987124c27b8919bb7ce9a5badcbc04443d24bee22b118cc5f0fd9368241afe6"},
		{240, "4d917010d4ac8ddb", "4da2ab7921d06c5e", "79eeb64cc139b65a64acbec064796cc2", "7e3b917226ff3747cd25ed50816761fb00f2fe34f7072ac2f326fa177e4cd1a3"},
		{241, "3f74f7e88da28610", "179ead905bf75a05", "8c10a157d96fb846179ead905bf75a05", "dc66cfd180ce637e5edd58453c26821ea294a6a0e9bb602b6d733ae9963f373f"},
		{512, "977dc9e1279cfd76", "e44778267d71d06f", "93261861afce136ee44778267d71d06f", "9ddd087bfadfd8f185e75e6bb8447b00a76cdfd450385594602dcc72028248cf"},
		{4096, "ba539c8a36751002", "1f0d35f134374e5d", "45a5e596036694e11f0d35f134374e5d", "ce93be44f1cc401e7421869df47ded23efdd2ab5eba5deca0382179238962af2"},
	} {
		data := make([]byte, c.n)
		for i := range data {
			data[i] = byte(i * 131 % 251)
		}
		for alg, want := range map[hashing.Algorithm]string{
			hashing.XXH64: c.xxh64, hashing.XXH3: c.xxh3, hashing.XXHash: c.xxh3128, hashing.XXHashCBOR: c.xxh3128, hashing.BLAKE3: c.blake3,
		} {
			if got := hex.EncodeToString(alg.AppendSum(nil, data)); got != want {
				t.Errorf("%v of %d bytes: %s, want %s", alg, c.n, got, want)
			}
		}
	}
}

// XXH64 and XXH3 with and without a seed are four functions; ours have seed 0.
// The values are CASES.md H11's.
func TestVariantsAreNotMixedUp(t *testing.T) {
	tokens := make([]byte, 0, 64)
	for i := uint32(1); i <= 16; i++ {
		tokens = binary.LittleEndian.AppendUint32(tokens, i)
	}
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"XXH64 of trace", sum64(hashing.XXH64, []byte("trace")), 0xf1ef7a6d3f484fd1},
		{"XXH3 of trace", sum64(hashing.XXH3, []byte("trace")), 0x50a6e0b246a1d8bc},
		{"XXH3 of trace, seed 1337", xxh3.HashSeed([]byte("trace"), 1337), 0x78ce5ba3db294145},
		{"XXH64 of nothing", sum64(hashing.XXH64, nil), 0xef46db3751d8e999},
		{"XXH3 of nothing", sum64(hashing.XXH3, nil), 0x2d06800538d394c2},
		{"XXH64 of tokens", sum64(hashing.XXH64, tokens), 0x6e587c1856fef197},
		{"XXH3 of tokens, seed 1337", xxh3.HashSeed(tokens, 1337), 0xea06fc71a5ee6e88},
	} {
		if c.got != c.want {
			t.Errorf("%s: %x, want %x", c.what, c.got, c.want)
		}
	}
}

func sum64(alg hashing.Algorithm, data []byte) uint64 {
	return binary.BigEndian.Uint64(alg.AppendSum(nil, data))
}
