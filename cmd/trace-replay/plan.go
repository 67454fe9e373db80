package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/internal/plural"
	"retrace/openai"
	"retrace/record"
	"retrace/replay"
	"retrace/replay/arrival"
)

// longest bounds a schedule: what time.Duration can hold is 292 years.
const longest = 100 * 365 * 24 * time.Hour

// plan reads the trace once, decides what it decides, and prints the plan.
func (c *command) plan(ctx context.Context, trace *formats.Trace, cfg *replay.Config) (*survey, error) {
	stopped := func() bool { return ctx.Err() != nil }
	plan, err := look(trace.Requests(), cfg, stopped)
	if err != nil {
		return nil, err
	}
	cfg.Header = trace.Header
	plan.whole.settle(cfg)
	if err := plan.choosePrompt(cfg); err != nil {
		return nil, err
	}
	if err := c.o.fits(plan, cfg); err != nil {
		return nil, cli.UsageError{Err: err}
	}
	if cfg.Placing.Law.Replaces() {
		if err := plan.retime(cfg.LineUp(trace.Requests()), stopped); err != nil {
			return nil, err
		}
	}
	if plan.last.Seconds() > cfg.Speed*longest.Seconds() {
		return nil, cli.UsageError{Err: fmt.Errorf("--speed %v: the schedule's %v would become more than 100 years", cfg.Speed, plan.last)}
	}
	note, err := c.o.prompts.apply(cfg, plan)
	if err != nil {
		return nil, err
	}
	if note != "" {
		c.note("%s", note)
	}
	if c.o.fresh {
		cfg.Salt = rand.Text()
	}
	report := trace.Report()
	for _, n := range report.Notes {
		c.note("%s", n)
	}
	for _, w := range report.Warnings {
		c.warn("%s", w)
	}
	if out := c.planOut(); out != nil {
		plan.print(out, c.o, cfg)
		if cfg.Salt != "" {
			fmt.Fprintf(out, "plan: salt %q\n", cfg.Salt)
		}
		c.o.load.describe(out)
	}
	if mean, median, odd := trace.OddRates(); odd && !cfg.Placing.Law.Replaces() {
		c.warn("the chosen window has %s requests/s on average, the file's median is %s: it is not like the rest",
			perSecond(mean), perSecond(median))
	}
	return plan, nil
}

// planOut is where the plan is printed as text: that of a dry run is its
// result. It is nil where the result is JSON.
func (c *command) planOut() io.Writer {
	switch {
	case !c.o.dryRun:
		return c.stderr
	case c.o.json:
		return nil
	}
	return c.stdout
}

// choosePrompt settles the kind of prompts where no flag does. Literal prompts
// need bodies.
func (s *survey) choosePrompt(cfg *replay.Config) error {
	switch {
	case cfg.Prompt == replay.Literal && s.bodies() == 0 && s.requests > 0:
		return cli.UsageError{Err: fmt.Errorf("--prompt literal: the trace has no bodies (0 of %s): "+
			"tokens and text make prompts of lengths and blocks", plural.Of(s.requests, "request"))}
	case cfg.Prompt != "":
	case s.bodies() > 0:
		cfg.Prompt = replay.Literal
	case cfg.API == openai.Transcriptions:
		return cli.UsageError{Err: errors.New("--api transcriptions: the trace has no bodies, and no audio is made up")}
	default:
		cfg.Prompt = replay.DefaultPrompt(cfg.API)
	}
	return nil
}

// dryRun adds to the plan what only planning each request tells.
func (c *command) dryRun(ctx context.Context, cfg *replay.Config, trace *formats.Trace, plan *survey, lossy bool) int {
	p, err := replay.Predict(*cfg, replay.Target{}, interruptibly(ctx, trace.Requests()))
	if err != nil {
		return c.stopped(ctx, err)
	}
	if c.o.json {
		report := plan.report(cfg, &p)
		report.Beside = c.o.load.report()
		err = writePlan(c.stdout, report)
	} else {
		printPrediction(c.stdout, plan, cfg, &p, cfg.ServerBlockSize == 0)
		_, err = fmt.Fprintln(c.stdout, "plan: dry run, nothing was sent")
	}
	if err != nil {
		return c.fail(fmt.Errorf("write plan: %w", err))
	}
	if lossy {
		report := trace.Report()
		c.tellLosses(&report)
		return exitLoss
	}
	return exitOK
}

// foretell prints the rest of the plan of a run, once the server is known.
func (c *command) foretell(ctx context.Context, cfg *replay.Config, t replay.Target, trace *formats.Trace, plan *survey) error {
	p, err := replay.Predict(*cfg, t, interruptibly(ctx, trace.Requests()))
	if err != nil {
		return err
	}
	if t.ServerBlockSize == 0 && cfg.Prompt != replay.Literal && replay.PredictsHits(cfg.API) {
		p.Tokens = 0 // nothing can be said of hits
		fmt.Fprintln(c.stderr, "plan: no predicted hits: the server does not tell the size of its prefix blocks (--server-block-size)")
	}
	printPrediction(c.stderr, plan, cfg, &p, false)
	return nil
}

// printPrediction writes the lines of the plan that only planning each request
// tells.
func printPrediction(w io.Writer, plan *survey, cfg *replay.Config, p *replay.Prediction, assumed bool) {
	if p.Tokens > 0 {
		history := ""
		if plan.increments > 0 {
			history = ", earlier turns included"
		}
		known := ""
		if assumed {
			known = " (assumed: the server was not asked; --server-block-size)"
		}
		cache := "an endless cache"
		if len(cfg.URLs) > 1 {
			cache += " each"
		}
		fmt.Fprintf(w, "plan: predicted hits %d of %d prompt tokens%s (%.4f), with server blocks of %d tokens%s and %s\n",
			p.Hits, p.Tokens, history, float64(p.Hits)/float64(p.Tokens), p.BlockSize, known, cache)
	}
	if p.Orphans > 0 {
		fmt.Fprintf(w, "plan: %s without the earlier turn of the session, which the trace or the chosen part of it lacks: of those the prompt is the new part alone\n",
			plural.Of(p.Orphans, "turn"))
	}
	for _, why := range slices.Sorted(maps.Keys(p.Left)) {
		fmt.Fprintf(w, "plan: not sent: %d: %s\n", p.Left[why], why)
	}
}

// interruptibly ends a pass over the requests when ctx ends.
func interruptibly(ctx context.Context, reqs iter.Seq2[record.Request, error]) iter.Seq2[record.Request, error] {
	return func(yield func(record.Request, error) bool) {
		n := 0
		for r, err := range reqs {
			if n++; n%lookEvery == 0 && ctx.Err() != nil {
				yield(r, errInterrupted)
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// planSchema names the JSON form of a plan.
const planSchema = "retrace.plan/1"

// planReport is the plan as JSON: docs/replay.md has every key with its unit.
type planReport struct {
	Schema        string           `json:"schema"`
	Requests      int64            `json:"requests"`
	Sessions      int64            `json:"sessions"`
	SessionMode   string           `json:"session_mode"`
	FirstS        *float64         `json:"first_s"`
	LastS         *float64         `json:"last_s"`
	SpanS         *float64         `json:"span_s"`
	RateRPS       *float64         `json:"rate_rps"`
	Speed         float64          `json:"speed"`
	InputTokens   int64            `json:"input_tokens"`
	InputUnknown  int64            `json:"input_unknown"`
	OutputTokens  int64            `json:"output_tokens"`
	OutputUnknown int64            `json:"output_unknown"`
	NoOutput      int64            `json:"no_output"`
	Prompt        string           `json:"prompt"`
	APIs          map[string]int64 `json:"apis"`
	Bodies        map[string]int64 `json:"bodies"`
	PrefixCache   *planCache       `json:"prefix_cache"`
	OrphanTurns   int64            `json:"orphan_turns"`
	NotSent       map[string]int64 `json:"not_sent"`
	Salt          string           `json:"salt"`
	Arrival       planArrival      `json:"arrival"`
	Beside        planBeside       `json:"beside"`
}

// planBeside is what is sent beyond the plan's requests, each once.
type planBeside struct {
	WarmUp        int      `json:"warmup_requests"`
	ProbeRateRPS  float64  `json:"probe_rate_rps"`
	Retries       int      `json:"retries"`
	RetryMaxTimeS *float64 `json:"retry_max_time_s"`
	Repeats       int      `json:"repeats"`
}

func (l *loadFlags) report() planBeside {
	b := planBeside{WarmUp: l.warmUp, ProbeRateRPS: l.probeRate, Retries: l.retries, Repeats: l.repeat}
	if l.retries > 0 {
		most := l.retryMaxTime.Seconds()
		b.RetryMaxTimeS = &most
	}
	return b
}

// planArrival is the law of a plan's arrivals: null where it has no such figure.
type planArrival struct {
	Name       string   `json:"name"`
	RateRPS    *float64 `json:"rate_rps"`
	Burstiness *float64 `json:"burstiness"`
	RampUp     *string  `json:"ramp_up"`
	StartRPS   *float64 `json:"ramp_start_rps"`
	EndRPS     *float64 `json:"ramp_end_rps"`
	Seed       int64    `json:"seed"`
}

func arrivalReport(cfg *replay.Config) planArrival {
	l := cfg.Placing.Law
	a := planArrival{Name: string(l.Name()), Seed: cfg.Seed}
	if l.Rate > 0 {
		a.RateRPS = &l.Rate
	}
	if l.Kind == arrival.Gamma {
		b := l.Shape()
		a.Burstiness = &b
	}
	if l.RampUp != arrival.Level {
		ramp := string(l.RampUp)
		a.RampUp, a.StartRPS, a.EndRPS = &ramp, &l.Start, &l.End
	}
	return a
}

// planCache is what a plan's prompts can hit, in tokens.
type planCache struct {
	PredictedHits int64   `json:"predicted_hit_tokens"`
	PromptTokens  int64   `json:"prompt_tokens"`
	HitRate       float64 `json:"predicted_token_hit_rate"`
	BlockSize     int     `json:"server_block_size"`
	Assumed       bool    `json:"server_block_size_assumed"`
}

// report is the plan of a dry run.
func (s *survey) report(cfg *replay.Config, p *replay.Prediction) *planReport {
	r := &planReport{
		Schema: planSchema, Requests: s.requests, Sessions: s.sessions, SessionMode: string(cfg.Sessions), Speed: cfg.Speed,
		InputTokens: s.input, InputUnknown: s.inputUnknown, OutputTokens: s.output, OutputUnknown: s.outputNot, NoOutput: s.zero,
		Prompt: string(cfg.Prompt), APIs: s.apis(cfg), Bodies: s.byAPI, OrphanTurns: p.Orphans, NotSent: p.Left, Salt: cfg.Salt,
		Arrival: arrivalReport(cfg),
	}
	if s.timed {
		first, last := s.first.Seconds()/cfg.Speed, s.last.Seconds()/cfg.Speed
		span := (s.last - s.first).Seconds() / cfg.Speed
		r.FirstS, r.LastS, r.SpanS = &first, &last, &span
	}
	if rate := s.mean() * cfg.Speed; rate > 0 {
		r.RateRPS = &rate
	}
	if p.Tokens > 0 {
		r.PrefixCache = &planCache{
			PredictedHits: p.Hits, PromptTokens: p.Tokens, HitRate: float64(p.Hits) / float64(p.Tokens),
			BlockSize: p.BlockSize, Assumed: cfg.ServerBlockSize == 0,
		}
	}
	return r
}

func writePlan(w io.Writer, r *planReport) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// isUsage says whether the trace showed that a flag does not fit it.
func isUsage(err error) bool {
	var wrong cli.UsageError
	return errors.As(err, &wrong)
}
