package prefixcache

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
// order given and capacities within them, requests from warmup on. It works on
// as many processors as there are; the result does not depend on it.
func (s *Sequence) Curve(policies []Policy, capacities []int, warmup int) ([]Point, error) {
	points := make([]Point, 0, len(policies)*len(capacities))
	var tasks []func(*workspace)
	for _, p := range policies {
		if !slices.Contains(Policies(), p) {
			return nil, fmt.Errorf("simulate cache: unknown policy %q", p)
		}
		row := points[len(points) : len(points)+len(capacities)]
		for _, c := range capacities {
			points = append(points, Point{Policy: p, Capacity: c})
		}
		if p == PolicyLRU {
			tasks = append(tasks, func(*workspace) { // one pass for all
				curve := s.LRU(warmup)
				for i := range row {
					row[i].HitTokens = curve.HitTokens(row[i].Capacity)
				}
			})
			continue
		}
		for i := range row {
			tasks = append(tasks, func(w *workspace) { row[i].HitTokens = s.simulate(p, row[i].Capacity, warmup, w) })
		}
	}
	parallel(tasks)
	return points, nil
}

// simulate runs one of the policies that take a pass for each capacity.
func (s *Sequence) simulate(p Policy, capacity, warmup int, w *workspace) int64 {
	switch p {
	case PolicyFIFO:
		return s.fifo(capacity, warmup, w)
	case PolicyOptimal:
		return s.optimal(capacity, warmup, w)
	default:
		return s.vllm(capacity, warmup, w)
	}
}

// parallel runs the tasks, each once, on all processors.
func parallel(tasks []func(*workspace)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		workers.Go(func() {
			var w workspace
			for i := next.Add(1); i <= int64(len(tasks)); i = next.Add(1) {
				tasks[i-1](&w)
			}
		})
	}
	workers.Wait()
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
