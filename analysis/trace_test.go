package analysis

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrace/hashing/prefixcache"
	"retrace/record"
)

func request(at time.Duration, input, output int64, blocks ...uint64) record.Request {
	r := record.NewRequest()
	r.Arrival, r.InputTokens, r.OutputTokens, r.Blocks = at, input, output, blocks
	return r
}

func analyseTrace(t *testing.T, opts TraceOptions, requests ...record.Request) *TraceReport {
	t.Helper()
	tr, err := NewTrace(opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range requests {
		if err := tr.Add(&requests[i]); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := tr.Report()
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// smallTrace: blocks of 10 tokens; see prefixcache's TestIdealByHand.
func smallTrace() (record.Header, []record.Request) {
	h := record.Header{Kind: record.KindTrace, BlockSize: 10, Source: "mooncake", Quantum: 3 * time.Second}
	list := []record.Request{
		request(0, 25, 5, 1, 2, 3), request(0, 25, 7, 1, 2, 3), request(3*time.Second, 10, 1, 2), request(6*time.Second, 20, 3, 1, 9),
	}
	list[0].Session, list[1].Session, list[2].Session = "a", "b", "a"
	return h, list
}

func TestTraceGolden(t *testing.T) {
	h, list := smallTrace()
	rep := analyseTrace(t, TraceOptions{Header: h, Policies: prefixcache.Policies(), Capacities: []int{2, 4}}, list...)
	b, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "trace.json", b)
	var table bytes.Buffer
	if err := rep.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	golden(t, "trace.txt", table.Bytes())
}

// TestTraceByHand checks the golden trace's figures against sums done by hand.
func TestTraceByHand(t *testing.T) {
	h, list := smallTrace()
	rep := analyseTrace(t, TraceOptions{Header: h, Policies: prefixcache.Policies(), Capacities: []int{2, 4}}, list...)
	rate := Ratio
	point := func(p prefixcache.Policy, c, hits int64) CurvePoint {
		return CurvePoint{Policy: p, CapacityBlocks: c, CapacityTokens: 10 * c, HitTokens: hits, TokenHitRate: rate(float64(hits), 80)}
	}
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"requests", rep.Requests, int64(4)},
		{"sessions", rep.Sessions, int64(2)},
		{"duration", rep.DurationS, Some(6)},
		{"input", rep.InputTokens.Total, Total{80, 4}},
		{"output", rep.OutputTokens.Total, Total{16, 4}},
		{"input mean", rep.InputTokens.Mean, Some(20)},
		// Times between arrivals: 0, 3, 3: mean 2, population std sqrt(2).
		{"rate", rep.Arrivals.RateRPS, Some(4.0 / 6)},
		{"cv", rep.Arrivals.CV, Some(0.7071067811865476)},
		{"interarrival n", rep.Arrivals.Interarrival.Count, int64(3)},
		{"distinct", rep.DistinctArrivals, int64(3)},
		{"blocks", rep.PrefixCache.Blocks, int64(9)},
		{"unique", rep.PrefixCache.Unique, int64(5)},
		{"ideal", rep.PrefixCache.Ideal, TraceIdeal{4, 35, rate(4, 9), rate(35, 80), rate(3, 7), 30, rate(30, 80)}},
		// LRU of 2 holds A, AB after each of the first two: 20 tokens hit; then
		// B, A: 10 tokens. Of 4: 25, then A AB ABC B: 10.
		// FIFO of 2 holds AB, ABC after the first: A misses; then A is in (out
		// AB), AB (out ABC), ABC (out A): AB ABC; B: ABC B; A misses. Of 4: 25,
		// then A AB ABC B: 10.
		// Optimal of 2 holds A and one more, whose next use is nearest: AB; 20;
		// then A alone has a next use: 10. Of 4: 25 + 10.
		// vLLM of 2 has no room for three blocks; B and A X hit nothing. Of 4:
		// 25 + 5 - 1 = 29 tokens take 3 blocks: AA, AB hit: 20; 25 + 7 - 1 =
		// 31: 4 blocks; then B and its 10 tokens take one; A hits: 10.
		{"curve", rep.PrefixCache.Curve, []CurvePoint{
			point("lru", 2, 30), point("lru", 4, 35), point("fifo", 2, 0), point("fifo", 4, 35),
			point("optimal", 2, 30), point("optimal", 4, 35), point("vllm", 2, 0), point("vllm", 4, 30),
		}},
	} {
		if d := cmp.Diff(c.want, c.got, near); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestTraceKeyOrder(t *testing.T) {
	h, list := smallTrace()
	b, err := analyseTrace(t, TraceOptions{Header: h}, list...).JSON()
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, key := range []string{
		"schema", "requests", "sessions", "duration_s", "input_tokens", "total", "count", "mean", "std", "min", "p50",
		"p90", "p95", "p99", "max", "output_tokens", "arrivals", "rate_rps", "cv", "interarrival_s", "prefix_cache",
		"block_size", "blocks", "unique_blocks", "warmup", "ideal", "hit_blocks", "hit_tokens", "block_hit_rate",
		"token_hit_rate", "full_block_hit_rate", "curve", "policy", "capacity_blocks", "capacity_tokens", "hit_tokens",
		"token_hit_rate",
	} {
		i := bytes.Index(b[at:], []byte(`"`+key+`":`))
		if i < 0 {
			t.Fatalf("key %s is missing or out of order", key)
		}
		at += i
	}
}

// TestQuantisedArrivals: T10.
func TestQuantisedArrivals(t *testing.T) {
	h, list := smallTrace()
	noted(t, analyseTrace(t, TraceOptions{Header: h}, list...), "arrivals quantised to 3,000 ms: 4 requests share 3 times")
}

// TestIdleHead: T03. Ten requests 600 s apart, then 500 that come 0.2 s apart.
func TestIdleHead(t *testing.T) {
	var list []record.Request
	at := time.Duration(0)
	for range 10 {
		list = append(list, request(at, 1, 1))
		at += 600 * time.Second
	}
	for range 500 {
		list = append(list, request(at, 1, 1))
		at += 200 * time.Millisecond
	}
	rep := analyseTrace(t, TraceOptions{}, list...)
	noted(t, rep, "the head is nearly idle: the first 10 requests take 6000 s, a rate of 0.002/s, where the median is 5/s")
	steady := analyseTrace(t, TraceOptions{}, list[10:]...)
	if all := strings.Join(steady.Warnings, "\n"); strings.Contains(all, "idle") {
		t.Errorf("a steady trace is called idle: %s", all)
	}
	if n := len(rep.RateProfile); n != profileBins {
		t.Errorf("the rate profile has %d parts", n)
	}
	var sum int64
	for _, b := range rep.RateProfile {
		sum += b.Requests
	}
	if sum != 510 {
		t.Errorf("the parts of the rate profile have %d requests, want 510", sum)
	}
}

// TestNoBlocks: T14. Without block ids there is no cache to speak of.
func TestNoBlocks(t *testing.T) {
	for _, c := range []struct {
		name   string
		header record.Header
		list   []record.Request
		want   string
	}{
		{"synthesised", record.Header{BlockSize: 512, PrefixSynthesised: true}, []record.Request{request(0, 900, 3)}, "no measurement of a cache"},
		{"no block size", record.Header{}, []record.Request{request(0, 900, 3)}, "the trace has no prefix blocks"},
		{"no block", record.Header{BlockSize: 512}, []record.Request{request(0, 900, 3)}, "no request has prefix blocks"},
	} {
		rep := analyseTrace(t, TraceOptions{Header: c.header}, c.list...)
		if rep.PrefixCache != nil {
			t.Errorf("%s: got %+v", c.name, rep.PrefixCache)
		}
		noted(t, rep, c.want)
		b, err := rep.JSON()
		if err != nil || !bytes.Contains(b, []byte("\n  \"prefix_cache\": null")) {
			t.Errorf("%s: prefix_cache is not null", c.name)
		}
	}
	h, list := smallTrace()
	list = append(list, request(7*time.Second, 900, 3))
	rep := analyseTrace(t, TraceOptions{Header: h}, list...)
	noted(t, rep, "1 request without prefix blocks, which hit nothing")
	if want := Ratio(35, 980); rep.PrefixCache.Ideal.ByToken != want {
		t.Errorf("hit rate by tokens: got %v, want %v: prompts without blocks count", rep.PrefixCache.Ideal.ByToken, want)
	}
}

func TestEmptyTrace(t *testing.T) {
	rep := analyseTrace(t, TraceOptions{Header: record.Header{BlockSize: 16}})
	b, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if string(m["duration_s"]) != "null" || string(m["requests"]) != "0" {
		t.Errorf("got %s", b)
	}
	if err := rep.WriteTable(&bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

// TestIncrements: the second turn of a session holds only what is new; its
// whole prompt begins with the first turn's blocks, which therefore hit.
func TestIncrements(t *testing.T) {
	first, second := request(0, 20, 5, 1, 2), record.NewRequest()
	second.Delay, second.InputTokens, second.OutputTokens, second.Blocks = time.Second, 10, 5, []uint64{3}
	second.Increment = true
	first.Session, second.Session = "s", "s"
	rep := analyseTrace(t, TraceOptions{Header: record.Header{BlockSize: 10, Turns: "increment"}}, first, second)
	// Blocks: 2 and 3; prompts: 20 and 20 + 5 + 10 tokens; hit: 2 blocks.
	want := TraceIdeal{2, 20, Ratio(2, 5), Ratio(20, 55), Ratio(2, 5), 20, Ratio(20, 55)}
	if d := cmp.Diff(want, rep.PrefixCache.Ideal, near); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	noted(t, rep, "1 turn holds only what is new", "1 request with a delay after the parent's end")
}

func TestBackwards(t *testing.T) {
	rep := analyseTrace(t, TraceOptions{}, request(time.Second, 1, 1), request(0, 1, 1))
	noted(t, rep, "1 arrival earlier than the one before")
}

func TestWarmup(t *testing.T) {
	h, list := smallTrace()
	rep := analyseTrace(t, TraceOptions{Header: h, Warmup: 0.5}, list...)
	want := TraceIdeal{1, 10, Ratio(1, 3), Ratio(10, 30), Ratio(1, 3), 10, Ratio(10, 30)}
	if d := cmp.Diff(want, rep.PrefixCache.Ideal, near); d != "" || rep.PrefixCache.Blocks != 9 {
		t.Errorf("%d blocks; ideal (-want +got):\n%s", rep.PrefixCache.Blocks, d)
	}
	rep = analyseTrace(t, TraceOptions{Header: h, Warmup: 1}, list...)
	if rep.PrefixCache.Ideal.ByToken.OK || rep.PrefixCache.Curve[0].TokenHitRate.OK {
		t.Error("a warm-up of everything leaves a hit rate")
	}
}

func noted(t *testing.T, rep *TraceReport, parts ...string) {
	t.Helper()
	all := strings.Join(rep.Warnings, "\n")
	for _, p := range parts {
		if !strings.Contains(all, p) {
			t.Errorf("no warning says %q; got:\n%s", p, all)
		}
	}
}

// TestMooncake: H15, the public figures of the real conversation trace.
func TestMooncake(t *testing.T) {
	f, err := os.Open("../../shared/data/mooncake/conversation_trace.jsonl")
	if err != nil {
		t.Skipf("the real Mooncake trace is not here: %v", err)
	}
	defer f.Close()
	tr, err := NewTrace(TraceOptions{Header: record.Header{BlockSize: 512}})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct {
			At     int64    `json:"timestamp"`
			Input  int64    `json:"input_length"`
			Output int64    `json:"output_length"`
			IDs    []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		r := request(time.Duration(row.At)*time.Millisecond, row.Input, row.Output, row.IDs...)
		if err := tr.Add(&r); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := tr.Report()
	if err != nil {
		t.Fatal(err)
	}
	six := func(v Value) Value { return Some(float64(int64(v.V*1e6+0.5)) / 1e6) }
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"requests", rep.Requests, int64(12031)},
		{"input", rep.InputTokens.Total.Sum, int64(144793823)},
		{"output", rep.OutputTokens.Total.Sum, int64(4122048)},
		{"different times", rep.DistinctArrivals, int64(1180)},
		{"blocks", rep.PrefixCache.Blocks, int64(288500)},
		{"unique", rep.PrefixCache.Unique, int64(182790)},
		{"by blocks", six(rep.PrefixCache.Ideal.ByBlock), Some(0.366412)},
		{"by tokens", six(rep.PrefixCache.Ideal.ByToken), Some(0.373624)},
		{"by full blocks", six(rep.PrefixCache.Ideal.ByFull), Some(0.381900)},
		{"top of the curve", rep.PrefixCache.Curve[len(rep.PrefixCache.Curve)-1].HitTokens, rep.PrefixCache.Ideal.HitTokens},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
