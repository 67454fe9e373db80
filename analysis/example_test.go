package analysis_test

import (
	"fmt"
	"time"

	"retrace/analysis"
	"retrace/record"
)

// Two requests, one of which failed: it counts as failed and in nothing else.
func ExampleRun() {
	slo, err := analysis.ParseSLO("ttft=500ms,tpot=50ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	run := analysis.NewRun(analysis.RunOptions{SLO: &slo})

	good := record.NewResult()
	good.State = record.Completed
	good.Scheduled, good.Granted, good.Sent = 0, 0, time.Millisecond
	good.FirstOutput, good.LastOutput = 101*time.Millisecond, 501*time.Millisecond
	good.PromptTokens, good.CompletionTokens = 1000, 11
	run.Add(&good)

	bad := record.NewResult()
	bad.State, bad.Class = record.Failed, record.ClassHTTP429
	run.Add(&bad)

	rep := run.Report()
	fmt.Println("completed:", rep.Requests.Completed, "of", rep.Requests.Total)
	fmt.Println("errors:", rep.Errors)
	fmt.Println("TTFT, ms:", rep.TTFT.P50.V, "TPOT, ms:", rep.TPOT.P50.V)
	fmt.Println("good:", rep.Goodput.Good)
	// Output:
	// completed: 1 of 2
	// errors: map[http_429:1]
	// TTFT, ms: 100 TPOT, ms: 40
	// good: 1
}

// Two prompts that share their first block of 512 tokens.
func ExampleTrace() {
	tr, err := analysis.NewTrace(analysis.TraceOptions{Header: record.Header{BlockSize: 512}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, blocks := range [][]uint64{{1, 2}, {1, 3}} {
		r := record.NewRequest()
		r.Arrival = time.Duration(i) * time.Second
		r.InputTokens, r.OutputTokens, r.Blocks = 1000, 50, blocks
		if err := tr.Add(&r); err != nil {
			fmt.Println(err)
			return
		}
	}
	rep, err := tr.Report()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rep.PrefixCache.Ideal.HitTokens, "of", rep.InputTokens.Total.Sum, "tokens")
	// Output:
	// 512 of 2000 tokens
}

// Percentiles are exact, and distributions can be merged.
func ExampleCounter() {
	var a, b analysis.Counter
	a.Add(1000) // microseconds
	b.AddN(3000, 2)
	a.Merge(&b)
	s := a.Stats(1000) // as milliseconds
	fmt.Println(s.Count, s.Min.V, s.P50.V, s.Max.V)
	// Output:
	// 3 1 3 3
}
