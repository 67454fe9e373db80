package analysis

import (
	"fmt"
	"time"

	"retrace/internal/plural"
	"retrace/record"
)

// shards keeps the headers of a run's recordings and checks that they are
// shards of one run.
type shards struct {
	headers     []record.Header
	seen        map[int]bool
	interrupted int
	unclosed    int
	footers     int
	notes       []string
}

// AddHeader takes the header of a recording. Several recordings make one
// analysis only as shards of one run: it refuses one that is no recording, one
// of another run, and the same shard twice.
func (r *Run) AddHeader(h record.Header) error {
	if h.Kind != record.KindRecording {
		return fmt.Errorf("analyse run: found a container of kind %q, expected %q", h.Kind, record.KindRecording)
	}
	s := &r.shards
	if len(s.headers) > 0 {
		if err := s.fits(h); err != nil {
			return err
		}
	}
	if s.seen == nil {
		s.seen = map[int]bool{}
	}
	s.seen[shardOf(h)] = true
	s.headers = append(s.headers, h)
	if h.Run != nil {
		r.atLeast(len(h.Run.URLs))
	}
	return nil
}

func (s *shards) fits(h record.Header) error {
	first := s.headers[0]
	if h.RunID != first.RunID || h.RunID == "" {
		return fmt.Errorf("merge shards: run %q is not run %q: repeats of a run are not its shards, analyse each alone "+
			"(shards of one run share trace, flags, seed and --start-at)", h.RunID, first.RunID)
	}
	if s.seen[shardOf(h)] {
		return fmt.Errorf("merge shards: shard %d of run %q is given twice: a shard that was run again is a repeat, analyse each run alone",
			shardOf(h), h.RunID)
	}
	if shardsOf(h) != shardsOf(first) {
		return fmt.Errorf("merge shards: run %q is in %d shards in one file and in %d in another",
			h.RunID, shardsOf(first), shardsOf(h))
	}
	return nil
}

func shardOf(h record.Header) int {
	if h.Run == nil {
		return 0
	}
	return h.Run.Shard
}

func shardsOf(h record.Header) int {
	if h.Run == nil || h.Run.Shards < 1 {
		return 1
	}
	return h.Run.Shards
}

// AddFooter takes the footer of a recording; ok is false for a recording that
// has none, because its run was killed.
func (r *Run) AddFooter(f record.Footer, ok bool) {
	s := &r.shards
	if !ok {
		s.unclosed++
		return
	}
	s.footers++
	if f.Interrupted {
		s.interrupted++
	}
	s.notes = append(s.notes, f.Notes...)
}

// maxLag is the limit on lateness: that of the options, else the smallest of
// the headers, else the default.
func (r *Run) maxLag() time.Duration {
	if r.opts.MaxLag > 0 {
		return r.opts.MaxLag
	}
	limit := time.Duration(0)
	for _, h := range r.shards.headers {
		if h.Run != nil && h.Run.MaxLag > 0 && (limit == 0 || h.Run.MaxLag < limit) {
			limit = h.Run.MaxLag
		}
	}
	if limit == 0 {
		return DefaultMaxLag
	}
	return limit
}

// missing says what of an interrupted run's plan is not in the files, "" for a
// run that went to its end.
func (s *shards) missing(total int64) string {
	planned, known := s.planned()
	switch {
	case s.interrupted+s.unclosed == 0:
		return ""
	case !known:
		return "INTERRUPTED: how much was planned is not known"
	}
	return fmt.Sprintf("INTERRUPTED: %d of %d planned are in the %s", total, planned, plural.Noun(len(s.headers), "file"))
}

// apart is the time between the first and the last origin of the shards.
func (s *shards) apart() time.Duration {
	var first, last time.Time
	for _, h := range s.headers {
		if h.Run == nil || h.Run.Start.IsZero() {
			continue
		}
		if first.IsZero() || h.Run.Start.Before(first) {
			first = h.Run.Start
		}
		if h.Run.Start.After(last) {
			last = h.Run.Start
		}
	}
	return last.Sub(first)
}

// planned is the number of requests that the headers promise, where each says.
func (s *shards) planned() (int64, bool) {
	var sum int64
	for _, h := range s.headers {
		if h.Run == nil || h.Run.Planned <= 0 {
			return 0, false
		}
		sum += h.Run.Planned
	}
	return sum, len(s.headers) > 0
}
