package formats

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"retrace/record"
)

// Selection is a part of a trace. It applies in this order: the window, then
// the first Limit requests, then whole sessions of one shard, then the speed.
// After window and limit the offsets start at the first request again; all
// shards keep one schedule.
type Selection struct {
	// Start and End bound the window by offsets from the trace's origin, Start
	// included; End 0 is the trace's end. A turn with a delay alone belongs
	// where its session's last turn with a time does.
	Start, End time.Duration
	// Limit is the number of requests kept, 0 for all.
	Limit int64
	// Shard, from 0, of Shards; Shards 0 or 1 is all.
	Shard, Shards int
	// Speed divides arrivals and delays; 0 stands for 1.
	Speed float64
}

// partial says whether anything is selected or changed at all.
func (s Selection) partial() bool {
	return s.Start > 0 || s.End > 0 || s.Limit > 0 || s.Shards > 1 || s.scaled()
}

// narrow says whether a part of the trace's time is selected.
func (s Selection) narrow() bool { return s.Start > 0 || s.End > 0 || s.Limit > 0 }

// scaled says whether times change.
func (s Selection) scaled() bool { return s.Speed != 0 && s.Speed != 1 }

// SelectionFlags are --start, --end, --limit, --shard and --speed.
type SelectionFlags struct {
	set        *pflag.FlagSet
	start, end time.Duration
	limit      int64
	shard      string
	speed      float64
}

// BindSelection defines the flags.
func BindSelection(fs *pflag.FlagSet) *SelectionFlags {
	f := &SelectionFlags{set: fs}
	fs.DurationVar(&f.start, "start", 0, "`DURATION`: leave out what arrives earlier than this after the trace's origin")
	fs.DurationVar(&f.end, "end", 0, "`DURATION`: leave out what arrives as late as this or later; default: the trace's end")
	fs.Int64Var(&f.limit, "limit", 0, "keep the first `N` requests of the window; default: all")
	fs.StringVar(&f.shard, "shard", "", "`I/N`: keep the whole sessions of one shard of N, I from 0")
	fs.Float64Var(&f.speed, "speed", 1, "`X`: times as fast; arrivals and delays are divided by it")
	return f
}

// Selection checks the values and names the flag that is wrong.
func (f *SelectionFlags) Selection() (Selection, error) {
	s := Selection{Start: f.start, End: f.end, Limit: f.limit, Speed: f.speed}
	switch {
	case f.start < 0:
		return s, fmt.Errorf("--start %s: want 0 or more", f.start)
	case f.set.Changed("end") && f.end <= f.start:
		return s, fmt.Errorf("--end %s: want more than --start %s", f.end, f.start)
	case f.set.Changed("limit") && f.limit < 1:
		return s, fmt.Errorf("--limit %d: want 1 or more", f.limit)
	case !(f.speed > 0) || math.IsInf(f.speed, 0):
		return s, fmt.Errorf("--speed %v: want a number above 0", f.speed)
	}
	var err error
	if f.set.Changed("shard") && f.shard == "" {
		return s, errors.New("--shard: want i/n with i from 0 to n−1")
	}
	s.Shard, s.Shards, err = ParseShard(f.shard)
	return s, err
}

// ParseShard reads "i/n", i from 0; "" is 0 of 1.
func ParseShard(text string) (shard, shards int, err error) {
	if text == "" {
		return 0, 1, nil
	}
	i, n, ok := strings.Cut(text, "/")
	shard, errI := strconv.Atoi(i)
	shards, errN := strconv.Atoi(n)
	if !ok || errI != nil || errN != nil || shards < 1 || shard < 0 || shard >= shards {
		return 0, 0, fmt.Errorf("--shard %s: want i/n with i from 0 to n−1", text)
	}
	return shard, shards, nil
}

// errStop ends a pass whose consumer wants no more.
var errStop = errors.New("stop")

// window keeps the requests whose key lies in the window, at most limit of
// them. Both are on the source's clock.
type window struct {
	from, to int64
	left     int64
	// spent says that nothing more can be kept.
	spent bool
}

func (s Selection) window(origin time.Duration) window {
	w := window{from: math.MinInt64, to: math.MaxInt64, left: math.MaxInt64}
	if s.Start > 0 {
		w.from = int64(origin + s.Start)
	}
	if s.End > 0 {
		w.to = int64(origin + s.End)
	}
	if s.Limit > 0 {
		w.left = s.Limit
	}
	return w
}

// take says whether the next request in order is kept, and whether none after
// it can be.
func (w *window) take(key int64) (keep, done bool) {
	if w.left == 0 || key >= w.to {
		w.spent = true
		return false, true
	}
	if key < w.from {
		return false, false
	}
	w.left--
	return true, false
}

// place applies origin, shard and speed to a request of the window; false where
// it belongs to another shard.
func (s Selection) place(r *record.Request, origin time.Duration, timeFields []string) (kept bool, err error) {
	if s.Shards > 1 && record.ShardOf(r, s.Shards) != s.Shard {
		return false, nil
	}
	if r.Arrival != record.NoTime {
		r.Arrival -= origin
	}
	if s.scaled() {
		for _, d := range []time.Duration{r.Arrival, r.Delay} {
			if d != record.NoTime && math.Abs(float64(d)) > s.Speed*float64(longest) {
				return false, fmt.Errorf("--speed %v: %v would become more than 100 years", s.Speed, d)
			}
		}
		r.Arrival, r.Delay = s.scale(r.Arrival), s.scale(r.Delay)
		r.Exceptions = without(r.Exceptions, timeFields)
	}
	return true, nil
}

// longest bounds a time that was scaled: what time.Duration can hold is 292 years.
const longest = 100 * 365 * 24 * time.Hour

func (s Selection) scale(d time.Duration) time.Duration {
	if d == record.NoTime {
		return d
	}
	return time.Duration(math.Round(float64(d) / s.Speed))
}

// without drops the kept literals of fields that no longer hold.
func without(kept []record.Exception, fields []string) []record.Exception {
	if len(kept) == 0 {
		return kept
	}
	var rest []record.Exception
	for _, e := range kept {
		stale := false
		for _, f := range fields {
			stale = stale || e.Field == f
		}
		if !stale {
			rest = append(rest, e)
		}
	}
	return rest
}
