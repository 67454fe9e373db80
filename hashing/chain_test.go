package hashing_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"retrace/hashing"
)

// upTo returns 1, 2, …, n.
func upTo(n int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(i + 1)
	}
	return tokens
}

func mustChain(t testing.TB, alg hashing.Algorithm, blockSize int, seed string) *hashing.Chain {
	t.Helper()
	c, err := hashing.NewChain(alg, blockSize, seed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The known answer was made by hand in Python (CASES.md H07): seed text "7",
// tokens 1…16, no extra keys.
func TestSmallKnownAnswer(t *testing.T) {
	c := mustChain(t, hashing.SHA256CBOR, 16, "7")
	got := c.Append(nil, upTo(16))
	if len(got) != 1 || got[0] != 16933709914029365998 {
		t.Errorf("event value of tokens 1…16 = %v, want [16933709914029365998]", got)
	}
}

// vllmEvent is a KV-cache event as a real server published it.
type vllmEvent struct {
	BlockHashes []uint64 `json:"block_hashes"`
	TokenIDs    []uint32 `json:"token_ids"`
	BlockSize   int      `json:"block_size"`
	HashSeed    string   `json:"hash_seed"`
}

func TestRealKVEvents(t *testing.T) {
	var ev vllmEvent
	if err := json.Unmarshal(readShared(t, "vllm_kv_event_base.json"), &ev); err != nil {
		t.Fatal(err)
	}
	c := mustChain(t, hashing.SHA256CBOR, ev.BlockSize, ev.HashSeed)
	got := c.Append(nil, ev.TokenIDs)
	if len(got) != len(ev.BlockHashes) || len(got) != 25 {
		t.Fatalf("got %d hashes, want %d, which is 25", len(got), len(ev.BlockHashes))
	}
	for i, want := range ev.BlockHashes {
		if got[i] != want {
			t.Errorf("block %d: got %d, want %d", i, got[i], want)
		}
	}
}

// readShared reads a file of the project's shared test data, which is not part
// of the repository.
func readShared(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../shared/data/vllm/" + name)
	if os.IsNotExist(err) {
		t.Skipf("shared test data %s is not here", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestChainErrors(t *testing.T) {
	if _, err := hashing.NewChain(0, 16, ""); err == nil {
		t.Error("no algorithm: no error")
	}
	if _, err := hashing.NewChain(hashing.SHA256CBOR, 0, ""); err == nil {
		t.Error("block size 0: no error")
	}
	if _, err := hashing.ParseAlgorithm("sha1"); err == nil {
		t.Error("sha1: no error")
	}
	if err := mustChain(t, hashing.SHA256CBOR, 1, "").SetExtra(1.5); err == nil {
		t.Error("a float as an extra key: no error")
	}
}

func TestAlgorithmNames(t *testing.T) {
	for _, a := range hashing.Algorithms() {
		back, err := hashing.ParseAlgorithm(a.String())
		if err != nil || back != a {
			t.Errorf("%v: parsed back as %v, %v", a, back, err)
		}
	}
	if got := hashing.Algorithm(99).String(); got != "algorithm(99)" {
		t.Errorf("an unknown algorithm is called %q", got)
	}
}

// However the tokens are cut into calls, the hashes are the same, and the
// tokens after the last full block are pending.
func TestIncrementalIsWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alg := rapid.SampledFrom(hashing.Algorithms()).Draw(rt, "algorithm")
		size := rapid.IntRange(1, 40).Draw(rt, "block size")
		tokens := rapid.SliceOfN(rapid.Uint32(), 0, 200).Draw(rt, "tokens")
		whole := mustChain(t, alg, size, "s").Append(nil, tokens)

		c := mustChain(t, alg, size, "s")
		var pieces []uint64
		for rest := tokens; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			pieces = c.Append(pieces, rest[:n])
			rest = rest[n:]
			if rapid.Bool().Draw(rt, "copy") {
				copied := mustChain(t, hashing.XXHashCBOR, 3, "other")
				copied.CopyFrom(c)
				c = copied
			}
		}
		if len(whole) != len(tokens)/size || c.Pending() != len(tokens)%size {
			rt.Fatalf("%d tokens in blocks of %d: %d hashes, %d pending", len(tokens), size, len(whole), c.Pending())
		}
		for i := range whole {
			if whole[i] != pieces[i] {
				rt.Fatalf("block %d: %d whole, %d in pieces", i, whole[i], pieces[i])
			}
		}
	})
}

// The bytes that are hashed are those of a general CBOR library in canonical
// mode, for any tokens and extra keys: equal digests show it.
func TestAgainstLibrary(t *testing.T) {
	mode, err := cbor.CanonicalEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	extra := rapid.OneOf(
		rapid.Just(any(nil)), rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Uint64().AsAny(),
		rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(),
		rapid.Map(rapid.SliceOfN(rapid.String().AsAny(), 0, 30), func(l []any) any { return l }))
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.SliceOfN(rapid.Uint64(), 1, 300).Draw(rt, "tokens")
		keys := rapid.SliceOfN(extra, 1, 4).Draw(rt, "extra keys")
		c := mustChain(t, hashing.SHA256CBOR, len(tokens), "seed")
		if err := c.SetExtra(keys...); err != nil {
			rt.Fatal(err)
		}
		root := append([]byte(nil), c.Digest()...)
		got := c.AppendDigests(nil, tokens)
		object, err := mode.Marshal([]any{root, tokens, keys})
		if err != nil {
			rt.Fatal(err)
		}
		if want := sum256(object); string(got) != string(want) {
			rt.Fatalf("digest %x, want %x", got, want)
		}
	})
}

func TestResetForgets(t *testing.T) {
	c := mustChain(t, hashing.XXHashCBOR, 4, "0")
	want := c.Append(nil, upTo(8))
	c.Reset()
	if err := c.SetExtra("x", 1); err != nil {
		t.Fatal(err)
	}
	c.Append(nil, upTo(7))
	c.Reset()
	got := c.Append(nil, upTo(8))
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("after Reset %v, before %v", got, want)
	}
}

// An empty tuple of extra keys is not null.
func TestEmptyTupleIsNotNull(t *testing.T) {
	a, b := mustChain(t, hashing.SHA256CBOR, 1, ""), mustChain(t, hashing.SHA256CBOR, 1, "")
	if err := b.SetExtraTuple(nil); err != nil {
		t.Fatal(err)
	}
	a.Append(nil, []uint32{1})
	b.Append(nil, []uint32{1})
	if hex.EncodeToString(a.Digest()) == hex.EncodeToString(b.Digest()) {
		t.Error("() and null give the same digest")
	}
}

func TestNoAllocationPerBlock(t *testing.T) {
	for _, alg := range hashing.Algorithms() {
		c := mustChain(t, alg, 16, "0")
		tokens := upTo(16 * 64)
		dst := make([]uint64, 0, 64)
		c.Append(dst, tokens)
		if n := testing.AllocsPerRun(20, func() { dst = c.Append(dst[:0], tokens) }); n != 0 {
			t.Errorf("%v: %v allocations for 64 blocks, want 0", alg, n)
		}
	}
}

func BenchmarkChain(b *testing.B) {
	for _, alg := range hashing.Algorithms() {
		for _, size := range []int{16, 32, 128} {
			b.Run(alg.String()+"/"+strconv.Itoa(size), func(b *testing.B) {
				tokens := make([]uint32, size*64)
				for j := range tokens {
					tokens[j] = uint32((j*7919 + 13) % 151643)
				}
				c := mustChain(b, alg, size, "0")
				dst := make([]uint64, 0, 64)
				b.ReportAllocs()
				for b.Loop() {
					dst = c.Append(dst[:0], tokens)
				}
				b.ReportMetric(float64(b.N)*64/b.Elapsed().Seconds(), "blocks/s")
			})
		}
	}
}
