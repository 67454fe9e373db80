package record

import (
	"bytes"
	"maps"
	"math"
	"slices"
)

// sameBytes keeps nil apart from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// sameRequest says whether a file gives b back for a. Blocks, Media and
// Exceptions that are empty are the same as none.
func sameRequest(a, b *Request) bool { return sameFields(a, b) && slices.Equal(a.Blocks, b.Blocks) }

// sameFields leaves out Blocks.
func sameFields(a, b *Request) bool {
	return a.Arrival == b.Arrival && a.InputTokens == b.InputTokens && a.OutputTokens == b.OutputTokens &&
		a.Row == b.Row &&
		a.ID == b.ID && a.Session == b.Session && a.Turn == b.Turn && a.Parent == b.Parent &&
		a.Delay == b.Delay && a.Increment == b.Increment && a.Observed == b.Observed &&
		a.Model == b.Model && a.Kind == b.Kind && samePriority(a.Priority, b.Priority) &&
		a.API == b.API && sameBytes(a.Body, b.Body) && sameBytes(a.Extra, b.Extra) &&
		slices.Equal(a.Media, b.Media) && slices.EqualFunc(a.Exceptions, b.Exceptions, func(x, y Exception) bool {
		return x.Field == y.Field && sameBytes(x.Raw, y.Raw)
	})
}

func samePriority(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// sameResult says whether a file gives b back for a, whose times are whole microseconds.
func sameResult(a, b *Result) bool {
	x, y := *a, *b
	same := slices.Equal(x.Gaps, y.Gaps) && slices.Equal(x.Tries, y.Tries) && slices.Equal(x.ChoiceFirsts, y.ChoiceFirsts) && sameBytes(x.Output, y.Output)
	x.Gaps, y.Gaps, x.Output, y.Output, x.Tries, y.Tries, x.ChoiceFirsts, y.ChoiceFirsts = nil, nil, nil, nil, nil, nil, nil, nil
	return same && sameScalars(&x, &y)
}

func sameScalars(a, b *Result) bool {
	for i, m := range a.moments() {
		if *m != *b.moments()[i] {
			return false
		}
	}
	for i, f := range a.counts() {
		if *f != *b.counts()[i] {
			return false
		}
	}
	return a.ID == b.ID && a.Session == b.Session && a.Turn == b.Turn && a.Model == b.Model && a.Kind == b.Kind &&
		a.Mark == b.Mark && a.Replica == b.Replica && a.Shard == b.Shard && a.Connect == b.Connect &&
		a.ServerQueue == b.ServerQueue && a.ServerPrefill == b.ServerPrefill && a.ServerDecode == b.ServerDecode &&
		a.Status == b.Status && a.State == b.State && a.Class == b.Class && a.Reason == b.Reason && a.Error == b.Error &&
		a.FinishReason == b.FinishReason && a.Reused == b.Reused && a.Attempts == b.Attempts
}

// sameSeries compares values by their bits, so that NaN is itself.
func sameSeries(a, b *Series) bool {
	return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Times, b.Times) &&
		slices.EqualFunc(a.Values, b.Values, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}
