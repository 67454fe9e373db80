package analysis

import (
	"fmt"
	"math"
)

// countTolerance is how far the server's count of output tokens may be from
// our count of output chunks before it is worth a word.
const countTolerance = 0.05

// warnings are the sentences that belong beside the figures.
func (r *Run) warnings(rep *RunReport) []string {
	w := append([]string{}, r.runWarnings(rep)...)
	w = append(w, r.countWarnings()...)
	w = append(w, r.cacheWarnings(rep)...)
	return append(w, r.shards.notes...)
}

func (r *Run) runWarnings(rep *RunReport) (w []string) {
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	s := &r.shards
	if s.unclosed > 0 {
		add("%d of %d recordings were not closed: the run was killed or is still going", s.unclosed, s.unclosed+s.footers)
	}
	if s.interrupted > 0 {
		add("the run was interrupted before its plan ended")
	}
	if len(s.headers) > 0 && len(s.seen) < shardsOf(s.headers[0]) {
		add("only %d of the run's %d shards are here", len(s.seen), shardsOf(s.headers[0]))
	}
	if n, ok := s.planned(); ok && n != rep.Requests.Total {
		add("%d requests were planned, %d are recorded", n, rep.Requests.Total)
	}
	if n := rep.Requests.Failed; n > 0 {
		add("%d of %d requests failed: latencies and throughput are of the completed ones alone", n, rep.Requests.Total)
	}
	if r.odd.badState > 0 {
		add("%d results have no known state and are left out", r.odd.badState)
	}
	if r.odd.untimed > 0 {
		add("%d completed requests brought no output whose moment is known: they have no latency", r.odd.untimed)
	}
	if n := r.odd.zeroTPOT; n > 0 {
		add("%d requests brought several tokens at one moment: their TPOT is 0 (not streamed, or buffered on the way?)", n)
	}
	return w
}

func (r *Run) countWarnings() (w []string) {
	t := &r.tokens
	if t.outputHere > 0 {
		w = append(w, fmt.Sprintf("output tokens of %d of %d requests are counted here (one a chunk): the server sent no usage",
			t.outputHere, t.output.Known))
	}
	if t.inputTrace > 0 {
		w = append(w, fmt.Sprintf("input tokens of %d of %d requests are the trace's: the server sent no usage",
			t.inputTrace, t.input.Known))
	}
	if t.bothRequests == 0 || t.bothServer == 0 {
		return w
	}
	off := float64(t.bothHere-t.bothServer) / float64(t.bothServer)
	if math.Abs(off) > countTolerance {
		w = append(w, fmt.Sprintf("the server counted %d output tokens, here came %d chunks (%+.1f %%): figures use the server's count",
			t.bothServer, t.bothHere, 100*off))
	}
	return w
}

func (r *Run) cacheWarnings(rep *RunReport) (w []string) {
	predicted, a := rep.PrefixCache.Predicted.Get()
	observed, b := rep.PrefixCache.Observed.Get()
	if a && b && r.prefix.both > 0 && observed > predicted {
		w = append(w, fmt.Sprintf("observed hits exceed the predicted ones (%.4f > %.4f; %d requests): the server was warm, use --fresh or --salt",
			observed, predicted, r.odd.hitsExceeded))
	}
	if r.prefix.reported > 0 && r.prefix.reported < rep.Requests.Completed {
		w = append(w, fmt.Sprintf("cached tokens are known of %d of %d completed requests: hit rates are over those",
			r.prefix.reported, rep.Requests.Completed))
	}
	return w
}
