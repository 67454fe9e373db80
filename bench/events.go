package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// streams is a load of long answers.
type streams struct {
	name          string
	count, tokens int
	gap           time.Duration // between two tokens
}

// eventLoads are those of the README: a million events each in the usual span.
var eventLoads = []streams{
	{"back to back", 50, 20_000, 0},
	{"5 ms apart over 500 streams", 500, 2_000, 5 * time.Millisecond},
}

// measureEvents reads long streams through the whole client, which has one
// processor, beside the server on another.
func measureEvents(ctx context.Context, o *options) error {
	fmt.Fprintf(o.stdout, "Through the whole client with GOMAXPROCS=1; medians of %d rounds (the worst in brackets).\n\n", o.rounds)
	fmt.Fprintln(o.stdout, "| events | events/s of its processor time | events/s by the clock | share of the server's pace |")
	fmt.Fprintln(o.stdout, "| --- | --- | --- | --- |")
	for _, load := range eventLoads {
		load.tokens = max(2, int(float64(load.tokens)*o.span.Seconds()/10))
		var byCPU, byClock []float64
		for range o.rounds {
			u, seconds, err := readStreams(ctx, o, load)
			if err != nil {
				return err
			}
			events := float64(load.count * load.tokens)
			byCPU, byClock = append(byCPU, events/u.cpu.Seconds()), append(byClock, events/seconds)
		}
		share := "–"
		if load.gap > 0 {
			share = fmt.Sprintf("%.1f %%", 100*median(byClock)*load.gap.Seconds()/float64(load.count))
		}
		fmt.Fprintf(o.stdout, "| %s | %.0f (%.0f) | %.0f (%.0f) | %s |\n", load.name,
			median(byCPU), slices.Min(byCPU), median(byClock), slices.Min(byClock), share)
	}
	return nil
}

// readStreams replays one load; seconds is from the first send to the last event.
func readStreams(ctx context.Context, o *options, load streams) (u usage, seconds float64, err error) {
	source := filepath.Join(o.scratch, "streams.jsonl")
	if err := writeRows(source, load.count, func(i int) row { return row{input: 16, output: int64(load.tokens), blocks: []uint64{uint64(i)}} }); err != nil {
		return u, 0, err
	}
	s, _, err := startInstant(ctx, o, "--tokens", strconv.Itoa(load.tokens), "--gap", load.gap.String())
	if err != nil {
		return u, 0, err
	}
	defer s.stop()
	u, err = childIn(ctx, o, []string{"GOMAXPROCS=1"}, "trace-replay", source, "--from", "mooncake", "--block-size", "16", "--url", s.url,
		"--max-lag", "1h", "--max-output-tokens", strconv.Itoa(load.tokens), "--json")
	if err != nil {
		return u, 0, err
	}
	var got struct {
		Requests struct {
			Completed int `json:"completed"`
		} `json:"requests"`
		Duration float64 `json:"duration_s"`
	}
	if err := json.Unmarshal(u.stdout, &got); err != nil || got.Requests.Completed != load.count {
		return u, 0, fmt.Errorf("read streams: %d of %d requests completed: %w", got.Requests.Completed, load.count, err)
	}
	return u, got.Duration, nil
}
