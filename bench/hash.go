package main

import (
	"bytes"
	"context"
	_ "embed" // the Python to compare with
	"encoding/hex"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrace/hashing"
)

//go:embed hash.py
var hashScript string

// What measureHash hashes: blocks of so many tokens, in one chain.
const (
	hashBlocks    = 10_000
	hashBlockSize = 32
)

// hashTimings are the seconds of each pass, and the last digest in hex.
type hashTimings struct {
	seconds map[string][]float64
	last    map[string]string
}

// measureHash hashes the same blocks here, on one core, and in Python, in turns.
func measureHash(ctx context.Context, o *options) error {
	if exec.CommandContext(ctx, o.python, "-c", "import cbor2, xxhash").Run() != nil {
		fmt.Fprintf(o.stdout, "`%s` has no cbor2 and xxhash to compare with.\n", o.python)
		return nil
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	tokens := make([]uint32, hashBlocks*hashBlockSize)
	for j := range tokens {
		tokens[j] = uint32((j*7919 + 13) % 151643)
	}
	ours := hashTimings{map[string][]float64{}, map[string]string{}}
	theirs := hashTimings{map[string][]float64{}, map[string]string{}}
	for range o.rounds {
		for _, alg := range hashing.VLLM() {
			if err := ours.hash(alg, tokens); err != nil {
				return err
			}
		}
		if err := theirs.hashPython(ctx, o); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.stdout, "%d blocks of %d tokens; one core; medians of %d passes in %d alternating rounds, the best in brackets.\n\n",
		hashBlocks, hashBlockSize, passes*o.rounds, o.rounds)
	fmt.Fprintf(o.stdout, "| algorithm | here, blocks/s | Python, blocks/s | ratio |\n| --- | --- | --- | --- |\n")
	for _, alg := range hashing.VLLM() {
		name := alg.String()
		if ours.last[name] != theirs.last[name] {
			return fmt.Errorf("compare %s: last digest here %s, in Python %s", name, ours.last[name], theirs.last[name])
		}
		a, b := ours.seconds[name], theirs.seconds[name]
		fmt.Fprintf(o.stdout, "| %s | %s | %s | %.1f (%.1f) |\n", name, blockRates(a), blockRates(b), median(b)/median(a), slices.Min(b)/slices.Min(a))
	}
	return nil
}

// blockRates are the median and the best speed, as one cell.
func blockRates(seconds []float64) string {
	return fmt.Sprintf("%.0f (%.0f)", hashBlocks/median(seconds), hashBlocks/slices.Min(seconds))
}

// hash makes the passes of one round here.
func (t *hashTimings) hash(alg hashing.Algorithm, tokens []uint32) error {
	c, err := hashing.NewChain(alg, hashBlockSize, "0")
	if err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	name := alg.String()
	events := make([]uint64, 0, hashBlocks)
	for range passes {
		c.Reset()
		start := time.Now()
		events = c.Append(events[:0], tokens)
		t.seconds[name] = append(t.seconds[name], time.Since(start).Seconds())
	}
	t.last[name] = hex.EncodeToString(c.Digest())
	return nil
}

// hashPython adds the passes of one round that Python makes.
func (t *hashTimings) hashPython(ctx context.Context, o *options) error {
	cmd := exec.CommandContext(ctx, o.python, "-", strconv.Itoa(hashBlocks), strconv.Itoa(hashBlockSize), strconv.Itoa(passes))
	cmd.Stdin = strings.NewReader(hashScript)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("hash in Python: %w\n%s", err, errs.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		var name, last string
		var seconds float64
		if _, err := fmt.Sscan(line, &name, &seconds, &last); err != nil {
			return fmt.Errorf("hash in Python: read %q: %w", line, err)
		}
		t.seconds[name], t.last[name] = append(t.seconds[name], seconds), last
	}
	return nil
}
