package hashing_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"retrace/hashing"
)

func sum256(b []byte) []byte {
	s := sha256.Sum256(b)
	return s[:]
}

// goldenCase is one line of hash_golden.jsonl, made by vLLM's own functions.
type goldenCase struct {
	Kind, Name, Algo  string
	NoneHashSeed      string   `json:"none_hash_seed"`
	NoneHash          string   `json:"none_hash"`
	BlockSize         int      `json:"block_size"`
	Tokens            []uint64 `json:"tokens"`
	ExtraKeys         any      `json:"extra_keys"`
	ExtraKeysPerBlock [][]any  `json:"extra_keys_per_block"`
	BlockHashes       []string `json:"block_hashes"`
}

// TestGolden checks every chain of vLLM's for the algorithms that are here.
func TestGolden(t *testing.T) {
	ran := map[string]int{}
	dec := json.NewDecoder(bytes.NewReader(readShared(t, "hash_golden.jsonl")))
	dec.UseNumber()
	for dec.More() {
		var g goldenCase
		if err := dec.Decode(&g); err != nil {
			t.Fatal(err)
		}
		alg, err := hashing.ParseAlgorithm(g.Algo)
		if err != nil || g.Kind == "object" {
			continue
		}
		ran[g.Algo]++
		t.Run(g.Algo+"/"+g.Name, func(t *testing.T) { checkGolden(t, alg, &g) })
	}
	// Counted in the file: 15 chains and a request; 14 chains and a request.
	if ran["sha256_cbor"] != 16 || ran["xxhash_cbor"] != 15 {
		t.Errorf("ran %v, want 16 cases of sha256_cbor and 15 of xxhash_cbor", ran)
	}
}

func checkGolden(t *testing.T, alg hashing.Algorithm, g *goldenCase) {
	c := mustChain(t, alg, g.BlockSize, g.NoneHashSeed)
	if got := hex.EncodeToString(c.Digest()); got != g.NoneHash {
		t.Fatalf("root %s, want %s", got, g.NoneHash)
	}
	if keys, ok := g.ExtraKeys.([]any); ok {
		if err := c.SetExtraTuple(keysOf(t, keys)); err != nil {
			t.Fatal(err)
		}
	}
	var digests []byte
	for i := 0; i < len(g.Tokens); i += g.BlockSize {
		if n := i / g.BlockSize; n < len(g.ExtraKeysPerBlock) {
			if err := c.SetExtra(keysOf(t, g.ExtraKeysPerBlock[n])...); err != nil {
				t.Fatal(err)
			}
		}
		digests = c.AppendDigests(digests, g.Tokens[i:min(i+g.BlockSize, len(g.Tokens))])
	}
	size := alg.Size()
	if len(digests) != len(g.BlockHashes)*size {
		t.Fatalf("%d blocks, want %d", len(digests)/size, len(g.BlockHashes))
	}
	for i, want := range g.BlockHashes {
		if got := hex.EncodeToString(digests[i*size : (i+1)*size]); got != want {
			t.Errorf("block %d: %s, want %s", i, got, want)
		}
	}
}

// keysOf turns the file's notation of extra keys into SetExtra's.
func keysOf(t *testing.T, keys []any) []any {
	t.Helper()
	out := make([]any, len(keys))
	for i, k := range keys {
		switch k := k.(type) {
		case []any:
			out[i] = keysOf(t, k)
		case json.Number:
			n, err := k.Int64()
			if err != nil {
				t.Fatal(err)
			}
			out[i] = n
		case map[string]any:
			b, err := hex.DecodeString(k["bytes"].(string))
			if err != nil {
				t.Fatal(err)
			}
			out[i] = b
		default:
			out[i] = k
		}
	}
	return out
}
