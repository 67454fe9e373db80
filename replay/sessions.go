package replay

import (
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
)

// turn is a planned request that is not over, where others may wait for it.
type turn struct {
	key  uint64
	kids []*job
}

// sessions knows which turns are under way and when the others ended. A turn
// that is over costs 16 bytes.
type sessions struct {
	mu   sync.Mutex
	live map[uint64]*turn
	// over holds the end of each turn, NoTime where it brought no answer.
	over map[uint64]time.Duration
	last map[uint64]uint64 // session → its last turn so far
	// talks has the talk of each turn that is over and the last of its session.
	talks map[uint64]*talk
}

func newSessions() *sessions {
	return &sessions{live: map[uint64]*turn{}, over: map[uint64]time.Duration{}, last: map[uint64]uint64{}, talks: map[uint64]*talk{}}
}

// link says how a turn hangs on an earlier one.
type link uint8

const (
	free    link = iota // on none that is planned
	waiting             // its parent is under way
	ready               // its parent has ended
	broken              // its parent brought no answer
)

// ended is a turn that is over: when, NoTime where it brought no answer, and
// with what talk.
type ended struct {
	at   time.Duration
	talk *talk
}

// bind enters j and finds its parent; end is the parent's, where it is ready.
// With wait false j enters without waiting for anything.
func (s *sessions) bind(j *job, r *record.Request, wait bool) (l link, end ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent, has := s.parent(r)
	if r.Session != "" || r.ID != "" {
		j.turn = &turn{key: xxhash.Sum64String(r.Key())}
		s.live[j.turn.key] = j.turn
		if r.Session != "" {
			s.last[xxhash.Sum64String(r.Session)] = j.turn.key
		}
	}
	if !has || !wait {
		return free, end
	}
	if t := s.live[parent]; t != nil && t != j.turn {
		t.kids = append(t.kids, j)
		return waiting, end
	}
	at, found := s.over[parent]
	end = ended{at, s.talks[parent]}
	if r.Parent == "" {
		delete(s.talks, parent)
	}
	switch {
	case !found:
		return free, end
	case at == record.NoTime:
		return broken, end
	}
	return ready, end
}

func (s *sessions) parent(r *record.Request) (key uint64, has bool) {
	if r.Parent != "" {
		return xxhash.Sum64String(r.Parent), true
	}
	if r.Session == "" {
		return 0, false
	}
	key, has = s.last[xxhash.Sum64String(r.Session)]
	return key, has
}

// end closes a turn and gives back the jobs that waited for it.
func (s *sessions) end(t *turn, end ended) []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, t.key)
	s.over[t.key] = end.at
	kids := t.kids
	if len(kids) == 0 && end.talk != nil {
		s.talks[t.key] = end.talk
	}
	t.kids = nil
	return kids
}
