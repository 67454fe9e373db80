package prefixcache

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Policy names what a cache evicts.
type Policy string

// The policies.
const (
	PolicyLRU     Policy = "lru"
	PolicyFIFO    Policy = "fifo"
	PolicyOptimal Policy = "optimal"
	// PolicyVLLM is the free queue of a real vLLM engine, one request at a time.
	PolicyVLLM Policy = "vllm"
)

// Policies lists every policy.
func Policies() []Policy {
	return []Policy{PolicyLRU, PolicyFIFO, PolicyOptimal, PolicyVLLM}
}

// ParsePolicies reads a list such as "lru,fifo", each name at most once.
func ParsePolicies(text string) ([]Policy, error) {
	var list []Policy
	for name := range strings.SplitSeq(text, ",") {
		p := Policy(strings.TrimSpace(name))
		if !slices.Contains(Policies(), p) {
			return nil, fmt.Errorf("parse policies %q: found %q, expected lru, fifo, optimal or vllm", text, name)
		}
		if slices.Contains(list, p) {
			return nil, fmt.Errorf("parse policies %q: %s is given twice", text, p)
		}
		list = append(list, p)
	}
	return list, nil
}

// Point is the hits of one policy at one capacity.
type Point struct {
	Policy    Policy
	Capacity  int // blocks
	HitTokens int64
}

// Curve computes the hits of each policy at each capacity, policies in the
// order given and capacities within them, requests from warmup on.
func (s *Sequence) Curve(policies []Policy, capacities []int, warmup int) ([]Point, error) {
	var points []Point
	for _, p := range policies {
		hits, err := s.policy(p, warmup)
		if err != nil {
			return nil, err
		}
		for _, c := range capacities {
			n, err := hits(c)
			if err != nil {
				return nil, fmt.Errorf("simulate %s cache of %d blocks: %w", p, c, err)
			}
			points = append(points, Point{Policy: p, Capacity: c, HitTokens: n})
		}
	}
	return points, nil
}

// policy gives the function from capacity to hit tokens.
func (s *Sequence) policy(p Policy, warmup int) (func(capacity int) (int64, error), error) {
	switch p {
	case PolicyLRU:
		curve := s.LRU(warmup)
		return func(c int) (int64, error) { return curve.HitTokens(c), nil }, nil
	case PolicyFIFO:
		return func(c int) (int64, error) { return s.FIFO(c, warmup), nil }, nil
	case PolicyOptimal:
		return func(c int) (int64, error) { return s.Optimal(c, warmup), nil }, nil
	case PolicyVLLM:
		return func(c int) (int64, error) { return s.VLLM(c, warmup) }, nil
	}
	return nil, fmt.Errorf("simulate cache: unknown policy %q", p)
}

// Sweep is the default list of capacities: doubling, the last one holding
// every block of the sequence, at most 16 of them.
func (s *Sequence) Sweep() []int {
	const most = 16
	top := 1
	for top < s.unique {
		top *= 2
	}
	var list []int
	for c := top; c > 0 && len(list) < most; c /= 2 {
		list = append(list, c)
	}
	slices.Reverse(list)
	return list
}

// maxCapacity is far more blocks than any cache has, and few enough that their
// tokens can be counted.
const maxCapacity = 1 << 40

// ParseCapacities reads a list of cache sizes in blocks, such as "1000,2000",
// each at most once.
func ParseCapacities(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || n < 1 || n > maxCapacity {
			return nil, fmt.Errorf("parse capacities %q: found %q, expected a number of blocks from 1 to %d", text, part, int64(maxCapacity))
		}
		if slices.Contains(list, int(n)) {
			return nil, fmt.Errorf("parse capacities %q: %d is given twice", text, n)
		}
		list = append(list, int(n))
	}
	return list, nil
}
