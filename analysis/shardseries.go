package analysis

import "time"

// clocksApart is how far the clocks of two shards' machines may differ before a
// later scrape shows an earlier count.
const clocksApart = 50 * time.Millisecond

// view is how the shard that looked most often saw a server: each shard of a
// run asks the same servers, whose counters have what all of them sent. Where
// that shard was done before the run's end, the one that looked last goes on.
func (r *Run) view(replica int, run window) serverSeries {
	var best serverSeries
	most, shard := 0, 0
	for key, m := range r.series {
		n := len(m.scrapes())
		if key.replica == replica && (n > most || n == most && key.shard < shard) {
			best, most, shard = m, n, key.shard
		}
	}
	if times := best.scrapes(); len(times) > 0 && times[len(times)-1] < run.to {
		return r.goOn(best, serverKey{shard, replica}, times[len(times)-1])
	}
	return best
}

// goOn appends to a server's series, which end at last, those of the shard that
// looked at it last, if both began together.
func (r *Run) goOn(best serverSeries, own serverKey, last int64) serverSeries {
	if r.shards.apart() > shardsApart {
		return best
	}
	latest, from, by := last, own, int64(0)
	for key, m := range r.series {
		if key.replica != own.replica || key.shard == own.shard {
			continue
		}
		shift := r.shards.later(key.shard, own.shard).Microseconds()
		times := m.scrapes()
		if len(times) == 0 {
			continue
		}
		end := times[len(times)-1] + shift
		if end > latest || end == latest && from != own && key.shard < from.shard {
			latest, from, by = end, key, shift
		}
	}
	if from == own {
		return best
	}
	joined := serverSeries{}
	joined.take(best, -1<<62, 0)
	joined.take(r.series[from], last+clocksApart.Microseconds(), by)
	return joined
}

// take takes what other has after a time, shifted by so much.
func (m serverSeries) take(other serverSeries, after, by int64) {
	for metric, names := range other {
		for name, list := range names {
			for _, p := range list {
				to := m.points(metric, name, p.id)
				for i, t := range p.times {
					if t+by > after {
						to.insert(t+by, p.values[i])
					}
				}
			}
		}
	}
}

// later is how much later one shard began than another; 0 where that is not
// known.
func (s *shards) later(one, other int) time.Duration {
	var a, b time.Time
	for _, h := range s.headers {
		if h.Run == nil || h.Run.Start.IsZero() {
			continue
		}
		if h.Run.Shard == one {
			a = h.Run.Start
		}
		if h.Run.Shard == other {
			b = h.Run.Start
		}
	}
	if a.IsZero() || b.IsZero() {
		return 0
	}
	return a.Sub(b)
}
