package analysis

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrace/record"
)

func about(t *testing.T, what string, got Value, want float64) {
	t.Helper()
	if x, ok := got.Get(); !ok || math.Abs(x-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestSteadyWindow: 100 requests of a second, ten a second from 0 on, and one of
// 300 s at the end. Sends go from 0.001 to 10.001 s, so the window is 1.001 to
// 10.001 s; the request of due time k/10 ends at k/10 + 1.001 s, which 91 of them
// (k = 0 … 90) do within: 91/9 s. Over the whole run it is 101/310.
func TestSteadyWindow(t *testing.T) {
	var list []record.Result
	for k := range 100 {
		list = append(list, completed(time.Duration(k)*100*ms, time.Second, 0, 1))
	}
	list = append(list, completed(10*time.Second, 300*time.Second, 0, 1))
	rep := analyse(RunOptions{}, list...)
	about(t, "whole throughput", rep.Throughput.Requests, 101.0/310)
	s := rep.Steady
	if s == nil || s.FromS != 1.001 || s.ToS != 10.001 || s.Completed != 91 {
		t.Fatalf("steady window %+v", s)
	}
	about(t, "steady requests/s", s.Requests, 91.0/9)
	about(t, "steady output tokens/s", s.OutputTokens, 91.0/9)
	about(t, "steady tokens/s", s.TotalTokens, 91*101.0/9)
	var b bytes.Buffer
	if err := rep.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Throughput, whole run: 0.326 requests/s", "Throughput, steady window (1.001 s to 10.00 s): 10.11 requests/s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

// TestNoSteadyWindow: of requests that all leave at once there is none, whatever
// becomes of them; failed ones are load all the same.
func TestNoSteadyWindow(t *testing.T) {
	if s := analyse(RunOptions{}, completed(0, ms, ms, 3), completed(0, ms, ms, 3)).Steady; s != nil {
		t.Errorf("got %+v", s)
	}
	if s := analyse(RunOptions{}).Steady; s != nil {
		t.Errorf("of nothing: %+v", s)
	}
	s := analyse(RunOptions{}, completed(0, 2*time.Second, 0, 1), failed(10*time.Second, record.ClassTimeout)).Steady
	if s == nil || s.Completed != 1 || s.FromS != 1.001 || s.ToS != 10.001 {
		t.Errorf("with a failed request at the end: %+v", s)
	}
}

// TestSeveralTokensAChunk has three chunks at 100, 200 and 300 ms of 1, 4 and 4
// tokens: TPOT (300-100)/(9-1) = 25 ms, two gaps of 100 ms, eight intervals of 25.
func TestSeveralTokensAChunk(t *testing.T) {
	r := completed(0, 100*ms, 100*ms, 3)
	r.CompletionTokens, r.CountedOutput = 9, 3
	r.Gaps[0].Tokens, r.Gaps[1].Tokens = 4, 4
	rep := analyse(RunOptions{}, r)
	about(t, "TPOT", rep.TPOT.Mean, 25)
	about(t, "TPOT by tokens", rep.TokenMean, 25)
	about(t, "ITL", rep.ITL.Mean, 100)
	if rep.ITL.Count != 2 || rep.Interval.Count != 8 || rep.Interval.Min != Some(25) || rep.Interval.Max != Some(25) {
		t.Errorf("ITL %+v, interval %+v", rep.ITL, rep.Interval)
	}
	r.Gaps[1].Tokens = record.Unknown
	if rep := analyse(RunOptions{}, r); rep.Interval.Count != 0 {
		t.Errorf("with a gap of unknown tokens: %+v", rep.Interval)
	}
}

// TestChunkOfNoTokens: the time of a chunk without a token is the next token's:
// gaps of 10 ms (none), 30 ms (2) make two intervals of 20 ms; 15 ms (none) at
// the end is nobody's.
func TestChunkOfNoTokens(t *testing.T) {
	r := completed(0, 100*ms, 10*ms, 4)
	r.Gaps = []record.Gap{{Wait: 10 * ms, Tokens: 0}, {Wait: 30 * ms, Tokens: 2}, {Wait: 15 * ms, Tokens: 0}}
	rep := analyse(RunOptions{}, r)
	if rep.Interval.Count != 2 || rep.Interval.Min != Some(20) || rep.Interval.Max != Some(20) || rep.ITL.Count != 3 {
		t.Errorf("interval %+v, ITL %+v", rep.Interval, rep.ITL)
	}
}

// TestMeans: one request of 2 tokens 100 ms apart, one of 11 tokens 10 ms apart.
// A value a request: (100+10)/2 = 55 ms; a weight a token: (100+100)/(1+10).
func TestMeans(t *testing.T) {
	rep := analyse(RunOptions{}, completed(0, ms, 100*ms, 2), completed(0, ms, 10*ms, 11))
	about(t, "TPOT, one value a request", rep.TPOT.Mean, 55)
	about(t, "TPOT, one weight a token", rep.TokenMean, 200.0/11)
	about(t, "ITL", rep.ITL.Mean, 200.0/11)
	if rep := analyse(RunOptions{}, completed(0, ms, ms, 1)); rep.TokenMean.OK {
		t.Errorf("of one token: %v", rep.TokenMean)
	}
}

// TestMeansAgree: where every chunk has one token, TPOT by tokens, the mean ITL
// and the mean interval are one figure.
func TestMeansAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := NewRun(RunOptions{})
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			r := completed(0, ms, 0, 1)
			r.Gaps = nil
			for _, us := range rapid.SliceOfN(rapid.Int64Range(0, 1e6), 1, 30).Draw(t, "gaps") {
				wait := time.Duration(us) * time.Microsecond
				r.Gaps = append(r.Gaps, record.Gap{Wait: wait, Tokens: 1})
				r.LastOutput += wait
			}
			r.CompletionTokens = int64(len(r.Gaps)) + 1
			run.Add(&r)
		}
		rep := run.Report()
		for name, v := range map[string]Value{"ITL": rep.ITL.Mean, "interval": rep.Interval.Mean} {
			if math.Abs(v.V-rep.TokenMean.V) > 1e-6 {
				t.Errorf("%s %v, TPOT by tokens %v", name, v, rep.TokenMean)
			}
		}
	})
}

// TestAchieved: 5 tokens of 10 wanted, 10 of 10, and one of which nobody knows.
func TestAchieved(t *testing.T) {
	a, b, c := completed(0, ms, ms, 5), completed(0, ms, ms, 10), completed(0, ms, ms, 3)
	a.WantedOutput, b.WantedOutput = 10, 10
	rep := analyse(RunOptions{}, a, b, c)
	if s := rep.Achieved; s.Count != 2 || s.Mean != Some(0.75) || s.Min != Some(0.5) || s.Max != Some(1) {
		t.Errorf("achieved %+v", s)
	}
	rowOf(t, rep, "output tokens, of wanted", true)
	rowOf(t, analyse(RunOptions{}, b), "output tokens, of wanted", false)
}

// rowOf looks for a row in the table.
func rowOf(t *testing.T, rep *RunReport, row string, want bool) {
	t.Helper()
	var b bytes.Buffer
	if err := rep.WriteTable(&b); err != nil || strings.Contains(b.String(), row) != want {
		t.Errorf("table with %q: want %v (%v)\n%s", row, want, err, b.String())
	}
}

func TestServerTimes(t *testing.T) {
	a := completed(0, ms, ms, 5)
	a.ServerQueue, a.ServerPrefill, a.ServerDecode = 2*ms, 30*ms, 400*ms
	rep := analyse(RunOptions{}, a, completed(0, ms, ms, 5))
	for name, s := range map[string]Stats{"2": rep.ServerQueue, "30": rep.ServerPrefill, "400": rep.ServerDecode} {
		if s.Count != 1 || figure(s.Mean) != name {
			t.Errorf("want %s ms of one request, got %+v", name, s)
		}
	}
	rowOf(t, rep, "prefill in the server, ms", true)
	rowOf(t, analyse(RunOptions{}, completed(0, ms, ms, 5)), "prefill in the server, ms", false)
}

// TestBeside: warm-up and probes have figures of their own, and are in no other.
func TestBeside(t *testing.T) {
	probe, broken, warm := completed(0, 50*ms, 0, 1), failed(0, record.ClassHTTP429), completed(-time.Second, 900*ms, 0, 1)
	probe.Mark, broken.Mark, warm.Mark = record.Probe, record.Probe, record.WarmUp
	warm.Sent = -time.Second
	rep := analyse(RunOptions{}, completed(0, 100*ms, 0, 1), probe, broken, warm)
	if rep.Requests.Total != 1 || len(rep.Errors) > 0 || rep.TTFT.Mean != Some(100) || rep.BeyondTrace != (RunMarked{WarmUp: 1, Probe: 2}) {
		t.Errorf("the trace's own: %+v, TTFT %+v, beyond %+v", rep.Requests, rep.TTFT, rep.BeyondTrace)
	}
	if p := rep.Probes; p == nil || p.Requests != (RunRequests{Total: 2, Completed: 1, Failed: 1}) || p.Errors["http_429"] != 1 || p.TTFT.Mean != Some(50) {
		t.Errorf("probes %+v", p)
	}
	if w := rep.WarmUp; w == nil || w.Requests.Total != 1 || w.TTFT.Count != 1 || len(w.Errors) > 0 {
		t.Errorf("warm-up %+v", w)
	}
	rowOf(t, rep, "Probes: 1 completed, 1 failed, 0 cancelled, 0 not sent; TTFT p50 50 ms, p99 50* ms", true)
	rowOf(t, rep, "Probes, failures: http_429 1", true)
	rowOf(t, rep, "Warm-up: 1 completed", true)
}

// TestRetries: of four requests one goes well, one at the third attempt, one
// fails for good after one more, one at once: three first attempts failed, two
// requests in the end.
func TestRetries(t *testing.T) {
	again := record.Try{Sent: 0, Wait: ms, Status: 429, Class: record.ClassHTTP429}
	b := completed(0, ms, ms, 5)
	b.Tries = []record.Try{again, {Class: record.ClassConnect}}
	c, d := failed(0, record.ClassHTTP429), failed(0, record.ClassHTTP5xx)
	c.Tries = []record.Try{again}
	rep := analyse(RunOptions{}, completed(0, ms, ms, 5), b, c, d)
	s := rep.Retries
	if s == nil || s.Requests != 2 || s.Attempts != 3 || s.Recovered != 1 || s.FirstAttempt != Some(0.75) || s.With != Some(0.5) {
		t.Fatalf("retries %+v", s)
	}
	if s.Errors["http_429"] != 2 || s.Errors["connect"] != 1 {
		t.Errorf("errors %v", s.Errors)
	}
	rowOf(t, rep, "Retries: 2 requests made again, 3 times, 1 completed in the end; failure rate 75.0 % at the first attempt, 50.0 % with retries", true)
	if rep := analyse(RunOptions{}, d); rep.Retries != nil {
		t.Errorf("without: %+v", rep.Retries)
	}
	run := NewRun(RunOptions{})
	if err := run.AddHeader(record.Header{Kind: record.KindRecording, Run: &record.Run{Load: record.Load{Retries: 2}}}); err != nil {
		t.Fatal(err)
	}
	run.Add(&d)
	if s := run.Report().Retries; s == nil || s.Requests != 0 || s.FirstAttempt != Some(1) {
		t.Errorf("asked for, not needed: %+v", s)
	}
}

// TestFirstLine: "schedule not kept" is first even of a run that was interrupted.
func TestFirstLine(t *testing.T) {
	for late, want := range map[time.Duration]string{ms: "INTERRUPTED", time.Second: "Schedule NOT KEPT"} {
		run := NewRun(RunOptions{})
		r := completed(0, ms, ms, 2)
		r.Sent = late
		run.Add(&r)
		run.AddFooter(record.Footer{Interrupted: true}, true)
		var b bytes.Buffer
		if err := run.Report().WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(b.String(), "\n")
		second, _, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(first, want) || !strings.Contains(first+second, "INTERRUPTED") || !strings.Contains(first+second, "Schedule") {
			t.Errorf("late by %v: first lines %q, %q", late, first, second)
		}
	}
}

// TestNoOutputTokens: answers without tokens, such as embeddings, have a
// throughput of their prompts alone.
func TestNoOutputTokens(t *testing.T) {
	r := completed(0, ms, 0, 1)
	r.FirstOutput, r.LastOutput, r.CompletionTokens, r.CountedOutput = record.NoTime, 2001*ms, record.Unknown, record.Unknown
	rep := analyse(RunOptions{}, r)
	about(t, "tokens/s", rep.Throughput.TotalTokens, 50)
	about(t, "E2E", rep.E2E.Mean, 2000)
	if rep.Throughput.OutputTokens.OK || rep.OutputTokens.Count != 0 || rep.TTFT.Count != 0 {
		t.Errorf("got %+v", rep.Throughput)
	}
}
