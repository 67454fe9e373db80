package replay

import (
	"iter"

	"retrace/record"
)

// pulled is one pull of an iterator.
type pulled struct {
	req placed
	err error
	ok  bool
}

func pull(next func() (placed, error, bool)) (p pulled) {
	p.req, p.err, p.ok = next()
	return p
}

// pullSome pulls n requests of this shard, or up to the first that is none.
func pullSome(next func() (placed, error, bool), n int) []pulled {
	var list []pulled
	for n > 0 {
		p := pull(next)
		list = append(list, p)
		if !p.ok || p.err != nil {
			break
		}
		if !p.req.other {
			n--
		}
	}
	return list
}

// firstOwn is the first request of this shard, an empty one where there is none.
func firstOwn(list []pulled) *record.Request {
	for i := range list {
		if !list[i].req.other {
			return &list[i].req.Request
		}
	}
	return &record.Request{}
}

// resume yields what was pulled first, and what is next.
func resume(first []pulled, next func() (placed, error, bool)) iter.Seq2[placed, error] {
	return func(yield func(placed, error) bool) {
		for i, p := range first {
			first[i] = pulled{} // its turn is over
			if !p.ok || !yield(p.req, p.err) {
				return
			}
		}
		for p := pull(next); p.ok; p = pull(next) {
			if !yield(p.req, p.err) {
				return
			}
		}
	}
}
