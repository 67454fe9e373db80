package simserver

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config describes a simulated server. In a zero Config every count takes its
// default and every cost is zero: an instant server. DefaultConfig has the
// default costs as well.
type Config struct {
	// Model is the name that /v1/models tells first; default "sim".
	Model string
	// Aliases are further names of the same model.
	Aliases []string
	// Adapters are the names of LoRA adapters, each a model of its own whose
	// blocks are nobody else's.
	Adapters []string
	// BlockSize is the number of tokens in a KV-cache block; default 16.
	BlockSize int
	// CacheBlocks is the number of usable KV-cache blocks; default 24,576,
	// which is 393,216 tokens or 52 GB for an 8B model (131,072 bytes a token).
	CacheBlocks int
	// MaxModelLen is the longest prompt with its output, in tokens; default
	// 131,072 or what the cache holds, whichever is less.
	MaxModelLen int
	// MaxBatch is the largest number of sequences in a step; default 256.
	MaxBatch int
	// MaxBatchTokens is the largest number of tokens in a step, of prefill and
	// decoding together; longer prompts are prefilled in chunks. Default 8,192.
	MaxBatchTokens int

	// PrefillTokensPerSecond is the speed of prefill; 0 or +Inf: no cost.
	PrefillTokensPerSecond float64
	// DecodeStep is the time of a step that decodes one sequence; 0: no cost.
	DecodeStep time.Duration
	// BatchSlowdown is what each further decoding sequence adds to a step, as
	// a part of DecodeStep.
	BatchSlowdown float64

	// VocabSize bounds the token ids; default 151,936.
	VocabSize int
	// BOSTokens are put before every text prompt, ChatTemplateTokens before
	// every chat as well.
	BOSTokens          int
	ChatTemplateTokens int
	// AnswerTokens is where an answer ends of itself (finish_reason "stop")
	// where the request sets no limit and does not ignore the end; default 128.
	AnswerTokens int
	// ReasoningTokens are put before every chat's and response's answer, which
	// they lengthen; a request may ask for more or none. Default 0.
	ReasoningTokens int
	// ImageTokens, VideoTokens and FileTokens are what one of these costs in a
	// prompt; defaults 256, 1,024 and 256.
	ImageTokens, VideoTokens, FileTokens int
	// AudioTokensPerSecond is what sound costs; default 25.
	AudioTokensPerSecond int
	// RequestMetrics puts vLLM's per-request metrics into answers.
	RequestMetrics bool

	// Faults are what goes wrong on purpose; none by default.
	Faults Faults
	// Seed chooses the requests that faults befall.
	Seed uint64
}

// DefaultConfig is like an 8B model in 16-bit weights on one large (80 GB,
// 3.35 TB/s, 1 PFLOP/s) GPU. docs/simserver.md gives the reasons.
func DefaultConfig() Config {
	c := Config{
		PrefillTokensPerSecond: 25_000,
		DecodeStep:             8 * time.Millisecond,
		BatchSlowdown:          0.005,
		ChatTemplateTokens:     8,
	}
	c.fill()
	return c
}

// fill puts the defaults in place of zero counts.
func (c *Config) fill() {
	if c.Model == "" {
		c.Model = "sim"
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.BlockSize, 16}, {&c.CacheBlocks, 24_576}, {&c.MaxBatch, 256},
		{&c.MaxBatchTokens, 8192}, {&c.VocabSize, 151_936}, {&c.AnswerTokens, 128},
		{&c.ImageTokens, 256}, {&c.VideoTokens, 1024}, {&c.FileTokens, 256}, {&c.AudioTokensPerSecond, 25},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.MaxModelLen == 0 && c.CacheBlocks > 0 && c.BlockSize > 0 {
		c.MaxModelLen = int(min(131_072, int64(c.CacheBlocks)*int64(c.BlockSize)))
	}
}

// maxCount bounds every count of a Config.
const maxCount = 1 << 30

// Validate says which field, if any, has a value that no server can have.
// Zero counts are defaults and valid.
func (c Config) Validate() error {
	c.fill()
	for _, f := range []struct {
		name     string
		value    int
		min, max int
	}{
		{"block size", c.BlockSize, 1, 1 << 20},
		{"cache blocks", c.CacheBlocks, 1, maxCount},
		{"max model len", c.MaxModelLen, 2, maxCount},
		{"max batch", c.MaxBatch, 1, maxCount},
		{"max batch tokens", c.MaxBatchTokens, 1, maxCount},
		{"vocab size", c.VocabSize, minVocab, maxCount},
		{"bos tokens", c.BOSTokens, 0, 1 << 20},
		{"chat template tokens", c.ChatTemplateTokens, 0, 1 << 20},
		{"answer tokens", c.AnswerTokens, 1, maxCount},
		{"reasoning tokens", c.ReasoningTokens, 0, maxCount},
		{"image tokens", c.ImageTokens, 1, 1 << 20},
		{"video tokens", c.VideoTokens, 1, 1 << 20},
		{"file tokens", c.FileTokens, 1, 1 << 20},
		{"audio tokens per second", c.AudioTokensPerSecond, 1, 1 << 20},
	} {
		if f.value < f.min || f.value > f.max {
			return fmt.Errorf("check %s: found %d, expected %d to %d", f.name, f.value, f.min, f.max)
		}
	}
	if have := int64(c.CacheBlocks) * int64(c.BlockSize); int64(c.MaxModelLen) > have {
		return fmt.Errorf("check max model len: found %d, expected at most %d, the tokens that %d cache blocks of %d hold",
			c.MaxModelLen, have, c.CacheBlocks, c.BlockSize)
	}
	if err := c.validateNames(); err != nil {
		return err
	}
	return c.validateCosts()
}

// validateNames checks that every name is one, and of one model only.
func (c Config) validateNames() error {
	seen := map[string]bool{c.Model: true}
	for _, name := range append(append([]string{}, c.Aliases...), c.Adapters...) {
		if name == "" {
			return errors.New("check model names: found an empty name, expected a name")
		}
		if seen[name] {
			return fmt.Errorf("check model names: found %q twice, expected once", name)
		}
		seen[name] = true
	}
	return nil
}

func (c Config) validateCosts() error {
	if r := c.PrefillTokensPerSecond; math.IsNaN(r) || r < 0 {
		return fmt.Errorf("check prefill tokens per second: found %v, expected at least 0", r)
	}
	if c.DecodeStep < 0 {
		return fmt.Errorf("check decode step: found %v, expected at least 0s", c.DecodeStep)
	}
	if s := c.BatchSlowdown; math.IsNaN(s) || s < 0 || s > 1 {
		return fmt.Errorf("check batch slowdown: found %v, expected 0 to 1", s)
	}
	return c.Faults.validate()
}

// instant says that no step takes time.
func (c *Config) instant() bool {
	return c.DecodeStep == 0 && (c.PrefillTokensPerSecond == 0 || math.IsInf(c.PrefillTokensPerSecond, 1))
}

// stepCost is the time of one step: a + b·prefill tokens + c·decoding
// sequences, with a = DecodeStep·(1−BatchSlowdown), b = 1/PrefillTokensPerSecond
// and c = DecodeStep·BatchSlowdown. So a step that decodes one sequence takes
// DecodeStep.
func (c *Config) stepCost(prefill, decoding int) time.Duration {
	step := float64(c.DecodeStep)
	cost := step*(1-c.BatchSlowdown) + step*c.BatchSlowdown*float64(decoding)
	if c.PrefillTokensPerSecond > 0 {
		cost += float64(prefill) / c.PrefillTokensPerSecond * float64(time.Second)
	}
	return time.Duration(cost)
}
