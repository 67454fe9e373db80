package formats

import (
	"fmt"
	"maps"
	"slices"

	"retrace/record"
)

// Policy says what becomes of a row that cannot be read.
type Policy string

// The policies of --bad-lines.
const (
	// Fail ends the import at the first such row.
	Fail Policy = "fail"
	// Skip counts such rows by reason and goes on.
	Skip Policy = "skip"
)

// Report is what an import did with the rows of its source. Read is always
// Kept + the sum of Skipped.
type Report struct {
	// Read counts the rows of the source, Kept those that became requests.
	Read, Kept int64
	// Skipped counts bad rows by reason; FirstSkipped has the first error of each.
	Skipped      map[string]int64
	FirstSkipped map[string]string
	// Losses are sentences on what could not be read: files cut short.
	Losses []string
	// Unknown counts the rows that have a field which the format does not define.
	Unknown map[string]int64
	// Notes are sentences worth telling: dialect taken, origin, quantum.
	Notes []string
	// Warnings are sentences on what looks wrong but was taken.
	Warnings []string
}

// SkippedRows is the number of bad rows.
func (r *Report) SkippedRows() int64 {
	var n int64
	for _, k := range r.Skipped {
		n += k
	}
	return n
}

// Lossy says whether anything of the source is missing (exit status 3).
func (r *Report) Lossy() bool { return r.SkippedRows() > 0 || len(r.Losses) > 0 }

// Check proves that no row went missing unseen.
func (r *Report) Check() error {
	if r.Read != r.Kept+r.SkippedRows() {
		return fmt.Errorf("count rows: %d read, but %d kept and %d skipped", r.Read, r.Kept, r.SkippedRows())
	}
	return nil
}

// ledger is the running account behind a Report.
type ledger struct {
	policy     Policy
	read, kept int64
	skipped    map[string]int64
	first      map[string]string
	losses     []string
	unknown    map[string]int64
	warnings   map[string]int64
}

func newLedger(policy Policy) *ledger {
	return &ledger{
		policy:  policy,
		skipped: map[string]int64{}, first: map[string]string{},
		unknown: map[string]int64{}, warnings: map[string]int64{},
	}
}

func (l *ledger) skip(e *SyntaxError) {
	reason := e.Reason()
	if l.skipped[reason]++; l.skipped[reason] == 1 {
		l.first[reason] = e.Error()
	}
}

func (l *ledger) warn(sentence string) { l.warnings[sentence]++ }

func (l *ledger) report() Report {
	r := Report{
		Read: l.read, Kept: l.kept,
		Skipped: l.skipped, FirstSkipped: l.first, Losses: l.losses, Unknown: l.unknown,
	}
	for _, w := range slices.Sorted(maps.Keys(l.warnings)) {
		if n := l.warnings[w]; n > 1 {
			w = fmt.Sprintf("%s (%d rows)", w, n)
		}
		r.Warnings = append(r.Warnings, w)
	}
	return r
}

// resetRequest makes r as record.NewRequest does, without a copy on the way.
func resetRequest(r *record.Request) { *r = blankRequest }

var blankRequest = record.NewRequest()
