package prefixcache_test

import (
	"fmt"

	"retrace/hashing/prefixcache"
)

// Three prompts of two blocks each, of which the first and the last are equal.
func Example() {
	s, err := prefixcache.NewSequence(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ids := range [][]uint64{{1, 2}, {1, 3}, {1, 2}} {
		if err := s.Add(ids, 32, 10); err != nil {
			fmt.Println(err)
			return
		}
	}
	s.Freeze()
	ideal := s.Ideal(0)
	fmt.Printf("endless: %d of %d tokens\n", ideal.HitTokens, ideal.Tokens)
	lru := s.LRU(0)
	for capacity := range 4 {
		fmt.Printf("LRU, %d blocks: %d\n", capacity, lru.HitTokens(capacity))
	}
	// Output:
	// endless: 48 of 96 tokens
	// LRU, 0 blocks: 0
	// LRU, 1 blocks: 32
	// LRU, 2 blocks: 32
	// LRU, 3 blocks: 48
}

// A reuse has an age and a distance; a shared prefix saves what it spares.
func ExampleSequence_LRUReuses() {
	s, err := prefixcache.NewSequence(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ids := range [][]uint64{{1, 2}, {1, 3}, {1, 2}} {
		if err := s.Add(ids, 32, 10); err != nil {
			fmt.Println(err)
			return
		}
	}
	s.Freeze()
	s.LRUReuses(0, func(r prefixcache.Reuse) {
		fmt.Printf("request %d: %d blocks of request %d from %d blocks on\n", r.Request, r.Blocks, r.Earlier, r.Distance)
	})
	saved, _ := s.Popularity().Prefixes(1)
	fmt.Printf("%d tokens in %d requests save %d\n", saved[0].Tokens, saved[0].Requests, saved[0].SavedTokens)
	// Output:
	// request 1: 1 blocks of request 0 from 1 blocks on
	// request 2: 1 blocks of request 1 from 1 blocks on
	// request 2: 1 blocks of request 0 from 3 blocks on
	// 16 tokens in 3 requests save 32
}
