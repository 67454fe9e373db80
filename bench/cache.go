package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"retrace/hashing/prefixcache"
	"retrace/record"
)

// rivalModel is a model of kvcache-simulator whose default budgets give 13
// capacities on the conversation trace.
const rivalModel = "glm-5.2"

// curveKey is a point of a curve, curveHits its hit tokens.
type curveKey struct {
	policy   string
	capacity int
}
type curveHits map[curveKey]int64

// measureCache draws the curve of three policies with trace-analyze and with
// kvcache-simulator, in turns, as whole commands from the file to the table;
// then LRU of every capacity, without and with the numbering of the blocks that
// every policy needs once, beside the reading of the .trace.
func measureCache(ctx context.Context, o *options) error {
	source, what, err := conversation(o)
	if err != nil {
		return err
	}
	capacities := []int{22, 44, 88, 176, 352, 704, 1409, 2818, 5637, 11275, 22550, 45100, 90200}
	rival := []string{"-m", "kvcache_sim", "run", "--trace", source, "--model", rivalModel, "--block-size", "512", "--policies", "lru,fifo,optimal"}
	here := exec.CommandContext(ctx, o.python, "-c", "import kvcache_sim").Run() == nil
	var theirs curveHits
	if here { // this pass compiles its C++ core
		if theirs, capacities, err = rivalCurve(ctx, o, rival); err != nil {
			return err
		}
	}
	ours := []string{source, "--policies", "lru,fifo,optimal", "--warmup", "0.5", "--cache-blocks", joinInts(capacities)}
	var mine, its []float64
	for range o.rounds {
		u, err := child(ctx, o, "trace-analyze", ours...)
		if err != nil {
			return err
		}
		mine = append(mine, u.wall.Seconds())
		if !here {
			continue
		}
		start := time.Now()
		if out, err := exec.CommandContext(ctx, o.python, rival...).CombinedOutput(); err != nil {
			return fmt.Errorf("run kvcache-simulator: %w\n%s", err, out)
		}
		its = append(its, time.Since(start).Seconds())
	}
	fmt.Fprintf(o.stdout, "%s; three policies, %d capacities, from the file to the table; medians of %d alternating rounds.\n\n", what, len(capacities), o.rounds)
	fmt.Fprintf(o.stdout, "| what | time |\n| --- | --- |\n| `trace-analyze`, the whole command | %.0f ms |\n", median(mine)*1e3)
	if here {
		same, err := compareCurves(ctx, o, ours, theirs)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.stdout, "| `kvcache-simulator` with its C++ core | %.0f ms |\n| ratio | %.3f |\n", median(its)*1e3, median(mine)/median(its))
		fmt.Fprintf(o.stdout, "\nHit tokens are equal at all %d points.\n", same)
	} else {
		fmt.Fprintf(o.stdout, "| `kvcache-simulator` | `%s` has no kvcache_sim |\n", o.python)
	}
	return measureLRU(o, source)
}

// rivalCurve is what kvcache-simulator says, and at which capacities.
func rivalCurve(ctx context.Context, o *options, args []string) (curveHits, []int, error) {
	out, err := exec.CommandContext(ctx, o.python, append(args, "--format", "json")...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("run kvcache-simulator: %w", err)
	}
	var answer struct {
		Points []struct {
			CacheBlocks int
			Results     map[string]struct{ HitTokens int64 }
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, nil, fmt.Errorf("read what kvcache-simulator printed: %w", err)
	}
	hits, capacities := curveHits{}, []int{}
	for _, p := range answer.Points {
		capacities = append(capacities, p.CacheBlocks)
		for policy, r := range p.Results {
			hits[curveKey{policy, p.CacheBlocks}] = r.HitTokens
		}
	}
	if len(capacities) == 0 {
		return nil, nil, errors.New("kvcache-simulator gave no capacity")
	}
	return hits, capacities, nil
}

// compareCurves fails at the first point that differs, and counts the others.
func compareCurves(ctx context.Context, o *options, args []string, theirs curveHits) (int, error) {
	u, err := child(ctx, o, "trace-analyze", append(args, "--json")...)
	if err != nil {
		return 0, err
	}
	var answer struct {
		PrefixCache struct {
			Curve []struct {
				Policy         string `json:"policy"`
				CapacityBlocks int    `json:"capacity_blocks"`
				HitTokens      int64  `json:"hit_tokens"`
			} `json:"curve"`
		} `json:"prefix_cache"`
	}
	if err := json.Unmarshal(u.stdout, &answer); err != nil {
		return 0, fmt.Errorf("read what trace-analyze printed: %w", err)
	}
	same := 0
	for _, p := range answer.PrefixCache.Curve {
		if want, ok := theirs[curveKey{p.Policy, p.CapacityBlocks}]; !ok || want != p.HitTokens {
			return 0, fmt.Errorf("%s of %d blocks: trace-analyze has %d hit tokens, kvcache-simulator %d", p.Policy, p.CapacityBlocks, p.HitTokens, want)
		}
		same++
	}
	return same, nil
}

func joinInts(list []int) string {
	var text []string
	for _, n := range list {
		text = append(text, strconv.Itoa(n))
	}
	return strings.Join(text, ",")
}

// measureLRU reads the .trace, and finds the LRU hits of every capacity of the
// requests that are then in memory.
func measureLRU(o *options, source string) error {
	trace := filepath.Join(o.scratch, "cache.trace")
	if err := convert(source, trace); err != nil {
		return err
	}
	requests, size, err := readAll(trace)
	if err != nil {
		return err
	}
	var reading, numbering, lru timings
	for range o.rounds {
		if err := reading.repeat(func() error { return readBack(trace) }); err != nil {
			return err
		}
		var s *prefixcache.Sequence
		if err := numbering.repeat(func() error { s, err = number(requests, size); return err }); err != nil {
			return err
		}
		if err := lru.repeat(func() error { s.LRU(0); return nil }); err != nil {
			return err
		}
	}
	read := median(reading.wall)
	ratio := func(seconds float64) string { return fmt.Sprintf("%.2f ms | %.2f", seconds*1e3, seconds/read) }
	fmt.Fprintf(o.stdout, "\nIn this process, medians of %d passes:\n\n| what | time | ratio |\n| --- | --- | --- |\n", len(lru.wall))
	fmt.Fprintf(o.stdout, "| read the `.trace` | %s |\n| LRU's hits for every capacity | %s |\n", ratio(read), ratio(median(lru.wall)))
	fmt.Fprintf(o.stdout, "| number the blocks of its requests | %s |\n| numbering and LRU's hits together | %s |\n",
		ratio(median(numbering.wall)), ratio(median(numbering.wall)+median(lru.wall)))
	return nil
}

// readAll gives a trace's requests and its block size.
func readAll(trace string) (requests []record.Request, blockSize int, err error) {
	in, err := record.Open(trace)
	if err != nil {
		return nil, 0, fmt.Errorf("read back: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for r, err := range in.Requests() {
		if err != nil {
			return nil, 0, fmt.Errorf("read back: %w", err)
		}
		r.Blocks = append([]uint64(nil), r.Blocks...)
		requests = append(requests, r)
	}
	return requests, in.Header().BlockSize, nil
}

func number(requests []record.Request, blockSize int) (*prefixcache.Sequence, error) {
	s, err := prefixcache.NewSequence(blockSize)
	if err != nil {
		return nil, err
	}
	for i := range requests {
		r := &requests[i]
		if err := s.Add(r.Blocks, r.InputTokens, r.OutputTokens); err != nil {
			return nil, err
		}
	}
	s.Freeze()
	return s, nil
}
