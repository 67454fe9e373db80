package record

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// moments are the points of a result in the order in which they happen.
func (r *Result) moments() [8]*time.Duration {
	return [...]*time.Duration{&r.Scheduled, &r.Granted, &r.Sent, &r.FirstByte, &r.FirstOutput, &r.FirstContent, &r.LastOutput, &r.End}
}

const (
	momentFirstOutput  = 4
	momentFirstContent = 5
	momentLastOutput   = 6
)

// counts are the token and byte counts of a result.
func (r *Result) counts() [11]*int64 {
	return [...]*int64{
		&r.WantedInput, &r.WantedOutput, &r.PredictedHit, &r.PromptTokens, &r.CompletionTokens,
		&r.CachedTokens, &r.ReasoningTokens, &r.CountedOutput, &r.BytesSent, &r.BytesReceived, &r.MediaTokens,
	}
}

// base is what the moment k of r is written relative to, in microseconds: the
// nearest earlier one that is known; for the last output the sum of the gaps
// after the first.
func (r *Result) base(k int) int64 {
	m := r.moments()
	if k == momentLastOutput && r.FirstOutput != NoTime {
		at := micros(r.FirstOutput)
		for _, g := range r.Gaps {
			if g.Wait != NoTime {
				at += micros(g.Wait)
			}
		}
		return at
	}
	for k--; k >= 0; k-- {
		if *m[k] != NoTime && k != momentFirstContent {
			return micros(*m[k])
		}
	}
	return 0
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// noValue marks a row without a value in an integer column.
const noValue = math.MinInt64

// resultCodec turns results into a chunk item and back.
type resultCodec struct {
	in, out [][]byte
	ints    intColumn
	strings stringColumn
	nums    []int64
	texts   []string
	blobs   [][]byte
	recs    []Result // decoded
}

// resultColumn is one column of a result chunk. encode appends nothing where
// all records have the default.
type resultColumn struct {
	name   string
	encode func(*resultCodec, []byte, []Result) []byte
	decode func(*resultCodec, *cursor, []Result) error
}

// resultColumns are in the order in which they are decoded: gaps and moments
// build on those before.
var resultColumns = slices.Concat(
	[]resultColumn{
		resultString("id", func(r *Result) *string { return &r.ID }),
		resultString("se", func(r *Result) *string { return &r.Session }),
		resultString("mt", func(r *Result) *string { return &r.Model }),
		resultString("ki", func(r *Result) *string { return &r.Kind }),
		resultString("cl", func(r *Result) *string { return &r.Class }),
		resultString("re", func(r *Result) *string { return &r.Reason }),
		resultString("er", func(r *Result) *string { return &r.Error }),
		resultString("fr", func(r *Result) *string { return &r.FinishReason }),
		resultInt("tn", 0, func(r *Result) int64 { return int64(r.Turn) }, func(r *Result, v int64) { r.Turn = int(v) }),
		resultInt("ma", 0, func(r *Result) int64 { return int64(r.Mark) }, func(r *Result, v int64) { r.Mark = Mark(v) }),
		resultInt("rp", 0, func(r *Result) int64 { return int64(r.Replica) }, func(r *Result, v int64) { r.Replica = int(v) }),
		resultInt("sd", 0, func(r *Result) int64 { return int64(r.Shard) }, func(r *Result, v int64) { r.Shard = int(v) }),
		resultInt("hs", 0, func(r *Result) int64 { return int64(r.Status) }, func(r *Result, v int64) { r.Status = int(v) }),
		resultInt("sa", 0, func(r *Result) int64 { return int64(r.State) }, func(r *Result, v int64) { r.State = State(v) }),
		resultInt("ru", 0, func(r *Result) int64 { return asInt(r.Reused) }, func(r *Result, v int64) { r.Reused = v != 0 }),
		resultInt("at", 0, func(r *Result) int64 { return int64(r.Attempts) }, func(r *Result, v int64) { r.Attempts = int(v) }),
		resultTime("co", func(r *Result) *time.Duration { return &r.Connect }),
		resultTime("vq", func(r *Result) *time.Duration { return &r.ServerQueue }),
		resultTime("vp", func(r *Result) *time.Duration { return &r.ServerPrefill }),
		resultTime("vd", func(r *Result) *time.Duration { return &r.ServerDecode }),
		gapCount, gapWait, gapTokens, resultOutput,
	},
	resultTries, resultChoices,
	countColumns(),
	momentColumns(),
)

// resultNames are the names in order, the order of the file.
var resultNames = func() []string {
	names := make([]string, len(resultColumns))
	for i := range resultColumns {
		names[i] = resultColumns[i].name
	}
	slices.Sort(names)
	return names
}()

func countColumns() []resultColumn {
	names := [...]string{"wi", "wo", "ph", "pt", "ct", "ca", "rt", "cc", "bs", "br", "mm"}
	blank := NewResult()
	cols := make([]resultColumn, len(names))
	for k, name := range names {
		cols[k] = resultInt(name, *blank.counts()[k],
			func(r *Result) int64 { return *r.counts()[k] },
			func(r *Result, v int64) { *r.counts()[k] = v })
	}
	return cols
}

func momentColumns() []resultColumn {
	names := [...]string{"sc", "gr", "st", "fb", "fo", "fc", "lo", "en"}
	cols := make([]resultColumn, len(names))
	for k, name := range names {
		cols[k] = resultInt(name, noValue, func(r *Result) int64 {
			if m := *r.moments()[k]; m != NoTime {
				return micros(m) - r.base(k)
			}
			return noValue
		}, func(r *Result, v int64) {
			if *r.moments()[k] = NoTime; v != noValue {
				*r.moments()[k] = time.Duration(v+r.base(k)) * time.Microsecond
			}
		})
	}
	return cols
}

func fromTime(d time.Duration) int64 {
	if d == NoTime {
		return noValue
	}
	return micros(d)
}

func toTime(v int64) time.Duration {
	if v == noValue {
		return NoTime
	}
	return time.Duration(v) * time.Microsecond
}

// encode appends the item of recs to dst.
func (c *resultCodec) encode(dst []byte, h chunkHead, recs []Result) []byte {
	if c.in == nil {
		c.in = make([][]byte, len(resultNames))
	}
	for i := range resultColumns {
		f := &resultColumns[i]
		k, _ := slices.BinarySearch(resultNames, f.name)
		c.in[k] = f.encode(c, c.in[k][:0], recs)
	}
	return appendColumns(h.append(dst), resultNames, c.in)
}

// at is the record i of the chunk that decode read, good until the next.
func (c *resultCodec) at(i int) *Result { return &c.recs[i] }

// decode reads the columns at cur, which is behind the chunk's head. What the
// records point to is their own.
func (c *resultCodec) decode(cur *cursor, h chunkHead) error {
	if c.out == nil {
		c.out = make([][]byte, len(resultNames))
	}
	if err := readColumns(cur, resultNames, c.out); err != nil {
		return fmt.Errorf("decode results chunk %d: %w", h.seq, err)
	}
	c.recs = blanks(c.recs, h.count, NewResult())
	for i := range resultColumns {
		f := &resultColumns[i]
		k, _ := slices.BinarySearch(resultNames, f.name)
		if len(c.out[k]) == 0 {
			continue
		}
		if err := f.decode(c, &cursor{b: c.out[k]}, c.recs); err != nil {
			return fmt.Errorf("decode results chunk %d: column %s: %w", h.seq, f.name, err)
		}
	}
	return nil
}
