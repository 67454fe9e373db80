package simserver

import "time"

// The buckets of vLLM's histograms.
var (
	tokenBuckets     = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000}
	iterationBuckets = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	smallBuckets     = []float64{1, 2, 5, 10, 20}
	preemptBuckets   = []float64{1, 2, 3, 4, 5, 10, 20}
	firstBuckets     = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	interBuckets     = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	latencyBuckets   = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// histogram counts values by upper bounds; counts[i] are those at or under
// bounds[i] and over the bound before, the last those over all bounds.
type histogram struct {
	bounds []float64
	counts []uint64
	count  uint64
	sum    float64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// observe counts one value.
func (h *histogram) observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.count++
	h.sum += v
}

// stats are the engine's counts, under its lock.
type stats struct {
	wasIdle bool

	queries, hits           uint64 // prompt tokens looked up and found in the cache
	promptTokens, generated uint64
	stopped, lengthEnded    uint64
	aborted, preemptions    uint64

	promptSize, outputSize, maxTokens histogram // tokens a request
	prefillComputed                   histogram // tokens a request
	choices                           histogram // n of a request
	preemptionsEach                   histogram // of a request
	iterationTokens                   histogram // tokens a step
	firstToken, interToken, perToken  histogram // seconds
	latency, queued, inference        histogram // seconds
	prefill, decode                   histogram // seconds
}

func newStats() stats {
	return stats{
		wasIdle:    true,
		promptSize: newHistogram(tokenBuckets), outputSize: newHistogram(tokenBuckets),
		maxTokens: newHistogram(tokenBuckets), prefillComputed: newHistogram(tokenBuckets),
		choices: newHistogram(smallBuckets), preemptionsEach: newHistogram(preemptBuckets),
		iterationTokens: newHistogram(iterationBuckets),
		firstToken:      newHistogram(firstBuckets), interToken: newHistogram(interBuckets), perToken: newHistogram(interBuckets),
		latency: newHistogram(latencyBuckets), queued: newHistogram(latencyBuckets), inference: newHistogram(latencyBuckets),
		prefill: newHistogram(latencyBuckets), decode: newHistogram(latencyBuckets),
	}
}

// admitted counts a sequence that was scheduled for the first time.
func (st *stats) admitted(s *sequence) {
	st.queries += uint64(s.promptLen)
	st.hits += uint64(s.computed)
	st.prefillComputed.observe(float64(s.promptLen - s.computed))
}

// produced counts one token.
func (st *stats) produced(s *sequence, now time.Time) {
	if s.output == 1 {
		st.promptTokens += uint64(s.promptLen)
		s.times.first = now
		st.firstToken.observe(now.Sub(s.times.arrived).Seconds())
	} else {
		st.interToken.observe(now.Sub(s.times.last).Seconds())
	}
	s.times.last = now
	if !s.pooled {
		st.generated++
	}
}

// finished counts a sequence that came to its end.
func (st *stats) finished(s *sequence, now time.Time) {
	if s.finish == finishLength {
		st.lengthEnded++
	} else {
		st.stopped++
	}
	st.promptSize.observe(float64(s.promptLen))
	if !s.pooled {
		st.outputSize.observe(float64(s.output))
	}
	st.maxTokens.observe(float64(s.maxTokens))
	st.preemptionsEach.observe(float64(s.preempted))
	st.choices.observe(float64(s.choices))
	t := &s.times
	st.latency.observe(now.Sub(t.arrived).Seconds())
	st.queued.observe(t.scheduled.Sub(t.arrived).Seconds())
	st.inference.observe(now.Sub(t.scheduled).Seconds())
	st.prefill.observe(t.first.Sub(t.scheduled).Seconds())
	st.decode.observe(now.Sub(t.first).Seconds())
	if s.output > 1 {
		st.perToken.observe(now.Sub(t.first).Seconds() / float64(s.output-1))
	}
}
