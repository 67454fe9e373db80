package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/arrival"
	"retrace/replay/prompt"
)

const (
	// warmUpAtOnce is how many requests of the warm-up run at once where
	// MaxConcurrency says nothing less.
	warmUpAtOnce = 8
	// warmUpOutput is the length of an answer in tokens where the trace has none.
	warmUpOutput = 16
	// bytesAToken stands in for a tokenizer where a body's length is unknown.
	bytesAToken = 4
)

// MaxProbes bounds the probes in flight; what is due beyond them is not sent.
const MaxProbes = 1024

// renamed is p in a name space of its own: as long, made of the same pieces, but
// sharing nothing with prompts of another name. (Keys are 64 bits wide: that two
// name spaces meet in one is as likely as that of two hashes.)
func renamed(p prompt.Prompt, name string) prompt.Prompt {
	segs := p.Segments()
	key := binary.LittleEndian.AppendUint64([]byte(name), 0)
	for i := range segs {
		binary.LittleEndian.PutUint64(key[len(name):], segs[i].Key)
		segs[i].Key = xxhash.Sum64(key)
	}
	return prompt.NewPrompt(segs...)
}

// sideAPI is where a request beside the trace's goes: where the trace's own
// bodies do, if a prompt can be made for that API.
func (e *engine) sideAPI(r *record.Request) openai.API {
	api := openai.API(r.API)
	if e.cfg.Prompt == Literal && r.Body != nil && Replays(api) && api != openai.Transcriptions && api != openai.Rerank {
		return api
	}
	return e.cfg.API
}

// side makes the job of a request beside the trace's.
func (e *engine) side(mark record.Mark, name string, i int64) *job {
	j := &job{seq: i, api: e.cfg.API, ready: make(chan struct{}), res: record.NewResult()}
	j.res.ID, j.res.Mark, j.res.Shard, j.res.Model = fmt.Sprintf("%s-%d", name, i), mark, e.cfg.Shard, e.target.Model
	return j
}

// warmUp sends Load.WarmUp requests in the shapes of the first, one after the
// other's end on each of a few lines, and gives their results.
func (e *engine) warmUp(ctx context.Context, first []pulled) ([]*record.Result, error) {
	n := e.cfg.Load.WarmUp
	if n == 0 {
		return nil, nil
	}
	if len(e.ready) == 0 {
		e.remark("no warm-up: the server is not ready")
		return nil, nil
	}
	jobs := e.warmUpJobs(first)
	if len(jobs) == 0 {
		e.remark("no warm-up: the trace's first requests have no lengths")
		return nil, nil
	}
	lines := warmUpAtOnce
	if e.cfg.MaxConcurrency > 0 {
		lines = min(lines, e.cfg.MaxConcurrency)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range lines {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(jobs)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				e.exchangeNow(ctx, jobs[i], e.clock.now())
			}
		})
	}
	wg.Wait()
	e.tally.sent.Store(0)
	e.tally.lag.Store(0)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("warm up: %w", ctx.Err())
	}
	results := make([]*record.Result, len(jobs))
	var example *record.Result
	for i, j := range jobs {
		results[i] = &j.res
		if j.res.State == record.Completed {
			e.target.WarmUp++
		} else {
			example = &j.res
		}
	}
	if example != nil {
		e.remark("%d of %d requests of the warm-up failed (%s: %s)", int64(n)-e.target.WarmUp, n, example.Class, example.Error)
	}
	return results, nil
}

// warmUpJobs plans the warm-up: the shapes of first, again from its start where
// they are too few.
func (e *engine) warmUpJobs(first []pulled) []*job {
	planner := prompt.NewPlanner(e.cfg.Header)
	var shapes []*job
	for i := range first {
		if p := &first[i]; p.ok && p.err == nil && !p.req.other && len(shapes) < e.cfg.Load.WarmUp {
			if j := e.warmUpJob(planner, &p.req.Request); j != nil {
				shapes = append(shapes, j)
			}
		}
	}
	if len(shapes) == 0 {
		return nil
	}
	jobs := make([]*job, e.cfg.Load.WarmUp)
	for i := range jobs {
		shape := shapes[i%len(shapes)]
		j := e.side(record.WarmUp, "warmup", int64(i))
		j.seq, j.api, j.output = int64(e.ready[i%len(e.ready)]), shape.api, shape.output
		j.prompt = renamed(shape.prompt, fmt.Sprintf("warm-up %d ", i/len(shapes)))
		j.res.WantedInput, j.res.WantedOutput = shape.res.WantedInput, j.output
		jobs[i] = j
	}
	return jobs
}

// warmUpJob is the shape of one request, nil where its length is unknown.
func (e *engine) warmUpJob(planner *prompt.Planner, r *record.Request) *job {
	p, err := planner.Plan(r)
	if err != nil && len(r.Body) > 0 {
		n := min(len(r.Body)/bytesAToken+1, math.MaxInt32)
		p, err = prompt.NewPrompt(prompt.Segment{Key: prompt.RequestKey(r), N: uint32(n), Kind: prompt.Tail}), nil
	}
	if n := e.cfg.MaxInputTokens; n > 0 {
		p = p.Truncate(int(min(n, math.MaxInt32)))
	}
	if err != nil || p.Tokens() == 0 {
		return nil
	}
	j := &job{api: e.sideAPI(r), output: r.OutputTokens}
	if j.output == record.Unknown {
		j.output = warmUpOutput
	}
	if most := e.cfg.MaxOutputTokens; most > 0 {
		j.output = min(j.output, most)
	}
	j.output = max(j.output, 1)
	j.res.WantedInput = int64(p.Tokens())
	j.prompt = p.Cut(min(int(e.target.Overhead), p.Tokens()-1))
	return j
}

// exchangeNow makes a request that no limit holds back, due at the given time.
func (e *engine) exchangeNow(ctx context.Context, j *job, due time.Duration) {
	j.res.Scheduled, j.res.Granted = due, due
	e.exchange(ctx, j)
	if !e.keepOutput {
		j.res.Output = nil
	}
}

// sample sends probes beside the load until over is closed or sending is
// stopped, as a Poisson process: what such probes meet is on average what there
// is over time. It returns when all have ended.
func (e *engine) sample(api openai.API, over <-chan struct{}) {
	var inFlight atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	source := arrival.Source(uint64(e.cfg.Seed), fmt.Sprintf("probes of shard %d", e.cfg.Shard))
	due, i := time.Duration(0), int64(0)
	for gap := range arrival.Gaps(e.cfg.Load.ProbeRate, source) {
		due += gap
		timer.Reset(due - e.clock.now())
		select {
		case <-timer.C:
		case <-over:
			return
		case <-e.stop.Done():
			return
		}
		j := e.probeJob(api, i)
		i++
		if inFlight.Add(1) > MaxProbes {
			inFlight.Add(-1)
			j.res.Scheduled, j.res.State, j.res.Reason = due, record.NotSent, reasonInFlight
			e.results <- &j.res
			continue
		}
		at := due
		wg.Go(func() {
			e.exchangeNow(e.life, j, at)
			inFlight.Add(-1)
			e.results <- &j.res
		})
	}
}

// probeJob is a request for one token with a prompt that no other has.
func (e *engine) probeJob(api openai.API, i int64) *job {
	j := e.side(record.Probe, "probe", i)
	j.api, j.output = api, 1
	own := prompt.NewPrompt(prompt.Segment{Key: uint64(i), N: probeWords, Kind: prompt.Tail})
	j.prompt = renamed(own, fmt.Sprintf("probe of shard %d, seed %d ", e.cfg.Shard, e.cfg.Seed))
	j.res.WantedInput, j.res.WantedOutput = probeWords, 1
	return j
}

// settleProbes waits for the probes that are still in flight when the load is
// over, at most as long as the grace.
func (e *engine) settleProbes(ctx context.Context, probes <-chan struct{}) {
	grace := time.NewTimer(max(e.cfg.Grace, 0))
	defer grace.Stop()
	select {
	case <-probes:
		return
	case <-grace.C:
	case <-ctx.Done():
	}
	e.kill(errKilled)
	<-probes
}
