package analysis

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrace/hashing/prefixcache"
	"retrace/record"
)

// TestModelsApart: H09. The same prompt for the base model and two adapters
// makes three chains that share nothing, unless asked.
func TestModelsApart(t *testing.T) {
	h := record.Header{BlockSize: 10}
	var list []record.Request
	for i, model := range []string{"", "a1", "a2", "a1"} {
		r := request(time.Duration(i)*time.Second, 20, 1, 1, 2)
		r.Model = model
		list = append(list, r)
	}
	for _, c := range []struct {
		share        bool
		unique, hits int64
		line         string
	}{{false, 6, 20, "2 models, which share no blocks."}, {true, 2, 60, "2 models, whose blocks count as the same."}} {
		rep := analyseTrace(t, TraceOptions{Header: h, ShareModels: c.share}, list...)
		p := rep.PrefixCache
		if p.Unique != c.unique || p.Ideal.HitTokens != c.hits || p.Models != 2 || p.ModelsShared != c.share {
			t.Errorf("shared %v: got %d different blocks, %d hit tokens, %d models", c.share, p.Unique, p.Ideal.HitTokens, p.Models)
		}
		var table bytes.Buffer
		if err := rep.WriteTable(&table); err != nil || !strings.Contains(table.String(), c.line) {
			t.Errorf("shared %v: the table does not say %q (%v)", c.share, c.line, err)
		}
	}
}

// TestReuseByHand: blocks of 10.
//
//	at 0 s, session s: A B      nothing is known
//	at 1 s, session u: A C      A was used 1 s ago, by s: across; distance 1
//	at 4 s, session s: A B D    A 3 s ago (by u), distance 1; B 4 s ago, distance
//	                            3: above it are A and C. Both within: s had them
//	at 6 s, no session: A       2 s ago, distance 1; across
func TestReuseByHand(t *testing.T) {
	list := []record.Request{
		request(0, 20, 1, 1, 2), request(time.Second, 20, 1, 1, 3), request(4*time.Second, 30, 1, 1, 2, 4), request(6*time.Second, 10, 1, 1),
	}
	list[0].Session, list[1].Session, list[2].Session = "s", "u", "s"
	p := analyseTrace(t, TraceOptions{Header: record.Header{BlockSize: 10}, KVBytesPerToken: 3, Top: 10}, list...).PrefixCache
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"blocks", p.Reuse.Blocks, int64(4)},
		{"mean time", p.Reuse.TimeS.Mean, Some(2.5)},
		{"longest time", p.Reuse.TimeS.Max, Some(4)},
		{"times", p.Reuse.TimeBins, []Bin{{1, 2, 1}, {2, 4, 2}, {4, 8, 1}}},
		{"mean distance", p.Reuse.Distance.Mean, Some(1.5)},
		{"distances", p.Reuse.DistanceBins, []Bin{{1, 2, 3}, {2, 4, 1}}},
		{"sessions", *p.Reuse.Sessions, SessionReuse{HitShare{2, 20, Some(0.5)}, HitShare{2, 20, Some(0.5)}}},
		// 40 tokens hit: 30 from 1 block on, 40 from 3.
		{"reaches", p.LRUReaches, []LRUReach{
			{0.5, 1, 10, Some(30), 30}, {0.9, 3, 30, Some(90), 40}, {0.99, 3, 30, Some(90), 40},
		}},
		{"prefixes", p.TopPrefixes.ByTokens, []SharedPrefix{{1, 10, 4, 30, 0}, {2, 20, 2, 10, 0}}},
		{"popularity", p.Popularity.Uses, int64(8)},
	} {
		if d := cmp.Diff(c.want, c.got, near); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestReuseWithoutTimes: delays instead of arrivals leave no times, and no
// sessions no shares.
func TestReuseWithoutTimes(t *testing.T) {
	list := []record.Request{request(0, 20, 1, 1, 2), request(record.NoTime, 20, 1, 1, 2), request(time.Second, 20, 1, 1, 2)}
	rep := analyseTrace(t, TraceOptions{Header: record.Header{BlockSize: 10}}, list...)
	r := rep.PrefixCache.Reuse
	if r.Blocks != 4 || r.TimeS.Count != 0 || r.Distance.Count != 4 || r.Sessions != nil {
		t.Errorf("got %+v", r)
	}
	if rep.DurationS != Some(1) || rep.Arrivals.Interarrival.Count != 1 {
		t.Errorf("got a duration of %v and %d times between arrivals", rep.DurationS, rep.Arrivals.Interarrival.Count)
	}
}

// TestHostileTraces: no figure of odd traces is NaN, infinite or a crash.
func TestHostileTraces(t *testing.T) {
	same := func(n int) (list []record.Request) {
		for range n {
			list = append(list, request(0, 20, 1, 1, 2))
		}
		return list
	}
	for name, list := range map[string][]record.Request{
		"one request": same(1), "all the same": same(500), "zero tokens": {request(0, 0, 0, 1, 2), request(0, 0, 0, 1, 2)},
		"no blocks and one": {request(0, 5, 0), request(0, 5, 0, 1)}, "unknown lengths": {request(0, record.Unknown, record.Unknown, 1), request(0, record.Unknown, record.Unknown, 1)},
		"backwards": {request(9, 10, 1, 1), request(3, 10, 1, 1)},
	} {
		for _, warmup := range []float64{0, 0.5, 1} {
			rep := analyseTrace(t, TraceOptions{
				Header: record.Header{BlockSize: 10}, Policies: prefixcache.Policies(), Capacities: []int{1, 2, 1 << 40}, Warmup: warmup, Top: 3,
			}, list...)
			b, err := rep.JSON()
			if err != nil || !json.Valid(b) {
				t.Errorf("%s: %v", name, err)
			}
			var table bytes.Buffer
			if err := rep.WriteTable(&table); err != nil || strings.Contains(table.String(), "NaN") || strings.Contains(table.String(), "Inf") {
				t.Errorf("%s: %v\n%s", name, err, &table)
			}
		}
	}
}

func TestCacheBlockSize(t *testing.T) {
	for _, n := range []int{5, 15, 25, 1 << 40} {
		if _, err := NewTrace(TraceOptions{Header: record.Header{BlockSize: 10}, CacheBlockSize: n}); err == nil {
			t.Errorf("caches of %d-token blocks for a trace of 10-token blocks are accepted", n)
		}
	}
}

func TestBenchCache(t *testing.T) {
	h, list := smallTrace()
	build := func(h record.Header, list ...record.Request) *Trace {
		tr, err := NewTrace(TraceOptions{Header: h})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if err := tr.Add(&list[i]); err != nil {
				t.Fatal(err)
			}
		}
		return tr
	}
	b, err := build(h, list...).BenchCache(context.Background(), 2)
	if err != nil {
		t.Fatal(err)
	}
	// 5 different blocks: 1 (of 5/64 and of 5/8) and 5; LRU once.
	var got []string
	for _, r := range b.Results {
		got = append(got, string(r.Policy))
		if r.BlocksPerS.Count != 2 || r.RequestsPerS.Min.V <= 0 || r.NSPerBlock.Max.V <= 0 || r.HitTokens.OK != (r.Policy != prefixcache.PolicyLRU) {
			t.Errorf("got %+v", r)
		}
	}
	if want := "lru fifo fifo optimal optimal vllm vllm"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for name, tr := range map[string]*Trace{
		"empty": build(h), "no blocks": build(h, request(0, 5, 1)), "synthesised": build(record.Header{BlockSize: 10, PrefixSynthesised: true}, list...),
	} {
		if _, err := tr.BenchCache(context.Background(), 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := build(h, list...).BenchCache(ctx, 1); err == nil {
		t.Error("goes on after it was cancelled")
	}
	if _, err := build(h, list...).BenchCache(context.Background(), 0); err == nil {
		t.Error("no trials are accepted")
	}
}
