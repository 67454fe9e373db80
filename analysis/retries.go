package analysis

import (
	"maps"

	"retrace/record"
)

// RunRetries tells what the attempts made again changed.
type RunRetries struct {
	// Requests were made again, Attempts times in all; of those Recovered were
	// completed in the end.
	Requests  int64 `json:"requests"`
	Attempts  int64 `json:"attempts"`
	Recovered int64 `json:"recovered"`
	// FirstAttempt is the share of all requests whose first attempt failed, what
	// a client that does not try again would have met; With is failure_rate.
	FirstAttempt Value `json:"first_attempt_failure_rate"`
	With         Value `json:"failure_rate"`
	// Errors counts the attempts that were made again, by error class.
	Errors map[string]int64 `json:"errors"`
}

// retries counts attempts that were made again.
type retries struct {
	requests, attempts, recovered int64
	firstFailed                   int64
	classes                       map[string]int64
}

func (s *retries) add(res *record.Result) {
	if len(res.Tries) > 0 || res.State == record.Failed {
		s.firstFailed++
	}
	if len(res.Tries) == 0 {
		return
	}
	s.requests++
	s.attempts += int64(len(res.Tries))
	if res.State == record.Completed {
		s.recovered++
	}
	if s.classes == nil {
		s.classes = map[string]int64{}
	}
	for i := range res.Tries {
		s.classes[orUnnamed(res.Tries[i].Class)]++
	}
}

// retried is nil where no request was to be made again, and none was.
func (r *Run) retried(rep *RunReport) *RunRetries {
	wanted := r.retries.requests > 0
	for _, h := range r.shards.headers {
		wanted = wanted || h.Run != nil && h.Run.Load.Retries > 0
	}
	if !wanted {
		return nil
	}
	s := &r.retries
	out := &RunRetries{
		Requests: s.requests, Attempts: s.attempts, Recovered: s.recovered,
		FirstAttempt: Ratio(float64(s.firstFailed), float64(rep.Requests.Total)), With: rep.FailureRate,
		Errors: maps.Clone(s.classes),
	}
	if out.Errors == nil {
		out.Errors = map[string]int64{}
	}
	return out
}
