package analysis

import "retrace/hashing/prefixcache"

// TracePopularity is how unevenly the blocks of the whole trace are used,
// warm-up included.
type TracePopularity struct {
	// Blocks is how many different ones there are, Uses how often requests
	// use one.
	Blocks int64 `json:"blocks"`
	Uses   int64 `json:"uses"`
	// Zipf is nil where there are fewer than two blocks.
	Zipf *Zipf `json:"zipf"`
}

// TopPrefixes lists the beginnings that most prompts of the whole trace share
// and those that save most.
type TopPrefixes struct {
	ByTokens   []SharedPrefix `json:"by_tokens"`
	ByRequests []SharedPrefix `json:"by_requests"`
}

// SharedPrefix is a beginning that two or more prompts share: the longest one
// that just these prompts have in common.
type SharedPrefix struct {
	Blocks int64 `json:"blocks"`
	Tokens int64 `json:"tokens"`
	// Requests is how many prompts begin with it.
	Requests int64 `json:"requests"`
	// SavedTokens are the hits of an endless cache in what the prefix has more
	// than the next shorter one. Those of all shared prefixes add up to the
	// hits of the whole trace.
	SavedTokens int64 `json:"saved_tokens"`
	// FirstRequest is the first request that begins with it, counted from 0.
	FirstRequest int64 `json:"first_request"`
}

// addPopularity fills in what requests use, however large a cache is.
func (t *Trace) addPopularity(p *TracePrefix) {
	popularity := t.sequence.Popularity()
	frequencies := popularity.Frequencies()
	p.Popularity = TracePopularity{Blocks: p.Unique, Uses: p.Blocks, Zipf: fitZipf(frequencies)}
	byTokens, byRequests := popularity.Prefixes(t.opts.Top)
	p.TopPrefixes = TopPrefixes{ByTokens: sharedPrefixes(byTokens), ByRequests: sharedPrefixes(byRequests)}
}

func sharedPrefixes(list []prefixcache.Prefix) []SharedPrefix {
	out := make([]SharedPrefix, len(list))
	for i, p := range list {
		out[i] = SharedPrefix{p.Blocks, p.Tokens, p.Requests, p.SavedTokens, int64(p.First)}
	}
	return out
}
