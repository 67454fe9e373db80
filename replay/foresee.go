package replay

import (
	"iter"
	"sync/atomic"

	"retrace/record"
	"retrace/replay/prompt"
)

// foresees says that hits are predicted as the one process would that sends
// all shards' requests: in the order of the schedule, which is known before the
// run where no turn waits for another.
func (e *engine) foresees() bool {
	return e.predict != nil && e.sessions == nil && e.cfg.Shards > 1
}

// lineUp yields this shard's requests, and the others' where they are foreseen.
func (e *engine) lineUp(reqs iter.Seq2[record.Request, error]) iter.Seq2[placed, error] {
	if e.foresees() {
		return e.cfg.lineUpAll(reqs)
	}
	return e.cfg.lineUp(reqs)
}

// foresee puts a request that another shard sends into the predicted cache.
func (e *engine) foresee(r *placed) {
	j := &job{seq: r.index, other: true, api: e.cfg.API, output: r.OutputTokens, res: record.NewResult()}
	if why := e.planBody(j, &r.Request); why == "" && j.source == nil {
		e.predictHit(j)
	}
}

// plannerOf is the planner of the job's shard. Sessions are whole in a shard, so
// that neither planner misses what the other has.
func (e *engine) plannerOf(j *job) *prompt.Planner {
	if j.other {
		return e.others
	}
	return e.planner
}

// count counts what this shard sends.
func (j *job) count(n *atomic.Int64) {
	if !j.other {
		n.Add(1)
	}
}
