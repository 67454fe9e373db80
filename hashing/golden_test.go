package hashing_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"testing"

	"retrace/hashing"
)

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
	FirstBlock        string   `json:"first_block_serialized"`
	Payload           any
	Serialized        string
	Digest            string
}

// TestGolden checks every case of vLLM's own functions: 58 chains, two whole
// requests and 17 single objects, counted in the file.
func TestGolden(t *testing.T) {
	ran := map[string]int{}
	dec := json.NewDecoder(bytes.NewReader(readShared(t, "hash_golden.jsonl")))
	dec.UseNumber()
	for dec.More() {
		var g goldenCase
		if err := dec.Decode(&g); err != nil {
			t.Fatal(err)
		}
		alg, err := hashing.ParseAlgorithm(g.Algo, hashing.VLLM()...)
		if err != nil {
			t.Fatal(err)
		}
		ran[g.Kind]++
		t.Run(g.Algo+"/"+g.Name, func(t *testing.T) {
			if g.Kind == "object" {
				checkObject(t, alg, &g)
			} else {
				checkGolden(t, alg, &g)
			}
		})
	}
	if want := map[string]int{"chain": 58, "request": 2, "object": 17}; !maps.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

func checkObject(t *testing.T, alg hashing.Algorithm, g *goldenCase) {
	value := keysOf(t, []any{g.Payload})[0]
	got, err := alg.AppendValue(nil, value)
	if err != nil || hex.EncodeToString(got) != g.Serialized {
		t.Errorf("bytes %x, %v, want %s", got, err, g.Serialized)
	}
	h, err := hashing.NewHasher(alg)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := h.Append(nil, value); err != nil || hex.EncodeToString(sum) != g.Digest {
		t.Errorf("digest %x, %v, want %s", sum, err, g.Digest)
	}
}

func checkGolden(t *testing.T, alg hashing.Algorithm, g *goldenCase) {
	c := mustChain(t, alg, g.BlockSize, g.NoneHashSeed)
	if got := hex.EncodeToString(c.Digest()); got != g.NoneHash {
		t.Fatalf("root %s, want %s", got, g.NoneHash)
	}
	if keys, ok := g.ExtraKeys.([]any); ok {
		if err := c.SetExtraValue(keysOf(t, keys)); err != nil {
			t.Fatal(err)
		}
	}
	if g.FirstBlock != "" {
		var extra any
		if keys, ok := g.ExtraKeys.([]any); ok {
			extra = keysOf(t, keys)
		}
		got, err := alg.AppendValue(nil, []any{c.Digest(), g.Tokens[:g.BlockSize], extra})
		if err != nil || hex.EncodeToString(got) != g.FirstBlock {
			t.Errorf("first block is %x, %v, want %s", got, err, g.FirstBlock)
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
