package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"retrace/internal/plural"
	"retrace/openai"
	"retrace/replay"
)

// loadFlags say how requests are let through, what is sent beside them, and how
// often all of it.
type loadFlags struct {
	set                             *pflag.FlagSet
	overflow, failedTurn, assistant string
	maxDelay, retryMaxTime          time.Duration
	warmUp, retries, repeat         int
	probeRate                       float64
	samePrompts                     bool
	dnsRefresh                      time.Duration
}

func (l *loadFlags) bind(f *pflag.FlagSet) {
	l.set = f
	f.StringVar(&l.overflow, "overflow", string(replay.Queue), "`queue|shed`: what becomes of a request that is due while --max-concurrency others run: it waits in line, or is not sent")
	f.DurationVar(&l.maxDelay, "max-delay", 0, "`DURATION`: let turns wait at most so long after their parent's end, before --speed; default: the trace's delays")
	f.StringVar(&l.failedTurn, "failed-turn", string(replay.StopSession), "`stop|continue`: what becomes of the turns that wait for one that failed: they are not sent, or go on after its end")
	f.StringVar(&l.assistant, "assistant", string(replay.RecordedAnswers), "`recorded|live`: whose words the later turns of chat bodies hold, the trace's or the server's own of this run; live needs closed sessions")
	f.IntVar(&l.warmUp, "warmup-requests", 0, "`N`: before the schedule's origin, send N requests in the shapes of the trace's first, with prompts of their own; they are in no figure")
	f.Float64Var(&l.probeRate, "probe-rate", 0, "`R`: beside the load, send R requests a second for one token each, which no limit holds back; they are reported apart")
	f.IntVar(&l.retries, "retries", 0, "`N`: make a request again, up to N times, after 429, 5xx or a lost connection; default: never")
	f.DurationVar(&l.retryMaxTime, "retry-max-time", time.Minute, "`DURATION`: from a request's first attempt to its last")
	f.DurationVar(&l.dnsRefresh, "dns-refresh", 0, "`DURATION`: ask for the addresses of a server's name again where they are older, beside the requests; default: once, before the run")
	f.IntVar(&l.repeat, "repeat", 1, "`N`: make the whole run N times, each with prompts of its own; -o RUN.rec becomes RUN.1.rec, RUN.2.rec, …")
	f.BoolVar(&l.samePrompts, "repeat-same-prompts", false, "let the runs of --repeat have the same prompts: later ones find the server's cache warm")
}

// maxRepeat bounds the runs of one command: their recordings are looked for
// before the first, and the report of each is kept to the last.
const maxRepeat = 10_000

// Why there may be no live answers.
const (
	liveClosed = "--assistant live needs --sessions closed: a turn's answer is there for the next only where that waits for it"
	liveChats  = "--assistant live needs chat bodies in the trace, and --prompt literal: other prompts hold no answer that could be put in"
)

// validate names the flag that is wrong, or would do nothing.
func (l *loadFlags) validate(o *options) error {
	given := l.set.Changed
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{!oneOf(l.overflow, "queue", "shed"), "--overflow " + l.overflow + ": want queue or shed"},
		{given("overflow") && o.maxConcurrency == 0, "--overflow: it is what --max-concurrency does, which is missing"},
		{!oneOf(l.failedTurn, "stop", "continue"), "--failed-turn " + l.failedTurn + ": want stop or continue"},
		{!oneOf(l.assistant, "recorded", "live"), "--assistant " + l.assistant + ": want recorded or live"},
		{l.assistant == "live" && o.sessions == "open", liveClosed},
		{l.assistant == "live" && !oneOf(o.prompt, "", "literal"), liveChats},
		{given("max-delay") && l.maxDelay <= 0, "--max-delay: want more than 0 (without the flag there is no limit)"},
		{given("warmup-requests") && (l.warmUp < 1 || l.warmUp > replay.MaxWarmUp), fmt.Sprintf("--warmup-requests: want 1 or more, up to %d", replay.MaxWarmUp)},
		{given("probe-rate") && !(l.probeRate > 0 && l.probeRate <= replay.MaxProbeRate), fmt.Sprintf("--probe-rate: want a number of requests a second above 0, up to %d", replay.MaxProbeRate)},
		{given("dns-refresh") && l.dnsRefresh <= 0, "--dns-refresh: want more than 0 (without the flag names are resolved once)"},
		{given("dns-refresh") && o.proxy != "", "--dns-refresh: with --proxy the proxy resolves the names"},
		{l.retries < 0, "--retries: want 0 or more"},
		{given("retry-max-time") && l.retries == 0, "--retry-max-time: it bounds --retries, which is missing"},
		{l.retryMaxTime <= 0, "--retry-max-time: want more than 0"},
		{l.repeat < 1 || l.repeat > maxRepeat, fmt.Sprintf("--repeat: want 1 or more, up to %d", maxRepeat)},
		{l.repeat > 1 && o.flags.Changed("shard"), "--repeat and --shard exclude each other: the later runs of the shards would not begin together"},
		{l.samePrompts && l.repeat < 2, "--repeat-same-prompts needs --repeat 2 or more"},
	} {
		if c.bad {
			return errors.New(c.text)
		}
	}
	return nil
}

func (l *loadFlags) apply(c *replay.Config) {
	c.Client.RefreshNames = l.dnsRefresh
	c.Load = replay.Load{
		Overflow: replay.Overflow(l.overflow), MaxDelay: l.maxDelay, FailedTurn: replay.FailedTurn(l.failedTurn),
		Assistant: replay.Assistant(l.assistant), WarmUp: l.warmUp, ProbeRate: l.probeRate,
		Retries: l.retries, RetryMaxTime: l.retryMaxTime,
	}
}

// describe adds to the plan what is sent beyond the trace's requests, each once.
func (l *loadFlags) describe(w io.Writer) {
	if l.warmUp > 0 {
		fmt.Fprintf(w, "plan: %s of warm-up before the origin\n", plural.Of(int64(l.warmUp), "request"))
	}
	if l.probeRate > 0 {
		fmt.Fprintf(w, "plan: %g probes/s beside the load\n", l.probeRate)
	}
	if l.retries > 0 {
		fmt.Fprintf(w, "plan: up to %s within %v after 429, 5xx or a lost connection\n", plural.Of(int64(l.retries), "attempt")+" more", l.retryMaxTime)
	}
	if l.repeat > 1 {
		fmt.Fprintf(w, "plan: all of it %d times\n", l.repeat)
	}
}

// fits says which flag does not go with the trace. It comes when the mode of
// sessions and the kind of prompts are settled.
func (o *options) fits(plan *survey, cfg *replay.Config) error {
	w, given := &plan.whole, o.flags.Changed
	closed := cfg.Sessions == replay.Closed
	waits := closed && w.requests > w.heads || !closed && w.delayOnly > 0
	chats := cfg.Prompt == replay.Literal && (plan.byAPI[string(openai.Chat)] > 0 || cfg.API == openai.Chat && plan.byAPI[""] > 0)
	live := cfg.Load.Assistant == replay.LiveAnswers
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{given("max-delay") && (!waits || w.delays == 0), "--max-delay: no turn of this run waits for a delay"},
		{given("failed-turn") && !waits, "--failed-turn: no turn of this run waits for another (--sessions closed)"},
		{live && !closed, liveClosed},
		{live && !chats, liveChats},
		{o.load.repeat > 1 && cfg.Prompt == replay.Literal && !o.load.samePrompts, "--repeat: the trace's bodies are the same in each run; --repeat-same-prompts says that this is meant"},
	} {
		if c.bad {
			return errors.New(c.text)
		}
	}
	if err := cfg.Placing.Law.Fits(cfg.Placing.Count); err != nil {
		return fmt.Errorf("--arrival %s: %w", cfg.Placing.Law.Name(), err)
	}
	return checkExtra(cfg) // again, for the kind of prompts is known now
}
