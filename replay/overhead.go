package replay

import (
	"context"

	"retrace/internal/plural"
	"retrace/record"
	"retrace/replay/prompt"
)

// probeWords is the length of the prompt that learns the overhead.
const probeWords = 16

// probePrompt is that prompt.
func probePrompt() prompt.Prompt {
	return prompt.NewPrompt(prompt.Segment{Key: 0, N: probeWords, Kind: prompt.Tail})
}

// learnOverhead learns what the server's template adds to prompts of text, by
// its /tokenize or else by a probe, whose result it returns.
func (e *engine) learnOverhead(ctx context.Context) *record.Result {
	e.target.Vocabulary = e.cfg.Prompts.Vocabulary
	if !e.cfg.makesText() || e.cfg.Prompts.AskServer && e.askServer(ctx) {
		return nil
	}
	probe := e.probe(ctx)
	e.frame(probe)
	return probe
}

// probe sends one short prompt to a server that is ready, and learns from the server's count of it what
// the template adds.
func (e *engine) probe(ctx context.Context) *record.Result {
	j := &job{seq: int64(e.ready[0]), api: e.cfg.API, prompt: probePrompt(), output: 1, res: record.NewResult()}
	j.res.ID, j.res.Mark, j.res.Shard = "overhead-probe", record.Overhead, e.cfg.Shard
	j.res.Model = e.target.Model
	j.res.WantedInput, j.res.WantedOutput = probeWords, 1
	j.res.Scheduled = e.clock.now()
	j.res.Granted = j.res.Scheduled
	e.exchange(ctx, j)
	e.tally.sent.Store(0)
	e.tally.lag.Store(0)
	untold := "prompts are not cut"
	if e.knowsFrame() {
		untold = "the tokenizer's own stands in for it"
	}
	switch {
	case j.res.State != record.Completed:
		e.remark("the probe for the template's overhead failed (%s): %s; %s", j.res.Class, j.res.Error, untold)
	case j.res.PromptTokens == record.Unknown:
		e.remark("the server does not count prompt tokens: the template's overhead is unknown, %s", untold)
	case j.res.PromptTokens < probeWords:
		e.remark("the server counts %d tokens for %d words: %s", j.res.PromptTokens, probeWords, untold)
	default:
		e.target.Overhead = j.res.PromptTokens - probeWords
	}
	return &j.res
}

// knowsFrame says whether the tokenizer tells what stands around a prompt: it
// does not know chat templates.
func (e *engine) knowsFrame() bool {
	return e.cfg.Prompts.Frame != nil && takesTokens(e.cfg.API)
}

// frame compares what the probe learnt with what the tokenizer says, which
// tells head from tail and stands in for a count that did not come.
func (e *engine) frame(probe *record.Result) {
	if !e.knowsFrame() {
		return
	}
	f := e.cfg.Prompts.Frame
	learnt := probe.State == record.Completed && probe.PromptTokens >= probeWords
	if learnt && e.target.Overhead != f.Head+f.Tail {
		e.remark("the server adds %s to a prompt, the tokenizer's file %d: prompts are cut by the server's",
			plural.Of(e.target.Overhead, "token"), f.Head+f.Tail)
		return
	}
	e.target.Overhead, e.target.Tail = f.Head+f.Tail, f.Tail
}
