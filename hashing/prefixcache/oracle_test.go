package prefixcache

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"testing"
)

// oracleCase is a trace for testdata/oracle.py.
type oracleCase struct {
	BlockSize  int     `json:"block_size"`
	Warmup     float64 `json:"warmup"`
	Capacities []int   `json:"capacities"`
	Requests   []any   `json:"requests"`

	sequence *Sequence
	longest  int
}

// drawOracleCase makes prompts that walk down a tree, mostly along known paths,
// each path with one length, so that a partial block is partial wherever it is.
func drawOracleCase(t *testing.T, rng *rand.Rand) *oracleCase {
	t.Helper()
	c := &oracleCase{BlockSize: 1 + rng.IntN(20), Warmup: float64(rng.IntN(10)) / 10}
	for range 1 + rng.IntN(5) {
		c.Capacities = append(c.Capacities, 1+rng.IntN(40))
	}
	s, err := NewSequence(c.BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	c.sequence = s
	branches := uint64(1 + rng.IntN(4))
	for range 1 + rng.IntN(120) {
		ids := make([]uint64, 1+rng.IntN(10))
		for i := range ids {
			ids[i] = rng.Uint64N(branches)
		}
		input := len(ids) * c.BlockSize
		if rng.IntN(2) == 0 { // a last block of its own kind, partly filled
			short := rng.IntN(c.BlockSize)
			ids[len(ids)-1] = uint64(1000 + short)
			input -= short
		}
		c.Requests = append(c.Requests, []any{input, ids})
		c.longest = max(c.longest, len(ids))
		if err := s.Add(ids, int64(input), 0); err != nil {
			t.Fatal(err)
		}
	}
	s.Freeze()
	return c
}

// TestAgainstKVCacheSimulator compares 400 random traces with kvcache-simulator
// of PyPI, to the token, wherever it says anything. LRU caches smaller than the
// longest prompt are left out: there it evicts the prompt's own blocks.
func TestAgainstKVCacheSimulator(t *testing.T) {
	if exec.Command("python3", "-c", "import kvcache_sim.policies").Run() != nil {
		t.Skip("python3 has no kvcache_sim: pip install kvcache-simulator==0.1.3")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var cases []*oracleCase
	var in bytes.Buffer
	for range 400 {
		c := drawOracleCase(t, rng)
		cases = append(cases, c)
		if err := json.NewEncoder(&in).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("python3", "testdata/oracle.py")
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	answers := json.NewDecoder(bytes.NewReader(out))
	for i, c := range cases {
		var answer struct {
			Ceiling int64
			Points  [][3]any
		}
		if err := answers.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		warmup := c.sequence.WarmupRequests(c.Warmup)
		if got := c.sequence.Ideal(warmup).HitTokens; got != answer.Ceiling {
			t.Errorf("trace %d: an endless cache hits %d tokens, want %d", i, got, answer.Ceiling)
		}
		for _, p := range answer.Points {
			policy, capacity, want := Policy(p[0].(string)), int(p[1].(float64)), int64(p[2].(float64))
			if policy == PolicyLRU && capacity < c.longest {
				continue
			}
			points, err := c.sequence.Curve([]Policy{policy}, []int{capacity}, warmup)
			if err != nil {
				t.Fatal(err)
			}
			if points[0].HitTokens != want {
				t.Errorf("trace %d, %s of %d blocks: got %d hit tokens, want %d", i, policy, capacity, points[0].HitTokens, want)
			}
			compared++
		}
	}
	t.Logf("%d values compared", compared)
}
