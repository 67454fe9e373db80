package analysis

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrace/hashing"
)

// HashBenchSchema names the form of the JSON of a HashBench.
const HashBenchSchema = "retrace.bench-hash/1"

// MaxHashBenchTokens bounds the tokens of a benchmark of hashes, which are
// made ahead: 512 MB of them.
const MaxHashBenchTokens = 1 << 27

// What a benchmark of calls hashes, as vLLM's does: 32 bytes and 32 ids below a
// million. So many calls make one value, for reading the clock takes as long
// as a call.
const (
	callBytes  = 32
	callInts   = 32
	callVocab  = 1_000_000
	callsBatch = 100
	batches    = 10
)

// turnBlocks is how many blocks are hashed between two looks at the clock.
const turnBlocks = 1000

// rawBytes bounds the serialised blocks that the raw digest is measured on.
const rawBytes = 64 << 20

// HashBenchOptions say what to measure.
type HashBenchOptions struct {
	Algorithms                   []hashing.Algorithm
	NumBlocks, BlockSize, Trials int
	// Seed draws the order of the algorithms in each trial, and the object that
	// calls hash. The tokens of the blocks follow a fixed rule.
	Seed uint64
}

// HashBench is how fast block hashes are here.
type HashBench struct {
	Schema    string            `json:"schema"`
	NumBlocks int               `json:"num_blocks"`
	BlockSize int               `json:"block_size"`
	Results   []HashBenchResult `json:"results"`
	// Skipped are algorithms that were asked for and are not there.
	Skipped []string `json:"skipped"`
	Trials  int      `json:"trials"`
	Seed    uint64   `json:"seed"`
}

// HashBenchResult is how fast one algorithm is.
type HashBenchResult struct {
	Algorithm string `json:"algorithm"`
	// BlocksPerS, TokensPerS and NsPerBlock have one value a trial, which hashes
	// all blocks as one chain.
	BlocksPerS Stats `json:"blocks_per_s"`
	TokensPerS Stats `json:"tokens_per_s"`
	NsPerBlock Stats `json:"ns_per_block"`
	// RawDigestRatio is the time of the digest alone, over the same bytes, as a
	// share of the whole: the median over turns of a thousand blocks.
	RawDigestRatio Value `json:"raw_digest_ratio"`
	// NsPerCall has one value for each hundred calls on a (bytes, tuple of
	// integers) object.
	NsPerCall Stats `json:"ns_per_call"`
	// LastHash is the last block's digest in hex.
	LastHash string `json:"last_hash"`
	// Digest says what is digested how.
	Digest string `json:"digest"`
}

// hashBench is one algorithm being measured.
type hashBench struct {
	alg    hashing.Algorithm
	chain  *hashing.Chain
	hasher *hashing.Hasher
	data   []byte // serialised blocks
	ends   []int

	blocks, tokens, ns, ratio, call Sample
}

// RunHashBench measures the algorithms, trial by trial.
func RunHashBench(ctx context.Context, o HashBenchOptions) (*HashBench, error) {
	if o.NumBlocks < 1 || o.BlockSize < 1 || o.Trials < 1 || o.NumBlocks > MaxHashBenchTokens/o.BlockSize {
		return nil, fmt.Errorf("benchmark hashes: found %d blocks of %d tokens and %d trials, expected at least 1 each and at most %d tokens",
			o.NumBlocks, o.BlockSize, o.Trials, MaxHashBenchTokens)
	}
	tokens := make([]uint32, o.NumBlocks*o.BlockSize)
	for j := range tokens {
		tokens[j] = uint32((uint64(j)*7919 + 13) % 151643)
	}
	draw := rand.New(rand.NewPCG(o.Seed, 0x68617368)) // "hash"
	payload := callPayload(draw)
	all := make([]*hashBench, len(o.Algorithms))
	for i, alg := range o.Algorithms {
		var err error
		if all[i], err = newHashBench(alg, tokens, o.BlockSize); err != nil {
			return nil, fmt.Errorf("benchmark hashes: %w", err)
		}
	}
	for range o.Trials {
		for _, i := range draw.Perm(len(all)) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err := all[i].trial(tokens, payload); err != nil {
				return nil, fmt.Errorf("benchmark hashes: %w", err)
			}
		}
	}
	b := &HashBench{Schema: HashBenchSchema, NumBlocks: o.NumBlocks, BlockSize: o.BlockSize, Skipped: []string{}, Trials: o.Trials, Seed: o.Seed}
	for _, m := range all {
		b.Results = append(b.Results, m.result())
	}
	return b, nil
}

// callPayload draws the object that calls hash.
func callPayload(draw *rand.Rand) any {
	data, ints := make([]byte, callBytes), make([]uint32, callInts)
	for i := range data {
		data[i] = byte(draw.Uint32())
	}
	for i := range ints {
		ints[i] = draw.Uint32N(callVocab)
	}
	return []any{data, ints}
}

// newHashBench serialises the blocks for the raw digest.
func newHashBench(alg hashing.Algorithm, tokens []uint32, size int) (*hashBench, error) {
	chain, err := hashing.NewChain(alg, size, "0")
	if err != nil {
		return nil, err
	}
	hasher, err := hashing.NewHasher(alg)
	if err != nil {
		return nil, err
	}
	b := &hashBench{alg: alg, chain: chain, hasher: hasher, ends: []int{0}}
	var event []uint64
	for i := 0; i < len(tokens) && len(b.data) < rawBytes; i += size {
		if b.data, err = alg.AppendValue(b.data, []any{chain.Digest(), tokens[i : i+size], nil}); err != nil {
			return nil, err
		}
		b.ends = append(b.ends, len(b.data))
		event = chain.Append(event[:0], tokens[i:i+size])
	}
	return b, nil
}

// trial hashes all blocks, the bytes of the blocks alone, and the object. The
// first two take turns, each on the same blocks, so that what disturbs the one
// disturbs the other too.
func (b *hashBench) trial(tokens []uint32, payload any) error {
	size := b.chain.BlockSize()
	n := len(tokens) / size
	events := make([]uint64, 0, turnBlocks)
	sum := make([]byte, 0, 32)
	var whole float64
	b.chain.Reset()
	for from, to := 0, 0; from < n; from = to {
		to = min(from+turnBlocks, n)
		raw := from < len(b.ends)-1 // there are bytes of these blocks
		if raw {
			to = min(to, len(b.ends)-1)
		}
		turn := elapsed(func() { b.chain.Append(events, tokens[from*size:to*size]) })
		whole += turn
		if raw {
			b.ratio.Add(1 / turn * elapsed(func() {
				for i := from; i < to; i++ {
					sum = b.alg.AppendSum(sum[:0], b.data[b.ends[i]:b.ends[i+1]])
				}
			}))
		}
	}
	whole /= float64(n)
	b.blocks.Add(1 / whole)
	b.tokens.Add(float64(size) / whole)
	b.ns.Add(whole * 1e9)
	var err error
	for range batches {
		b.call.Add(1e9 / callsBatch * elapsed(func() {
			for range callsBatch {
				if err == nil {
					sum, err = b.hasher.Append(sum[:0], payload)
				}
			}
		}))
	}
	return err
}

// elapsed is how long f takes.
func elapsed(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

func (b *hashBench) result() HashBenchResult {
	return HashBenchResult{
		Algorithm: b.alg.String(), Digest: b.alg.About(), LastHash: hex.EncodeToString(b.chain.Digest()),
		BlocksPerS: b.blocks.Stats(), TokensPerS: b.tokens.Stats(), NsPerBlock: b.ns.Stats(),
		RawDigestRatio: b.ratio.Stats().P50, NsPerCall: b.call.Stats(),
	}
}

// WriteJSON writes the figures as one JSON object.
func (b *HashBench) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return fmt.Errorf("write benchmark of hashes: %w", err)
	}
	return nil
}

// WriteTable writes the figures for people.
func (b *HashBench) WriteTable(w io.Writer) error {
	p := &report{w: w}
	p.line("%d blocks of %d tokens, %d trials; medians, and the best in brackets", b.NumBlocks, b.BlockSize, b.Trials)
	p.line("")
	rows := make([][]string, 0, len(b.Results))
	for _, r := range b.Results {
		rows = append(rows, []string{
			r.Algorithm, figure(r.BlocksPerS.P50) + " (" + figure(r.BlocksPerS.Max) + ")", figure(r.TokensPerS.P50),
			figure(r.NsPerBlock.P50), share(r.RawDigestRatio), figure(r.NsPerCall.P50), r.LastHash[:min(16, len(r.LastHash))],
		})
	}
	p.table([]string{"algorithm", "blocks/s", "tokens/s", "ns/block", "raw digest", "ns/call", "last hash begins"}, rows)
	p.line("")
	for _, r := range b.Results {
		p.line("%s: %s", r.Algorithm, r.Digest)
	}
	p.line("raw digest: the time of the digest alone, over the same bytes, as a share of the whole")
	p.line("ns/call: one object of %d bytes and %d integers", callBytes, callInts)
	if len(b.Skipped) > 0 {
		p.line("skipped: %s", strings.Join(b.Skipped, ", "))
	}
	return p.end("benchmark of hashes")
}

// share is a share of one with two decimals.
func share(v Value) string {
	if x, ok := v.Get(); ok {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return absent
}

// PickAlgorithms finds algorithms by their names, each once, and gives back the
// names that are none.
func PickAlgorithms(names []string) (algs []hashing.Algorithm, unknown []string) {
	for _, name := range names {
		alg, err := hashing.ParseAlgorithm(strings.TrimSpace(name))
		if err != nil {
			unknown = append(unknown, strings.TrimSpace(name))
		} else if !slices.Contains(algs, alg) {
			algs = append(algs, alg)
		}
	}
	return algs, unknown
}
