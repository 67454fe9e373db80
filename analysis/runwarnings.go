package analysis

import (
	"fmt"
	"math"
	"time"

	"retrace/internal/plural"
)

// countTolerance is how far the server's count of output tokens may be from
// our count of output chunks before it is worth a word.
const countTolerance = 0.05

// shardsApart is how far apart shards may start and still pass for one run at
// one time: clocks differ, and machines come up one after another.
const shardsApart = 5 * time.Second

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
		add("%d of %s %s not closed: the run was killed or is still going",
			s.unclosed, plural.Of(s.unclosed+s.footers, "recording"), plural.Pick(s.unclosed, "was", "were"))
	}
	if s.interrupted > 0 {
		add("the run was interrupted before its plan ended")
	}
	if len(s.headers) > 0 && len(s.seen) < shardsOf(s.headers[0]) {
		add("only %d of the run's %d shards are here", len(s.seen), shardsOf(s.headers[0]))
	}
	if d := s.apart(); d > shardsApart {
		add("the shards started %v apart and are merged as if all had started at once (--start-at lets them)", d.Round(time.Millisecond))
	}
	if n, ok := s.planned(); ok && n != rep.Requests.Total {
		add("%s planned, %d recorded", plural.Of(n, "request"), rep.Requests.Total)
	}
	if n := rep.Requests.Failed; n > 0 {
		add("%d of %s failed: latencies and throughput are of the completed ones alone", n, plural.Of(rep.Requests.Total, "request"))
	}
	if r.odd.badState > 0 {
		add("%s of no known state left out", plural.Of(r.odd.badState, "result"))
	}
	if r.odd.untimed > 0 {
		add("%s brought no output whose moment is known: no latency is theirs", plural.Of(r.odd.untimed, "completed request"))
	}
	if n := r.odd.zeroTPOT; n > 0 {
		add("%s brought several tokens at one moment, a TPOT of 0 (not streamed, or buffered on the way?)", plural.Of(n, "request"))
	}
	return w
}

func (r *Run) countWarnings() (w []string) {
	t := &r.tokens
	if t.outputHere > 0 {
		w = append(w, fmt.Sprintf("output tokens of %d of %s are counted here (one a chunk): the server sent no usage",
			t.outputHere, plural.Of(t.output.Known, "request")))
	}
	if t.inputTrace > 0 {
		w = append(w, fmt.Sprintf("input tokens of %d of %s are the trace's: the server sent no usage",
			t.inputTrace, plural.Of(t.input.Known, "request")))
	}
	if t.bothRequests == 0 || t.bothServer == 0 {
		return w
	}
	off := float64(t.bothHere-t.bothServer) / float64(t.bothServer)
	if math.Abs(off) > countTolerance {
		w = append(w, fmt.Sprintf("the server counted %s, here came %s (%+.1f %%): figures use the server's count",
			plural.Of(t.bothServer, "output token"), plural.Of(t.bothHere, "chunk"), 100*off))
	}
	return w
}

func (r *Run) cacheWarnings(rep *RunReport) (w []string) {
	predicted, a := rep.PrefixCache.Predicted.Get()
	observed, b := rep.PrefixCache.Observed.Get()
	switch {
	case !a || !b || r.prefix.both == 0:
	case observed > predicted:
		w = append(w, fmt.Sprintf("observed hits exceed the predicted ones (%.4f > %.4f; %s): the server was warm%s",
			observed, predicted, plural.Of(r.odd.hitsExceeded, "request"), r.shards.remedy()))
	case observed < predicted:
		w = append(w, unleft(rep, observed, predicted)...)
	}
	if counted, c := rep.PrefixCache.Counted.Get(); a && c && !b && counted > predicted {
		w = append(w, fmt.Sprintf("the hits that the server counted exceed the predicted ones (%.4f > %.4f): the server was warm, or served others too%s",
			counted, predicted, r.shards.remedy()))
	}
	if r.prefix.reported > 0 && r.prefix.reported < rep.Requests.Completed {
		w = append(w, fmt.Sprintf("cached tokens are known of %d of %s: hit rates are over those",
			r.prefix.reported, plural.Of(rep.Requests.Completed, "completed request")))
	}
	return w
}

// remedy is what else may be the reason of more hits than predicted, and what
// helps: where turns wait for each other a shard does not know when the others'
// requests leave, and predicts from its own alone; --fresh would draw another
// salt in each.
func (s *shards) remedy() string {
	if len(s.headers) > 0 && shardsOf(s.headers[0]) > 1 {
		return ", by an earlier run (--salt tells) or, where turns wait for each other, by the other shards' requests"
	}
	return ", use --fresh or --salt"
}

// unleft says that hits may be missing because requests were: the prediction
// takes each that was planned for one that leaves its prefix in the cache.
func unleft(rep *RunReport, observed, predicted float64) []string {
	n := rep.Requests.Total - rep.Requests.Completed
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("observed hits are below the predicted ones (%.4f < %.4f): these count on the prefixes of all planned requests, of which %d were not completed",
		observed, predicted, n)}
}
