package hashing_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
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
	for _, alg := range hashing.Algorithms() {
		c := mustChain(t, alg, 1, "")
		if err := c.SetExtra("kept"); err != nil {
			t.Fatal(err)
		}
		if err := c.SetExtra("a", 'x'); err == nil || !strings.Contains(err.Error(), "found int32, expected nil, bool") {
			t.Errorf("%v: an int32 as an extra key: %v", alg, err)
		}
		kept := mustChain(t, alg, 1, "")
		_ = kept.SetExtra("kept")
		if c.Append(nil, upTo(1))[0] != kept.Append(nil, upTo(1))[0] {
			t.Errorf("%v: extra keys that were refused changed those that were there", alg)
		}
		if _, err := alg.AppendValue(nil, []any{1, struct{}{}}); err == nil {
			t.Errorf("%v: a struct as a value: no error", alg)
		}
	}
	if _, err := hashing.NewHasher(0); err == nil {
		t.Error("a hasher of no algorithm: no error")
	}
	if _, err := hashing.ParseAlgorithm("xxh64", hashing.VLLM()...); err == nil || !strings.HasSuffix(err.Error(), "expected one of sha256, sha256_cbor, xxhash, xxhash_cbor") {
		t.Errorf("xxh64 among vLLM's: %v", err)
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

// A chain's blocks, which are laid out ahead, are what the general writer makes
// of the same values, for any tokens and extra keys.
func TestBlocksAreValues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alg := rapid.SampledFrom(hashing.Algorithms()).Draw(rt, "algorithm")
		size := rapid.IntRange(1, 150).Draw(rt, "block size")
		tokens := rapid.SliceOfN(anyToken(), size, 3*size).Draw(rt, "tokens")
		c := mustChain(t, alg, size, "seed")
		for len(tokens) >= size {
			extra := anyValue(2).Draw(rt, "extra keys")
			if err := c.SetExtraValue(extra); err != nil {
				rt.Fatal(err)
			}
			h, err := hashing.NewHasher(alg)
			if err != nil {
				rt.Fatal(err)
			}
			want, err := h.Append(nil, []any{bytes.Clone(c.Digest()), tokens[:size], extra})
			if err != nil {
				rt.Fatal(err)
			}
			if got := c.AppendDigests(nil, tokens[:size]); !bytes.Equal(got, want) {
				rt.Fatalf("digest %x, want %x", got, want)
			}
			tokens = tokens[size:]
		}
	})
}

// anyToken draws ids of every length, around the ends of the lengths too.
func anyToken() *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.Uint64Range(0, 1<<18), rapid.Uint64Range(0, 300), rapid.Uint64Range(1<<16-3, 1<<16+3),
		rapid.Uint64Range(1<<31-3, 1<<31+3), rapid.Uint64Range(1<<32-3, 1<<32+3), rapid.Uint64())
}

// anyValue draws values that an extra key may have, tuples to a depth.
func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.OneOf(rapid.String(), rapid.StringN(0, 2, 2), rapid.SampledFrom([]string{"a", "\u00ff", "\u0100", "mm"}))
	kinds := []*rapid.Generator[any]{
		rapid.Just(any(nil)), rapid.Bool().AsAny(), text.AsAny(), rapid.Int64().AsAny(), rapid.Int64Range(-300, 300).AsAny(),
		rapid.Uint64().AsAny(), rapid.SliceOfN(rapid.Byte(), 0, 2).AsAny(), rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(),
		rapid.Float64().AsAny(), rapid.Map(rapid.Float32(), func(f float32) any { return float64(f) }),
		rapid.Map(text, func(s string) any { return hashing.Constant(s) }),
	}
	if depth > 0 {
		tuple := rapid.SliceOfN(anyValue(depth-1), 0, 6)
		kinds = append(kinds, tuple.AsAny(), tuple.AsAny())
	}
	return rapid.OneOf(kinds...)
}

// The general writer's CBOR is that of a general library in canonical mode.
func TestAgainstLibrary(t *testing.T) {
	mode, err := cbor.CanonicalEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		value := []any{anyValue(3).Draw(rt, "value"), rapid.SliceOf(anyToken()).Draw(rt, "tokens")}
		want, err := mode.Marshal(value)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := hashing.SHA256CBOR.AppendValue([]byte("kept"), value)
		if err != nil || string(got) != "kept"+string(want) {
			rt.Fatalf("%x, %v, want %x", got, err, want)
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
	if err := b.SetExtraValue([]any{}); err != nil {
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
