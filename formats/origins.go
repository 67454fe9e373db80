package formats

import (
	"fmt"
	"time"

	"retrace/record"
)

// Times from datesFrom to datesTo (2015 to 2040) are taken as counted from 1970,
// times before startTo as counted from some start.
const (
	year      = 365 * 24 * time.Hour
	startTo   = year
	datesFrom = 45 * year
	datesTo   = 70 * year
)

// origins tells whether a trace has two origins: all sessions begin at dates,
// but no later turn is at one, and some are at offsets from a start.
type origins struct {
	// date is the first row at a date, start the first at an offset.
	date, start originRow
	other       bool
}

// originRow is a row with its time; file is "" where there is none.
type originRow struct {
	file string
	row  int64
	at   time.Duration
}

// add takes the next arrival.
func (o *origins) add(r *record.Request, file string) {
	later := r.Session != "" && r.Turn > 1
	kind := &o.date
	switch at := r.Arrival; {
	case later && at < startTo:
		kind = &o.start
	case later || at < datesFrom || at > datesTo:
		o.other = true
		return
	}
	if kind.file == "" {
		*kind = originRow{file, r.Row, r.Arrival}
	}
}

// mixed is the error of a trace with two origins; nil of any other.
func (o *origins) mixed() error {
	if o.other || o.date.file == "" || o.start.file == "" {
		return nil
	}
	return fmt.Errorf("read %s: times of two origins in one trace: row %d is at %s (%s, if counted from 1970), "+
		"row %d of %s at %s from some start; give all rows the same origin",
		o.date.file, o.date.row+1, o.date.at, time.Unix(0, int64(o.date.at)).UTC().Format(time.DateOnly),
		o.start.row+1, o.start.file, o.start.at)
}
