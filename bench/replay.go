package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// summary is what is read of trace-replay's --json.
type summary struct {
	Requests struct {
		Total     int64 `json:"total"`
		Completed int64 `json:"completed"`
	} `json:"requests"`
	Lag struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
		Max float64 `json:"max"`
	} `json:"schedule_lag_ms"`
}

// readSummary reads the JSON that trace-replay printed.
func readSummary(out []byte) (summary, error) {
	var s summary
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("read the summary: %w", err)
	}
	if s.Requests.Total == 0 {
		return s, fmt.Errorf("read the summary: no requests in %.200s", out)
	}
	return s, nil
}

// measureReplay sends short prompts at each rate and shows how late they left.
func measureReplay(ctx context.Context, o *options) error {
	fmt.Fprintf(o.stdout, "16 tokens in, 4 out, streamed; %v a round; medians of %d rounds (the worst in brackets); trace-sim on the same machine.\n\n", o.span, o.rounds)
	fmt.Fprintln(o.stdout, "| requests/s | completed | lateness p50, ms | p99, ms | max, ms | client CPU a request |")
	fmt.Fprintln(o.stdout, "| --- | --- | --- | --- | --- | --- |")
	for text := range strings.SplitSeq(o.rates, ",") {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || rate <= 0 {
			return fmt.Errorf("--rates: found %q, want a number above 0", text)
		}
		if err := replayAt(ctx, o, rate); err != nil {
			return err
		}
	}
	return nil
}

// replayAt does the rounds of one rate.
func replayAt(ctx context.Context, o *options, rate float64) error {
	source := filepath.Join(o.scratch, "steady.jsonl")
	n := int(o.span.Seconds() * rate)
	if err := writeRows(source, n, func(i int) row { return steadyRow(i, rate) }); err != nil {
		return err
	}
	var completed, total int64
	var p50, p99, most, cpu []float64
	for range o.rounds {
		u, s, err := replayRound(ctx, o, source)
		if err != nil {
			return err
		}
		completed += s.Requests.Completed
		total += s.Requests.Total
		p50, p99, most = append(p50, s.Lag.P50), append(p99, s.Lag.P99), append(most, s.Lag.Max)
		cpu = append(cpu, u.cpu.Seconds()*1e6/float64(s.Requests.Total))
	}
	fmt.Fprintf(o.stdout, "| %.0f | %d of %d | %.3f (%.3f) | %.3f (%.3f) | %.3f (%.3f) | %.0f µs |\n", rate, completed, total,
		median(p50), slices.Max(p50), median(p99), slices.Max(p99), median(most), slices.Max(most), median(cpu))
	return nil
}

// replayRound replays the trace once against a server of its own.
func replayRound(ctx context.Context, o *options, source string) (usage, summary, error) {
	s, err := startServer(ctx, o)
	if err != nil {
		return usage{}, summary{}, err
	}
	defer s.stop()
	u, err := child(ctx, o, "trace-replay", source, "--from", "mooncake", "--time-unit", "us", "--block-size", "16",
		"--url", s.url, "--max-lag", "1s", "--json")
	if err != nil {
		return u, summary{}, err
	}
	sum, err := readSummary(u.stdout)
	return u, sum, err
}

// median is the middle of xs, the mean of the two in the middle where their
// number is even.
func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
