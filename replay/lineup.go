package replay

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
	"retrace/replay/arrival"
)

// Placing is what takes the place of the trace's own arrivals.
type Placing struct {
	// Law gives the times; the zero one keeps the trace's.
	Law arrival.Law
	// Count is how many requests of the whole trace the law places: in open
	// sessions those with an arrival, in closed ones those that Heads tells.
	Count int64
	// Moves says that in closed sessions later turns have arrivals too. They move
	// with their session's first turn, and the order of the requests changes.
	Moves bool
}

// errCount is the error of a Placing.Count that is not the trace's.
var errCount = errors.New("more requests than the arrival law was counted for")

// Heads tells the requests that begin a session, or have none, from those that
// follow an earlier one of theirs. Requests come in the trace's order.
type Heads struct{ known map[uint64]moved } // by the session's hash

// moved is by how much a session has moved, and the time that orders its turns.
type moved struct{ by, at time.Duration }

// NewHeads is a Heads that has seen nothing.
func NewHeads() *Heads { return &Heads{known: map[uint64]moved{}} }

// Add says whether r begins something.
func (h *Heads) Add(r *record.Request) bool {
	m, follows := h.find(r)
	h.keep(r, m)
	return !follows
}

func (h *Heads) find(r *record.Request) (m moved, follows bool) {
	if r.Session != "" {
		m, follows = h.known[xxhash.Sum64String(r.Session)]
	}
	return m, follows
}

func (h *Heads) keep(r *record.Request, m moved) {
	if r.Session != "" {
		h.known[xxhash.Sum64String(r.Session)] = m
	}
}

// placed is a request with its place in the whole schedule.
type placed struct {
	record.Request
	// index counts the requests of all shards in the order of the schedule, from
	// 0; last is the latest arrival so far.
	index int64
	last  time.Duration
	// other says that another shard sends it.
	other bool
}

// LineUp yields the requests of the configured shard with the arrivals that the
// law gives them, in the order of these, not scaled by Config.Speed. The
// requests are those of all shards, so that each sends what one process would.
func (c *Config) LineUp(reqs iter.Seq2[record.Request, error]) iter.Seq2[record.Request, error] {
	return func(yield func(record.Request, error) bool) {
		for p, err := range c.lineUp(reqs) {
			if !yield(p.Request, err) {
				return
			}
		}
	}
}

// lineUp yields the requests of the configured shard.
func (c *Config) lineUp(reqs iter.Seq2[record.Request, error]) iter.Seq2[placed, error] {
	return func(yield func(placed, error) bool) {
		for p, err := range c.lineUpAll(reqs) {
			if !p.other && !yield(p, err) {
				return
			}
		}
	}
}

// lineUpAll applies the law, and tells the other shards' requests.
func (c *Config) lineUpAll(reqs iter.Seq2[record.Request, error]) iter.Seq2[placed, error] {
	ordered := reqs
	switch {
	case !c.Placing.Law.Replaces():
	case c.Sessions != Closed:
		ordered = c.placeRows(reqs)
	case c.Placing.Moves:
		ordered = sorted(c.placeSessions(reqs))
	default:
		ordered = unkeyed(c.placeSessions(reqs))
	}
	return func(yield func(placed, error) bool) {
		p := placed{index: -1}
		for r, err := range ordered {
			if err != nil {
				yield(placed{}, err)
				return
			}
			p.Request = r
			p.index++
			if r.Arrival != record.NoTime {
				p.last = r.Arrival
			}
			p.other = c.Shards > 1 && record.ShardOf(&p.Request, c.Shards) != c.Shard
			if !yield(p, nil) {
				return
			}
		}
	}
}

// placeRows gives each request with an arrival the law's next.
func (c *Config) placeRows(reqs iter.Seq2[record.Request, error]) iter.Seq2[record.Request, error] {
	return func(yield func(record.Request, error) bool) {
		next, stop := iter.Pull(c.Placing.Law.Times(c.Placing.Count, uint64(c.Seed)))
		defer stop()
		for r, err := range reqs {
			if err == nil && r.Arrival != record.NoTime {
				var ok bool
				if r.Arrival, ok = next(); !ok {
					err = errCount
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// keyed is a request and the time that orders it.
type keyed struct {
	record.Request
	key time.Duration
}

// placeSessions gives each request that begins a session the law's next time,
// and moves the later turns by as much.
func (c *Config) placeSessions(reqs iter.Seq2[record.Request, error]) iter.Seq2[keyed, error] {
	return func(yield func(keyed, error) bool) {
		next, stop := iter.Pull(c.Placing.Law.Times(c.Placing.Count, uint64(c.Seed)))
		defer stop()
		heads := NewHeads()
		last := time.Duration(0)
		for r, err := range reqs {
			if err != nil {
				yield(keyed{}, err)
				return
			}
			if r.Arrival != record.NoTime {
				last = r.Arrival
			}
			m, follows := heads.find(&r)
			switch {
			case !follows:
				at, ok := next()
				if !ok {
					yield(keyed{}, errCount)
					return
				}
				m = moved{by: at - last, at: at}
				r.Arrival = at
			case r.Arrival != record.NoTime:
				r.Arrival += m.by
				m.at = r.Arrival
			}
			heads.keep(&r, m)
			if !yield(keyed{r, m.at}, nil) {
				return
			}
		}
	}
}

func unkeyed(reqs iter.Seq2[keyed, error]) iter.Seq2[record.Request, error] {
	return func(yield func(record.Request, error) bool) {
		for k, err := range reqs {
			if !yield(k.Request, err) {
				return
			}
		}
	}
}

// sorted yields the requests by their keys, outside memory where they are many.
func sorted(reqs iter.Seq2[keyed, error]) iter.Seq2[record.Request, error] {
	return func(yield func(record.Request, error) bool) {
		s := record.NewSorter(record.SorterOptions{})
		defer s.Close() // removes temporary files; nothing to report
		for k, err := range reqs {
			if err == nil {
				err = s.Add(&k.Request, int64(k.key))
			}
			if err != nil {
				yield(record.Request{}, fmt.Errorf("order requests by the arrival law: %w", err))
				return
			}
		}
		for r, err := range s.Sorted() {
			if !yield(r, err) {
				return
			}
		}
	}
}
