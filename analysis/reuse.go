package analysis

import (
	"math"

	"retrace/hashing/prefixcache"
	"retrace/record"
)

// TraceReuse describes the blocks that an endless cache hits: when, how far
// back and by whom they were used before. It leaves out the warm-up's requests.
type TraceReuse struct {
	// Blocks is how many hit.
	Blocks int64 `json:"blocks"`
	// TimeS is the time since the request before it that used a block arrived,
	// in seconds; of the requests whose arrivals are known.
	TimeS    Stats `json:"time_s"`
	TimeBins []Bin `json:"time_histogram"`
	// Distance is a block's stack distance: the smallest LRU cache in blocks
	// that hits it.
	Distance     Stats `json:"distance_blocks"`
	DistanceBins []Bin `json:"distance_histogram"`
	// Sessions is nil where no request has a session.
	Sessions *SessionReuse `json:"sessions"`
}

// Bin counts the values from From up to, but without, To.
type Bin struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Blocks int64   `json:"blocks"`
}

// SessionReuse splits the hits of an endless cache: those of blocks that the
// request's own session had used before, which a cache of its own would hit as
// well, and those that only requests of other sessions had.
type SessionReuse struct {
	Within HitShare `json:"within"`
	Across HitShare `json:"across"`
}

// HitShare is a part of the hits, and its share of the hit tokens.
type HitShare struct {
	HitBlocks int64 `json:"hit_blocks"`
	HitTokens int64 `json:"hit_tokens"`
	Share     Value `json:"share"`
}

// LRUReach is the smallest LRU cache that hits a share of what an endless one
// does.
type LRUReach struct {
	OfIdeal        float64 `json:"of_ideal"`
	CapacityBlocks int64   `json:"capacity_blocks"`
	CapacityTokens int64   `json:"capacity_tokens"`
	CapacityBytes  Value   `json:"capacity_bytes"`
	HitTokens      int64   `json:"hit_tokens"`
}

// reached are the shares of the endless cache's hits that are looked for, in
// hundredths.
var reached = [...]int64{50, 90, 99}

// addReuse fills in the parts of the report that one LRU pass finds.
func (t *Trace) addReuse(p *TracePrefix, ideal prefixcache.Ideal, warmup int) {
	var times, distances Counter
	curve := t.sequence.LRUReuses(warmup, func(u prefixcache.Reuse) {
		if at, before := t.arrivals[u.Request], t.arrivals[u.Earlier]; at != record.NoTime && before != record.NoTime {
			times.AddN(int64(at-before), int64(u.Blocks))
		}
		for k := range u.Blocks {
			distances.Add(int64(u.Distance + k))
		}
	})
	p.Reuse = TraceReuse{
		Blocks:       ideal.HitBlocks,
		TimeS:        times.Stats(nsPerS),
		TimeBins:     doublings(&times, nsPerS),
		Distance:     distances.Stats(1),
		DistanceBins: doublings(&distances, 1),
		Sessions:     t.sessionReuse(ideal, warmup),
	}
	p.LRUReaches = t.reaches(curve, ideal.HitTokens)
}

// reaches finds the capacities from which an LRU cache hits so much.
func (t *Trace) reaches(curve *prefixcache.LRUCurve, ideal int64) []LRUReach {
	list := []LRUReach{}
	for _, percent := range reached {
		want := (ideal*percent + 99) / 100
		blocks, ok := curve.Reaching(want)
		if ideal == 0 || !ok {
			continue
		}
		tokens := int64(blocks) * int64(t.sequence.BlockSize())
		list = append(list, LRUReach{
			OfIdeal: float64(percent) / 100, CapacityBlocks: int64(blocks), CapacityTokens: tokens,
			CapacityBytes: t.bytes(tokens), HitTokens: curve.HitTokens(blocks),
		})
	}
	return list
}

func (t *Trace) sessionReuse(ideal prefixcache.Ideal, warmup int) *SessionReuse {
	if len(t.inside) == 0 {
		return nil
	}
	own := t.sequence.IdealApart(t.inside, warmup)
	share := func(blocks, tokens int64) HitShare {
		return HitShare{blocks, tokens, Ratio(float64(tokens), float64(ideal.HitTokens))}
	}
	return &SessionReuse{
		Within: share(own.HitBlocks, own.HitTokens),
		Across: share(ideal.HitBlocks-own.HitBlocks, ideal.HitTokens-own.HitTokens),
	}
}

// leastDoubling is the exponent of the first bin's end: what is below 2^-10 is
// in one bin from 0 on.
const leastDoubling = -10

// doublings counts values, each divided by unit, in bins from one power of two
// to the next, those that have any. Negative values are left out.
func doublings(c *Counter, unit float64) []Bin {
	bins := []Bin{}
	for raw, n := range c.All() {
		if raw < 0 {
			continue
		}
		v := float64(raw) / unit
		from, to := 0.0, math.Ldexp(1, leastDoubling)
		if v >= to {
			e := math.Ilogb(v)
			from, to = math.Ldexp(1, e), math.Ldexp(1, e+1)
		}
		if len(bins) == 0 || bins[len(bins)-1].From < from {
			bins = append(bins, Bin{From: from, To: to})
		}
		bins[len(bins)-1].Blocks += n
	}
	return bins
}
