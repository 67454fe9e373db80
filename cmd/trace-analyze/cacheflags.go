package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"retrace/analysis"
)

// cacheFlags are the flags of a trace's cache analysis beyond the curve's.
type cacheFlags struct {
	blockSize   int
	shareModels bool
	kvBytes     string
	top         int

	bytesPerToken int64
}

// cacheFlagNames fit traces alone.
var cacheFlagNames = []string{"cache-block-size", "share-models", "kv-bytes-per-token", "top"}

// defaultTop is how many shared prefixes are listed.
const defaultTop = 10

func (c *cacheFlags) bind(fs *pflag.FlagSet) {
	fs.IntVar(&c.blockSize, "cache-block-size", 0, "`TOKENS`: the caches' block size, a multiple of the trace's; default: the trace's own; for traces")
	fs.BoolVar(&c.shareModels, "share-models", false, "let requests to different models and adapters hit each other's blocks; for traces")
	fs.StringVar(&c.kvBytes, "kv-bytes-per-token", "", "`SIZE`: what a token takes in the cache, such as 131072 or 128KiB, to show capacities in bytes; for traces")
	fs.IntVar(&c.top, "top", defaultTop, "`N`: how many shared prefixes are listed; for traces")
}

func (c *cacheFlags) validate(changed func(string) bool) (err error) {
	if changed("cache-block-size") && c.blockSize < 1 {
		return fmt.Errorf("--cache-block-size %d: expected a multiple of the trace's block size", c.blockSize)
	}
	if c.top < 0 {
		return fmt.Errorf("--top %d: expected 0 or more", c.top)
	}
	if changed("kv-bytes-per-token") {
		if c.bytesPerToken, err = parseBytes(c.kvBytes); err != nil {
			return fmt.Errorf("--kv-bytes-per-token %q: %w", c.kvBytes, err)
		}
	}
	return nil
}

// apply puts what was given into the options of an analysis.
func (c *cacheFlags) apply(o *analysis.TraceOptions) {
	o.CacheBlockSize, o.ShareModels, o.KVBytesPerToken, o.Top = c.blockSize, c.shareModels, c.bytesPerToken, c.top
}

// byteUnits are the suffixes of a number of bytes.
var byteUnits = []struct {
	suffix string
	bytes  float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// mostBytes is far more than a token takes.
const mostBytes = 1 << 40

// parseBytes reads a positive number of whole bytes, with a unit or without.
func parseBytes(text string) (int64, error) {
	number, unit := text, 1.0
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	bytes := n * unit
	if err != nil || !(bytes >= 1 && bytes <= mostBytes) || bytes != math.Trunc(bytes) {
		return 0, fmt.Errorf("expected whole bytes from 1 to %d, such as 131072, 128KiB or 0.5MiB", int64(mostBytes))
	}
	return int64(bytes), nil
}
