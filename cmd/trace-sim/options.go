package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"retrace/cmd/internal/cli"
	"retrace/replay/simserver"
)

// options are the flags of the command.
type options struct {
	listen string
	faults string
	models []string
	grace  time.Duration
	config simserver.Config
}

// defaultListen is where vLLM listens, but for this machine only.
const defaultListen = "127.0.0.1:8000"

// flagNames names the flag of each field that simserver's checks may refuse.
var flagNames = map[string]string{
	"block size": "--block-size", "cache blocks": "--cache-blocks", "max model len": "--max-model-len",
	"max batch": "--max-batch", "max batch tokens": "--max-batch-tokens", "vocab size": "--vocab-size",
	"bos tokens": "--bos-tokens", "chat template tokens": "--chat-template-tokens", "answer tokens": "--answer-tokens",
	"reasoning tokens": "--reasoning-tokens", "image tokens": "--image-tokens", "video tokens": "--video-tokens", "file tokens": "--file-tokens",
	"audio tokens per second": "--audio-tokens-per-s", "model names": "--model, --lora",
	"prefill tokens per second": "--prefill-tokens-per-s", "decode step": "--decode-step", "batch slowdown": "--batch-slowdown",
}

// bind makes the flag set.
func (o *options) bind() *pflag.FlagSet {
	o.config = simserver.DefaultConfig()
	c := &o.config
	c.MaxModelLen = 0 // what the cache holds decides
	f := pflag.NewFlagSet("trace-sim", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&o.listen, "listen", defaultListen, "`HOST:PORT`: where to listen; port 0 picks a free one")
	f.StringSliceVar(&o.models, "model", []string{c.Model}, "`NAMES`: of the model, separated by commas; answers have the first")
	f.Lookup("model").DefValue = c.Model // without pflag's brackets
	f.StringSliceVar(&c.Adapters, "lora", nil, "`NAMES`: of LoRA adapters, separated by commas, each asked for as a model")
	f.Float64Var(&c.PrefillTokensPerSecond, "prefill-tokens-per-s", c.PrefillTokensPerSecond, "`R`: speed of prefill; 0 or inf: no cost")
	f.DurationVar(&c.DecodeStep, "decode-step", c.DecodeStep, "time of a step that decodes one sequence; 0: no cost")
	f.Float64Var(&c.BatchSlowdown, "batch-slowdown", c.BatchSlowdown, "`X`: what each further decoding sequence adds to a step, as a part of --decode-step")
	f.IntVar(&c.CacheBlocks, "cache-blocks", c.CacheBlocks, "usable blocks of the KV cache")
	f.IntVar(&c.BlockSize, "block-size", c.BlockSize, "tokens in a block")
	f.IntVar(&c.MaxBatch, "max-batch", c.MaxBatch, "most sequences in a step")
	f.IntVar(&c.MaxBatchTokens, "max-batch-tokens", c.MaxBatchTokens, "most tokens in a step; longer prompts are prefilled in chunks")
	f.IntVar(&c.MaxModelLen, "max-model-len", 0, "longest prompt with its output; default: 131072, or what the cache holds if that is less")
	f.IntVar(&c.VocabSize, "vocab-size", c.VocabSize, "number of token ids")
	f.IntVar(&c.BOSTokens, "bos-tokens", c.BOSTokens, "tokens put before every text prompt")
	f.IntVar(&c.ChatTemplateTokens, "chat-template-tokens", c.ChatTemplateTokens, "tokens put before every chat, beside --bos-tokens")
	f.IntVar(&c.AnswerTokens, "answer-tokens", c.AnswerTokens, "where a chat's answer ends that has no max_tokens")
	f.IntVar(&c.ReasoningTokens, "reasoning-tokens", c.ReasoningTokens, "reasoning before the answers of chats and responses that ask for none of their own")
	f.IntVar(&c.ImageTokens, "image-tokens", c.ImageTokens, "what an image costs in a prompt")
	f.IntVar(&c.VideoTokens, "video-tokens", c.VideoTokens, "what a video costs")
	f.IntVar(&c.FileTokens, "file-tokens", c.FileTokens, "what a file costs")
	f.IntVar(&c.AudioTokensPerSecond, "audio-tokens-per-s", c.AudioTokensPerSecond, "what a second of sound costs")
	f.BoolVar(&c.RequestMetrics, "per-request-metrics", false, "put vLLM's per-request metrics into answers")
	f.StringVar(&o.faults, "faults", "", "`SPEC`: faults and their probabilities, as 429:0.1,cut:0.05 (kinds below)")
	f.Uint64Var(&c.Seed, "seed", 0, "chooses the requests that faults befall")
	f.DurationVar(&o.grace, "grace", 5*time.Second, "how long running requests may go on after a signal to stop")
	return f
}

// validate checks the flags and names the one that is wrong.
func (o *options) validate() error {
	var err error
	if o.config.Faults, err = simserver.ParseFaults(o.faults); err != nil {
		return fmt.Errorf("--faults: %w", err)
	}
	if err := checkListen(o.listen); err != nil {
		return err
	}
	if o.grace < 0 {
		return fmt.Errorf("--grace: found %v, expected at least 0s", o.grace)
	}
	if len(o.models) == 0 || o.models[0] == "" {
		return errors.New("--model: found nothing, expected a name")
	}
	o.config.Model, o.config.Aliases = o.models[0], o.models[1:]
	if math.IsInf(o.config.PrefillTokensPerSecond, 1) {
		o.config.PrefillTokensPerSecond = 0
	}
	if err := o.zeroCounts(); err != nil {
		return err
	}
	if err := o.config.Validate(); err != nil {
		return nameFlag(err)
	}
	return nil
}

// checkListen finds what can be no address.
func checkListen(addr string) error {
	if cli.ValidAddress(addr) {
		return nil
	}
	found := addr
	if addr == "" {
		found = "nothing"
	}
	return fmt.Errorf("--listen: found %s, expected HOST:PORT as %s", found, defaultListen)
}

// zeroCounts refuses zeros that simserver would take for "the default".
func (o *options) zeroCounts() error {
	c := &o.config
	for _, f := range []struct {
		flag  string
		value int
	}{
		{"--cache-blocks", c.CacheBlocks}, {"--block-size", c.BlockSize}, {"--max-batch", c.MaxBatch},
		{"--max-batch-tokens", c.MaxBatchTokens}, {"--vocab-size", c.VocabSize}, {"--answer-tokens", c.AnswerTokens},
		{"--image-tokens", c.ImageTokens}, {"--video-tokens", c.VideoTokens}, {"--file-tokens", c.FileTokens},
		{"--audio-tokens-per-s", c.AudioTokensPerSecond},
	} {
		if f.value == 0 {
			return fmt.Errorf("%s: found 0, expected at least 1", f.flag)
		}
	}
	return nil
}

// nameFlag puts the flag's name in place of the field's: "check F: …".
func nameFlag(err error) error {
	text := strings.TrimPrefix(err.Error(), "check ")
	field, rest, _ := strings.Cut(text, ": ")
	if flag, ok := flagNames[field]; ok {
		return errors.New(flag + ": " + rest)
	}
	return err
}

const usageHead = `trace-sim is a simulated inference server: the OpenAI-compatible API of vLLM
over a model of its scheduler and KV cache, in real time, without a GPU.

Usage:
  trace-sim [flags]

It serves /v1/completions, /v1/chat/completions, /v1/responses, /v1/embeddings,
/v1/rerank, /v1/audio/transcriptions, SageMaker's /invocations and
/invocations-response-stream, /v1/models, /tokenize, /detokenize, /health, /ping,
/version and /metrics (under vLLM's names); with media, tools, structured output,
reasoning, priorities and adapters (docs/simserver.md). A token is a white-space
separated word. A step takes
  a + b * prefill tokens + c * decoding sequences
with a + c = --decode-step, c = --batch-slowdown * --decode-step and
b = 1 / --prefill-tokens-per-s. The defaults are like an 8B model on one 80 GB GPU.

When it is ready it says so, with its address, in one line on stderr. SIGINT or
SIGTERM stop it: running requests get --grace to end; a second signal ends
them at once.

Examples:
  trace-sim
  trace-sim --listen 127.0.0.1:0 --decode-step 0 --prefill-tokens-per-s inf
  trace-sim --model base --lora sql,chat --reasoning-tokens 64 --per-request-metrics
  trace-sim --cache-blocks 2048 --faults 429:0.1,cut:0.05,hang:0.01 --seed 7

Flags:
`

const usageTail = `
Exit status: 0 stopped by SIGTERM; 1 failed (as a port in use); 2 wrong usage;
130 interrupted (SIGINT).
`

// usage writes the whole help.
func usage(w io.Writer, f *pflag.FlagSet) error {
	if _, err := io.WriteString(w, usageHead+cli.FlagUsages(f)+"\nFaults (each of so many parts of all generation requests):\n"); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, kind := range simserver.FaultKinds() {
		fmt.Fprintf(tw, "  %s\t%s\n", kind, simserver.FaultMeaning(kind))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, usageTail)
	return err
}
