package analysis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"retrace/hashing"
)

// smallHashBench is three blocks of five tokens.
func smallHashBench(t *testing.T, seed uint64, algs ...hashing.Algorithm) *HashBench {
	t.Helper()
	b, err := RunHashBench(t.Context(), HashBenchOptions{Algorithms: algs, NumBlocks: 3, BlockSize: 5, Trials: 2, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// measured are the figures that differ from run to run.
var measured = regexp.MustCompile(`("(?:mean|std|min|p50|p90|p95|p99|max|raw_digest_ratio)":) [-+.e0-9]+`)

// The form of the JSON: two trials, and 2 · 10 batches of calls.
func TestHashBenchJSON(t *testing.T) {
	b := smallHashBench(t, 7, hashing.XXHashCBOR)
	b.Skipped = append(b.Skipped, "md5")
	var out bytes.Buffer
	if err := b.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "benchhash.json", measured.ReplaceAll(out.Bytes(), []byte("$1 0")))
	var back HashBench
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
}

// The last digests are those that CPython's pickle, cbor2, hashlib and xxhash
// give for the blocks that the documentation describes, seed text "0". The seed
// of a benchmark changes none of them.
func TestHashBenchLastHash(t *testing.T) {
	want := map[string]string{
		"sha256":      "eb82e7eb71470092d3adb266514c92459c2a11160731b525539b8093ed4ce2b0",
		"sha256_cbor": "d4a1747248268639f1d82fd57ad787dc10b936c4bb8532c67d8bbc8103d6eb77",
		"xxhash":      "9d735aff17f3f7043127dea95e6d4e59",
		"xxhash_cbor": "85208d9df00414b8c8e3bd7ac525247f",
		"xxh64":       "911c7b1efc1e03c9",
		"xxh3":        "a0bbdd741d445894",
	}
	for seed := range uint64(2) {
		b := smallHashBench(t, seed, hashing.Algorithms()...)
		got := map[string]string{}
		for _, r := range b.Results {
			got[r.Algorithm] = r.LastHash
			if ratio, ok := r.RawDigestRatio.Get(); !ok || ratio <= 0 {
				t.Errorf("%s: raw digest ratio %v, %v", r.Algorithm, ratio, ok)
			}
			if r.BlocksPerS.Count != 2 || r.NsPerBlock.Count != 2 || r.NsPerCall.Count != 2*batches {
				t.Errorf("%s: %d, %d trials and %d batches of calls, want 2, 2, %d",
					r.Algorithm, r.BlocksPerS.Count, r.NsPerBlock.Count, r.NsPerCall.Count, 2*batches)
			}
		}
		if delete(got, "blake3"); !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: last hashes %v, want %v", seed, got, want)
		}
	}
}

// What calls hash depends on the seed alone.
func TestHashBenchSeed(t *testing.T) {
	payload := func(seed uint64) any { return callPayload(rand.New(rand.NewPCG(seed, 1))) }
	if !reflect.DeepEqual(payload(1), payload(1)) || reflect.DeepEqual(payload(1), payload(2)) {
		t.Error("the object of a call does not follow its seed")
	}
	object := payload(3).([]any)
	data, ints := object[0].([]byte), object[1].([]uint32)
	if len(object) != 2 || len(data) != 32 || len(ints) != 32 {
		t.Errorf("an object of %d parts, %d bytes and %d integers, want 2, 32 and 32", len(object), len(data), len(ints))
	}
	for _, n := range ints {
		if n >= 1_000_000 {
			t.Errorf("integer %d, want less than a million", n)
		}
	}
}

// The raw digest reads the bytes of the chain's own blocks: digesting the last
// of them gives the chain's last digest.
func TestHashBenchRawIsTheSame(t *testing.T) {
	tokens := []uint32{1, 300, 70_000, 4, 5, 6, 7, 8}
	for _, alg := range hashing.Algorithms() {
		b, err := newHashBench(alg, tokens, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.ends) != 5 || b.ends[4] != len(b.data) {
			t.Errorf("%v: blocks end at %v of %d bytes, want four blocks", alg, b.ends, len(b.data))
		}
		if got := alg.AppendSum(nil, b.data[b.ends[3]:]); !bytes.Equal(got, b.chain.Digest()) {
			t.Errorf("%v: raw digest %x, the chain's %x", alg, got, b.chain.Digest())
		}
	}
}

// Only the first blocks of a long chain have bytes to digest: 3 of 2,500 here,
// or 1,200. Turns end with them, and all blocks are hashed.
func TestHashBenchTurns(t *testing.T) {
	tokens := make([]uint32, 2500)
	for blocks, turns := range map[int]int{3: 1, 1200: 2, 2500: 3} {
		b, err := newHashBench(hashing.XXHash, tokens, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(b.chain.Digest())
		b.ends = b.ends[:blocks+1]
		if err := b.trial(tokens, []any{}); err != nil {
			t.Fatal(err)
		}
		if got := b.ratio.Stats().Count; int(got) != turns || !bytes.Equal(b.chain.Digest(), want) {
			t.Errorf("bytes of %d blocks: %d turns, want %d; last digest %x, want %x", blocks, got, turns, b.chain.Digest(), want)
		}
	}
}

func TestHashBenchRefuses(t *testing.T) {
	sha := []hashing.Algorithm{hashing.SHA256}
	for want, o := range map[string]HashBenchOptions{
		"0 blocks of 1 tokens":   {Algorithms: sha, BlockSize: 1, Trials: 1},
		"1 blocks of -1 tokens":  {Algorithms: sha, NumBlocks: 1, BlockSize: -1, Trials: 1},
		"and 0 trials":           {Algorithms: sha, NumBlocks: 1, BlockSize: 1},
		"at most 134217728":      {Algorithms: sha, NumBlocks: 1 << 27, BlockSize: 2, Trials: 1},
		"expected 1 to 1048576":  {Algorithms: sha, NumBlocks: 1, BlockSize: 1<<20 + 1, Trials: 1},
		"found algorithm(0)":     {Algorithms: make([]hashing.Algorithm, 1), NumBlocks: 1, BlockSize: 1, Trials: 1},
		"benchmark hashes: star": {Algorithms: make([]hashing.Algorithm, 1), NumBlocks: 1, BlockSize: 1, Trials: 1},
	} {
		if _, err := RunHashBench(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", o, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunHashBench(ctx, HashBenchOptions{Algorithms: sha, NumBlocks: 1, BlockSize: 1, Trials: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want context.Canceled", err)
	}
}

func TestHashBenchTable(t *testing.T) {
	b := smallHashBench(t, 0, hashing.SHA256CBOR)
	b.Skipped = append(b.Skipped, "md5", "crc")
	var out bytes.Buffer
	if err := b.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 blocks of 5 tokens, 2 trials", "\nsha256_cbor  ", "d4a1747248268639\n", "\nsha256_cbor: SHA-256 of canonical CBOR\n", "\nskipped: md5, crc\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestPickAlgorithms(t *testing.T) {
	algs, unknown := PickAlgorithms([]string{"xxh3", " sha256", "md5", "xxh3", ""})
	if !reflect.DeepEqual(algs, []hashing.Algorithm{hashing.XXH3, hashing.SHA256}) || !reflect.DeepEqual(unknown, []string{"md5", ""}) {
		t.Errorf("picked %v, unknown %q", algs, unknown)
	}
}
