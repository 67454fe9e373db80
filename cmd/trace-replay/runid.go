package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"retrace/formats"
	"retrace/record"
)

// runID names the run. The shards of one run must agree on it without a word
// between them, so with --shard or --start-at it is a digest of what they have
// in common: the trace, the flags that shape the work, the seed and the start.
// Of the flags it takes what was given, not what came of it, for that may
// differ from shard to shard. Otherwise it is drawn at random, and no two runs
// have the same.
//
// Shards that have no --start-at and are run again have the id of their first
// run; trace-analyze sees a repeat there by the number of the shard alone.
func runID(h *record.Header, o *options, part formats.Selection) string {
	if o.startAt == "" && part.Shards < 2 {
		return rand.Text()
	}
	start, _ := o.start() // validate has tried it
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", []any{
		h.Source, h.Namespace, h.BlockSize, h.Turns, h.Seed, start.UTC().Format(time.RFC3339Nano), part.Shards,
		part.Start, part.End, part.Limit, part.Speed,
		o.model, o.api, o.prompt, o.salt, o.vocab, o.prompts.identity(), o.sessions, o.extra,
		o.arrival.kind, o.arrival.rate, o.arrival.burstiness, o.arrival.rampUp, o.arrival.from, o.arrival.upTo,
		o.load.overflow, o.load.failedTurn, o.load.assistant, o.load.maxDelay, o.load.warmUp, o.load.probeRate,
		o.load.retries, o.load.retryMaxTime,
		o.ignoreEOS, o.maxInput, o.maxOutput, o.zeroOutput,
	}))
	return hex.EncodeToString(sum[:12])
}
