package analysis

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"retrace/record"
)

// heapInUse is what the live objects take.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRunMemory: 200,000 results of 100 gaps each, all latencies spread over
// a minute, take less than 20 MiB; as lists of numbers they would take 190.
func TestRunMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("counts twenty million gaps")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	before := heapInUse()
	run := NewRun(RunOptions{})
	gaps := make([]record.Gap, 100)
	for i := range 200_000 {
		res := completed(time.Duration(i)*5*ms, time.Duration(rng.Int64N(60e9)), 0, 1)
		res.LastOutput = res.FirstOutput + time.Duration(rng.Int64N(60e9))
		res.CompletionTokens = 101
		for j := range gaps {
			gaps[j].Wait = time.Duration(rng.Int64N(100e6))
		}
		res.Gaps = gaps
		run.Add(&res)
	}
	used := heapInUse() - before
	const limit = 20 << 20
	if used > limit {
		t.Errorf("200,000 results take %.1f MiB, want at most %d", float64(used)/(1<<20), limit>>20)
	}
	rep := run.Report()
	if rep.ITL.Count != 20_000_000 || rep.E2E.Count != 200_000 {
		t.Errorf("got %d gaps of %d requests", rep.ITL.Count, rep.E2E.Count)
	}
	t.Logf("%.1f MiB", float64(used)/(1<<20))
}
