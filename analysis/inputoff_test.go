package analysis

import (
	"strings"
	"testing"
	"time"

	"retrace/record"
)

// TestInputOff: wanted 128 and 100 tokens, counted 143 and 100, are 15 and 0
// off; a server that counts as wanted needs no line.
func TestInputOff(t *testing.T) {
	run := NewRun(RunOptions{})
	add := func(wanted, counted int64) {
		res := record.NewResult()
		res.State, res.WantedInput, res.PromptTokens = record.Completed, wanted, counted
		res.Scheduled, res.Granted, res.Sent = 0, 0, 0
		res.FirstByte, res.FirstContent = 10*time.Millisecond, 900*time.Millisecond
		res.FirstOutput, res.LastOutput = 50*time.Millisecond, time.Second
		run.Add(&res)
	}
	add(100, 100)
	var table strings.Builder
	if err := run.Report().WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table.String(), "tokens off") {
		t.Errorf("nothing is off, yet:\n%s", &table)
	}
	add(128, 143)
	rep := run.Report()
	if got := rep.InputOff; got.Count != 2 || got.Min.V != 0 || got.Max.V != 15 || got.Mean.V != 7.5 {
		t.Errorf("input tokens off %+v, expected 0 and 15", got)
	}
	if rep.FirstByte.P50.V != 10 || rep.FirstContent.P50.V != 900 || rep.TTFT.P50.V != 50 {
		t.Errorf("first byte %v, first content %v, TTFT %v ms, expected 10, 900, 50",
			rep.FirstByte.P50.V, rep.FirstContent.P50.V, rep.TTFT.P50.V)
	}
	table.Reset()
	if err := rep.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "prompt tokens off") {
		t.Errorf("15 tokens off are not in the table:\n%s", &table)
	}
}
