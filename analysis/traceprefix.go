package analysis

import (
	"sync"

	"retrace/hashing/prefixcache"
)

// prefixCache analyses what caches would hit: the curve, and beside it what is
// reused and what is popular.
func (t *Trace) prefixCache() (*TracePrefix, error) {
	s := t.sequence
	s.Freeze()
	warmup := s.WarmupRequests(t.opts.Warmup)
	ideal := s.Ideal(warmup)
	p := &TracePrefix{
		BlockSize: s.BlockSize(), Blocks: int64(s.Blocks()), Unique: int64(s.Unique()), Warmup: t.opts.Warmup,
		Ideal:          idealOf(ideal),
		TraceBlockSize: t.opts.Header.TokensPerBlock(),
		Models:         int64(len(t.models)),
		ModelsShared:   t.opts.ShareModels,
	}
	if _, unnamed := t.models[""]; unnamed {
		p.Models--
	}
	if n := t.opts.KVBytesPerToken; n > 0 {
		p.KVBytesPerToken = Some(float64(n))
	}
	var beside sync.WaitGroup
	beside.Go(func() { t.addReuse(p, ideal, warmup) })
	beside.Go(func() { t.addPopularity(p) })
	var err error
	p.Curve, err = t.curve(ideal, warmup)
	beside.Wait()
	return p, err
}

func idealOf(ideal prefixcache.Ideal) TraceIdeal {
	return TraceIdeal{
		HitBlocks: ideal.HitBlocks, HitTokens: ideal.HitTokens, ServerTokens: ideal.ServerTokens,
		ByBlock:  Ratio(float64(ideal.HitBlocks), float64(ideal.Blocks)),
		ByToken:  Ratio(float64(ideal.HitTokens), float64(ideal.Tokens)),
		ByFull:   Ratio(float64(ideal.FullHits), float64(ideal.FullBlocks)),
		ByServer: Ratio(float64(ideal.ServerTokens), float64(ideal.Tokens)),
	}
}

// curve is the hits of every policy at every capacity.
func (t *Trace) curve(ideal prefixcache.Ideal, warmup int) ([]CurvePoint, error) {
	policies, capacities := t.opts.Policies, t.opts.Capacities
	if len(policies) == 0 {
		policies = []prefixcache.Policy{prefixcache.PolicyLRU}
	}
	if len(capacities) == 0 {
		capacities = t.sequence.Sweep()
	}
	points, err := t.sequence.Curve(policies, capacities, warmup)
	if err != nil {
		return nil, err
	}
	curve := make([]CurvePoint, len(points))
	for i, pt := range points {
		tokens := int64(pt.Capacity) * int64(t.sequence.BlockSize())
		curve[i] = CurvePoint{
			Policy:         pt.Policy,
			CapacityBlocks: int64(pt.Capacity),
			CapacityTokens: tokens,
			HitTokens:      pt.HitTokens,
			TokenHitRate:   Ratio(float64(pt.HitTokens), float64(ideal.Tokens)),
			CapacityBytes:  t.bytes(tokens),
		}
	}
	return curve, nil
}

// bytes is what so many tokens take in a cache.
func (t *Trace) bytes(tokens int64) Value {
	if t.opts.KVBytesPerToken == 0 {
		return Value{}
	}
	return Some(float64(tokens) * float64(t.opts.KVBytesPerToken))
}
