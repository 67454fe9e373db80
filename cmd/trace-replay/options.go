package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"retrace/formats"
	"retrace/openai"
	"retrace/replay"
	"retrace/replay/prompt"
)

// sim is the --url that stands for the built-in server.
const sim = "sim"

// defaultKeyEnv is where the API key is taken from unless --api-key-env names
// another place.
const defaultKeyEnv = "OPENAI_API_KEY"

// options are the command's flags.
type options struct {
	flags *pflag.FlagSet
	trace string

	urls                     []string
	output                   string
	force                    bool
	model, api, prompt       string
	salt, vocab              string
	fresh                    bool
	serverBlock              int
	maxConcurrency, inFlight int
	timeout, maxDuration     time.Duration
	grace, maxLag, ready     time.Duration
	sessions, startAt        string
	ignoreEOS                bool
	maxInput, maxOutput      int64
	zeroOutput, extra        string
	headers                  []string
	keyEnv, caCert, proxy    string
	insecure, saveOutput     bool
	seed                     int64
	dryRun, json             bool

	arrival arrivalFlags
	metrics metricsFlags
	prompts promptFlags
	request apiFlags
	load    loadFlags

	source    *formats.Flags
	selection *formats.SelectionFlags
}

func (o *options) bind() *pflag.FlagSet {
	f := pflag.NewFlagSet("trace-replay", pflag.ContinueOnError)
	f.SortFlags = false
	o.flags = f
	f.StringArrayVar(&o.urls, "url", nil, "`URL`: the server's base, such as http://localhost:8000; several take turns; sim starts the built-in server; required")
	f.StringVarP(&o.output, "output", "o", "", "`PATH`: write a recording there; default: none")
	f.BoolVar(&o.force, "force", false, "overwrite an existing recording")
	f.StringVar(&o.model, "model", "", "`NAME`: the model to ask for; default: the first of /v1/models")
	f.StringVar(&o.api, "api", string(openai.Completions), "`NAME`: the API of generated prompts, "+apiNames()+"; a trace's bodies go to their own, with either of invocations to that")
	f.StringVar(&o.prompt, "prompt", "", "`tokens|text|literal`: what prompts are made of, literal being the trace's own bodies; default: literal where the trace has bodies, else tokens for completions and embeddings, text for the others")
	f.StringVar(&o.salt, "salt", "", "`TEXT`: makes prompts differ from those of other runs")
	f.BoolVar(&o.fresh, "fresh", false, "draw a salt at random and record it: for a server that is warm from an earlier run")
	f.StringVar(&o.vocab, "vocab", "", "`LO:HI`: the token ids of prompts; default 1000:31999")
	o.prompts.bind(f)
	f.IntVar(&o.serverBlock, "server-block-size", 0, "`N`: tokens in the server's prefix block, for predicted hits; default: from /metrics")
	o.request.bind(f)
	o.metrics.bind(f)
	o.selection = formats.BindSelection(f)
	o.source = formats.BindFlags(f)
	o.arrival.bind(f)
	f.StringVar(&o.sessions, "sessions", "", "`MODE`: when later turns leave, open (each at its own time) or closed (after its parent's end); default: open, closed where the trace's turns have delays only")
	f.StringVar(&o.startAt, "start-at", "", "`TIME`: the wall-clock time of the schedule's origin, RFC 3339, the same for all shards of a run; default: at once")
	f.IntVar(&o.maxConcurrency, "max-concurrency", 0, "`N`: let as many requests run at once, the others wait in line; default: no limit")
	f.IntVar(&o.inFlight, "max-in-flight", 16384, "`N`: do not send what comes while as many run or wait")
	o.load.bind(f)
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "`DURATION`: of one request, from its send to its end")
	f.DurationVar(&o.maxDuration, "max-duration", 0, "`DURATION`: stop sending so long after the origin; default: at the trace's end")
	f.DurationVar(&o.grace, "grace", 30*time.Second, "`DURATION`: let what is in flight end for so long after sending was stopped")
	f.DurationVar(&o.maxLag, "max-lag", 10*time.Millisecond, "`DURATION`: the schedule was not kept where the 99th percentile of lateness passes it")
	f.DurationVar(&o.ready, "ready-timeout", 10*time.Second, "`DURATION`: wait so long for a server that cannot be reached yet")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "ask for answers of exactly the wanted length (ignore_eos, min_tokens)")
	f.Int64Var(&o.maxInput, "max-input-tokens", 0, "`N`: cut prompts to as many tokens; default: no limit")
	f.Int64Var(&o.maxOutput, "max-output-tokens", 0, "`N`: ask for at most so many tokens; default: no limit")
	f.StringVar(&o.zeroOutput, "zero-output", string(replay.ZeroOne), "`one|skip|as-recorded`: send requests that failed at the source or have no output with one token, not, or as they are")
	f.StringVar(&o.extra, "extra", "", "`JSON`: an object whose members every body gets")
	f.StringArrayVar(&o.headers, "header", nil, "`K:V`: a header for every request; may be repeated")
	f.StringVar(&o.keyEnv, "api-key-env", defaultKeyEnv, "`NAME`: the environment's variable with the API key, which is sent to https or loopback URLs only")
	f.StringVar(&o.caCert, "cacert", "", "`FILE`: trust the certificates in this PEM file, and no others")
	f.BoolVar(&o.insecure, "insecure", false, "do not check the server's certificate")
	f.StringVar(&o.proxy, "proxy", "", "`URL`: send through this HTTP proxy; the environment's proxies are never used")
	f.BoolVar(&o.saveOutput, "save-output", false, "keep the answers' text in the recording")
	f.Int64Var(&o.seed, "seed", 0, "`N`: of all that is drawn at random, arrivals too; recorded")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and send nothing")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON, with --dry-run the plan")
	return f
}

// validate names the flag that is wrong.
func (o *options) validate(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("found %d arguments, expected one trace", len(args))
	}
	o.trace = args[0]
	if len(o.urls) == 0 && !o.dryRun {
		return errors.New("--url is required: a server's base URL, or sim for the built-in one")
	}
	checks := []struct {
		bad  bool
		text string
	}{
		{!oneOf(o.prompt, "", "tokens", "text", "literal"), "--prompt " + o.prompt + ": want tokens, text or literal"},
		{!oneOf(o.sessions, "", "open", "closed"), "--sessions " + o.sessions + ": want open or closed"},
		{!oneOf(o.zeroOutput, "one", "skip", "as-recorded"), "--zero-output " + o.zeroOutput + ": want one, skip or as-recorded"},
		{o.serverBlock < 0, "--server-block-size: want 1 or more"},
		{o.maxConcurrency < 0, "--max-concurrency: want 1 or more"},
		{o.inFlight < 1, "--max-in-flight: want 1 or more"},
		{o.timeout <= 0, "--timeout: want more than 0"},
		{o.maxDuration < 0, "--max-duration: want more than 0"},
		{o.grace < 0, "--grace: want 0 or more"},
		{o.maxLag <= 0, "--max-lag: want more than 0"},
		{o.ready < 0, "--ready-timeout: want 0 or more"},
		{o.maxInput < 0, "--max-input-tokens: want 1 or more"},
		{o.maxOutput < 0, "--max-output-tokens: want 1 or more"},
		{o.zero("server-block-size"), "--server-block-size 0: want 1 or more"},
		{o.zero("max-concurrency"), "--max-concurrency 0: want 1 or more (without the flag there is no limit)"},
		{o.zero("max-duration"), "--max-duration 0: want more than 0 (without the flag there is no limit)"},
		{o.zero("max-input-tokens"), "--max-input-tokens 0: want 1 or more (without the flag there is no limit)"},
		{o.zero("max-output-tokens"), "--max-output-tokens 0: want 1 or more (without the flag there is no limit)"},
		{o.fresh && o.flags.Changed("shard"), "--fresh and --shard exclude each other: each shard would draw a salt of its own; give all of them the same --salt"},
		{o.fresh && o.salt != "", "--fresh and --salt exclude each other"},
		{o.insecure && o.caCert != "", "--insecure and --cacert exclude each other"},
		{o.saveOutput && o.output == "", "--save-output needs a recording (-o)"},
		{o.force && o.output == "", "--force needs a recording (-o) to overwrite"},
		{o.output == "-", "-o -: a recording is written in place and needs a file"},
	}
	for _, c := range checks {
		if c.bad {
			return errors.New(c.text)
		}
	}
	if err := o.metrics.validate(); err != nil {
		return err
	}
	if err := o.request.validate(o); err != nil {
		return err
	}
	if err := o.load.validate(o); err != nil {
		return err
	}
	if o.vocab != "" {
		if _, _, err := prompt.ParseVocab(o.vocab); err != nil {
			return fmt.Errorf("--vocab: %w", err)
		}
	}
	if err := o.prompts.validate(); err != nil {
		return err
	}
	if _, err := o.start(); err != nil {
		return err
	}
	if _, err := o.header(); err != nil {
		return err
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	if o.dryRun && len(cfg.URLs) == 0 {
		cfg.URLs = []string{"http://localhost"}
	}
	if err := checkExtra(&cfg); err != nil {
		return err
	}
	return cfg.Validate()
}

// checkExtra names the flag in what is wrong with --extra.
func checkExtra(cfg *replay.Config) error {
	if err := cfg.ValidateExtra(); err != nil {
		return fmt.Errorf("--extra: %w", err)
	}
	return nil
}

// zero says whether the flag was given, and as 0.
func (o *options) zero(name string) bool {
	v := o.flags.Lookup(name).Value.String()
	return o.flags.Changed(name) && (v == "0" || v == "0s")
}

func oneOf(s string, list ...string) bool { return slices.Contains(list, s) }

func (o *options) start() (time.Time, error) {
	if o.startAt == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, o.startAt)
	if err != nil {
		return t, fmt.Errorf("--start-at %s: want a time like 2026-01-02T15:04:05Z", o.startAt)
	}
	return t, nil
}

func (o *options) header() (http.Header, error) {
	h := http.Header{}
	for _, line := range o.headers {
		name, value, found := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !found || !isToken(name) || strings.ContainsAny(value, "\r\n") {
			return nil, errors.New("--header: want NAME:VALUE (what was given is not repeated here, for it may be a secret)")
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

// tokenChars are the characters of a header's name: RFC 9110, §5.6.2.
const tokenChars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func isToken(name string) bool {
	return name != "" && strings.Trim(name, tokenChars) == ""
}

// config is the replay's configuration but for what the trace decides. A URL
// of "sim" stands as loopback until the server runs.
func (o *options) config() (replay.Config, error) {
	lo, hi := uint32(0), uint32(0)
	if o.vocab != "" {
		lo, hi, _ = prompt.ParseVocab(o.vocab) // validate has tried it
	}
	header, err := o.header()
	if err != nil {
		return replay.Config{}, err
	}
	start, err := o.start()
	if err != nil {
		return replay.Config{}, err
	}
	law, err := o.arrival.law()
	if err != nil {
		return replay.Config{}, err
	}
	c := replay.Config{
		API: openai.API(o.api), Model: o.model, Prompt: replay.PromptMode(o.prompt),
		Salt: o.salt, VocabLo: lo, VocabHi: hi, ServerBlockSize: o.serverBlock,
		Placing: replay.Placing{Law: law}, Seed: o.seed,
		Sessions: replay.SessionMode(o.sessions), StartAt: start,
		MaxConcurrency: o.maxConcurrency, MaxInFlight: o.inFlight,
		Timeout: o.timeout, MaxDuration: o.maxDuration, Grace: o.grace, ReadyTimeout: o.ready,
		IgnoreEOS: o.ignoreEOS, MaxInputTokens: o.maxInput, MaxOutputTokens: o.maxOutput,
		ZeroOutput: replay.ZeroPolicy(o.zeroOutput), Extra: []byte(o.extra), KeepOutput: o.saveOutput,
		Client: replay.ClientConfig{Headers: header, Insecure: o.insecure, Proxy: o.proxy},
	}
	o.metrics.apply(&c)
	o.request.apply(&c)
	o.load.apply(&c)
	if o.grace == 0 {
		c.Grace = -1 // 0 would be the default
	}
	if o.ready == 0 {
		c.ReadyTimeout = -1
	}
	for _, u := range o.urls {
		if u == sim {
			u = "http://127.0.0.1"
		}
		c.URLs = append(c.URLs, u)
	}
	if o.caCert != "" {
		if c.Client.CACert, err = os.ReadFile(o.caCert); err != nil {
			return c, fmt.Errorf("--cacert: %w", err)
		}
	}
	return c, nil
}

// key fetches the API key. Where it was not asked for and may not be sent, the
// note says that it is left out.
func (o *options) key(c *replay.Config) (note string, err error) {
	key := os.Getenv(o.keyEnv)
	named := o.flags.Changed("api-key-env")
	if key == "" {
		if named {
			return "", fmt.Errorf("--api-key-env %s: the variable is not set", o.keyEnv)
		}
		return "", nil
	}
	c.Client.APIKey = key
	if err := c.Validate(); errors.Is(err, replay.ErrKeyInClear) && !named {
		c.Client.APIKey = ""
		return o.keyEnv + " is set but not sent: " + err.Error(), nil
	}
	return "", nil
}
