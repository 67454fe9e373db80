package replay

import "iter"

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

// pullSome pulls n times, or up to the first that is no request.
func pullSome(next func() (placed, error, bool), n int) []pulled {
	var list []pulled
	for len(list) < n {
		p := pull(next)
		list = append(list, p)
		if !p.ok || p.err != nil {
			break
		}
	}
	return list
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
