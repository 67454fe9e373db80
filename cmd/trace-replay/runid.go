package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"retrace/record"
)

// runID names the run. The shards of one run must agree on it without a word
// between them: with --start-at it is a digest of what they have in common.
// Otherwise it is drawn at random, and no two runs have the same.
func runID(h *record.Header, run *record.Run, o *options) string {
	if o.startAt == "" {
		return rand.Text()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s\n%d\n%d\n%g\n%d",
		h.Source, h.Namespace, run.Start.UTC().Format("2006-01-02T15:04:05.000000000"), run.API, run.Prompt,
		run.Shards, h.BlockSize, run.Speed, h.Seed))
	return hex.EncodeToString(sum[:12])
}
