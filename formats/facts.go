package formats

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
)

// facts are what an import learns of a trace as its rows go by, in file order.
type facts struct {
	rows  int64
	timed int64
	// first and last are the least and greatest arrival on the source's clock;
	// file is the one being read.
	first, last time.Duration
	file        string
	origins     origins
	// rates, where it is not nil, is the profile of the arrivals.
	rates *rateProfile
	// base is the first row's arrival.
	base time.Duration
	// sorted says that the keys never fall, rowsUp that the row numbers never do,
	// tiesUp that they do not among equal keys.
	sorted, rowsUp, tiesUp bool
	lastKey                int64
	lastRow                int64

	// What any of the rows has.
	blocks, sessions, delays, full, increments bool

	restarts  restartFinder
	namespace *namespaceHash
	quantum   quantumFinder
}

func newFacts() *facts {
	return &facts{sorted: true, rowsUp: true, tiesUp: true, lastKey: -1 << 63, lastRow: -1 << 63, namespace: newNamespaceHash()}
}

// add takes the next request with its key (see sessions).
func (f *facts) add(r *record.Request, key int64) {
	f.rows++
	if r.Arrival != record.NoTime {
		if f.timed == 0 {
			f.first, f.last, f.base = r.Arrival, r.Arrival, r.Arrival
		}
		f.first, f.last = min(f.first, r.Arrival), max(f.last, r.Arrival)
		f.origins.add(r, f.file)
		f.timed++
		if f.rates != nil {
			f.rates.add(r.Arrival - f.base)
		}
		f.quantum.add(r.Arrival)
	}
	f.sorted = f.sorted && key >= f.lastKey
	f.rowsUp = f.rowsUp && r.Row >= f.lastRow
	f.tiesUp = f.tiesUp && (key != f.lastKey || r.Row >= f.lastRow)
	f.lastKey, f.lastRow = key, r.Row
	f.blocks = f.blocks || len(r.Blocks) > 0
	f.delays = f.delays || r.Delay != record.NoTime
	if r.Session != "" {
		f.sessions = true
		f.increments = f.increments || r.Increment
		f.full = f.full || !r.Increment && r.Turn > 1
	}
	f.namespace.add(r)
}

// turns is the header's word for what later turns hold.
func (f *facts) turns() string {
	switch {
	case f.full && f.increments:
		return "mixed"
	case f.increments:
		return "increment"
	case f.sessions:
		return "full"
	}
	return ""
}

// namespaceRows is how many rows of the source its namespace is made from.
const namespaceRows = 64

// namespaceHash digests the first rows of a source: their content, not their
// spelling, so that a round trip through another file keeps the namespace.
type namespaceHash struct {
	h    *xxhash.Digest
	rows int
}

func newNamespaceHash() *namespaceHash { return &namespaceHash{h: xxhash.New()} }

func (n *namespaceHash) add(r *record.Request) {
	if n.rows == namespaceRows {
		return
	}
	n.rows++
	var b []byte
	for _, v := range []int64{int64(r.Arrival), int64(r.Delay), r.InputTokens, r.OutputTokens} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, s := range []string{r.ID, r.Session, r.Model, string(r.Body)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, id := range r.Blocks {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	_, _ = n.h.Write(b) // a hash never fails
}

// String is the namespace in hex.
func (n *namespaceHash) String() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, n.h.Sum64()))
}

// quantumRows is how many timed rows the quantum is told by, so that it is
// known before a long file ends.
const quantumRows = 1024

// quantumFinder tells whether arrivals are rounded to a coarse step: many share
// few distinct times, and these lie whole steps apart, within a percent.
type quantumFinder struct {
	times []time.Duration
	rows  int
}

func (q *quantumFinder) add(t time.Duration) {
	if q.rows == quantumRows {
		return
	}
	q.rows++
	if n := len(q.times); n == 0 || q.times[n-1] != t {
		q.times = append(q.times, t)
	}
}

// Rules of quantum: rows a distinct time, distinct times and the share of steps
// that have to fit.
const (
	quantumCrowd = 2
	quantumSteps = 8
	quantumShare = 0.95
)

// quantum is the step, 0 where none shows. The median step is rounded to two
// digits: 2,999–3,003 ms are 3,000.
func (q *quantumFinder) quantum() time.Duration {
	times := slices.Clone(q.times)
	slices.Sort(times)
	times = slices.Compact(times)
	if len(times) <= quantumSteps || q.rows < quantumCrowd*len(times) {
		return 0
	}
	steps := make([]time.Duration, len(times)-1)
	for i := range steps {
		steps[i] = times[i+1] - times[i]
	}
	sorted := slices.Sorted(slices.Values(steps))
	step := roundTwoDigits(sorted[len(sorted)/2])
	fit := 0
	for _, s := range steps {
		k := (s + step/2) / step
		if off := s - k*step; k > 0 && max(off, -off) <= step/100 {
			fit++
		}
	}
	if float64(fit) < quantumShare*float64(len(steps)) {
		return 0
	}
	return step
}

func roundTwoDigits(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 100 {
		unit *= 10
	}
	return (d + unit/2) / unit * unit
}
