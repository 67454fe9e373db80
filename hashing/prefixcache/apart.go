package prefixcache

import (
	"cmp"
	"slices"
)

// IdealApart counts the hits of endless caches, one for each group of
// requests, such as a session's: a block hits where a request of the same
// group used it before. groups has the group of each request, 0 for one that
// is in none and hits nothing. Requests from warmup on are counted.
func (s *Sequence) IdealApart(groups []uint32, warmup int) Ideal {
	order := make([]uint32, 0, len(groups))
	starts := make([]uint32, len(groups))
	for i := range groups {
		if i > 0 {
			starts[i] = s.ends.at(i - 1)
		}
		if groups[i] != 0 {
			order = append(order, uint32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(groups[a], groups[b]) })
	var sum Ideal
	group := make([]uint32, s.unique) // the last group that used a block
	buf := make([]uint32, s.longest)
	for _, i := range order {
		blocks := s.blocksOf(int(i), int(starts[i]), buf)
		run := 0
		for run < len(blocks) && group[blocks[run]] == groups[i] {
			run++
		}
		for _, b := range blocks[run:] {
			group[b] = groups[i]
		}
		if int(i) >= warmup {
			sum.add(run, len(blocks), int64(s.input.at(int(i))), int64(s.blockSize))
		}
	}
	return sum
}
