package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"retrace/record"
)

// files are the files of a recording, of which one is open. Without rotation
// there is one.
type files struct {
	path   string
	force  bool
	size   int64 // bytes at which the next file begins, 0 for none
	every  time.Duration
	number int // of the open file, from 1
	open   *record.FileWriter
	since  time.Time
	holds  bool             // the open file has records
	done   map[string]int64 // drops that the files before tell
	last   chan error       // the end of the file before, nil for none
}

// rotates says whether there may be several files.
func (f *files) rotates() bool { return f.size > 0 || f.every > 0 }

// name is the path of the file of a number.
func (f *files) name(number string) string {
	if !f.rotates() {
		return f.path
	}
	ext := filepath.Ext(f.path)
	return strings.TrimSuffix(f.path, ext) + "." + number + ext
}

// begin opens the next file. Where files of an earlier recording are in its way,
// the first is refused.
func (f *files) begin(h record.Header) (err error) {
	if f.number == 0 && f.rotates() && !f.force {
		if there, _ := filepath.Glob(f.name("[0-9][0-9][0-9][0-9]*")); len(there) > 0 { // a bad pattern finds none
			return fmt.Errorf("create %s: %w", there[0], fs.ErrExist)
		}
	}
	f.number++
	f.since, f.holds = time.Now(), false
	f.open, err = record.CreateLive(f.name(fmt.Sprintf("%04d", f.number)), h, f.force)
	return err
}

// write adds a record to the open file.
func (f *files) write(q *record.Request) error {
	f.holds = true
	return f.open.WriteRequest(q)
}

// due says whether the open file is to be followed by another.
func (f *files) due() bool {
	return f.holds && (f.size > 0 && f.open.Size() >= f.size || f.every > 0 && time.Since(f.since) >= f.every)
}

// end completes the open file in the background, once the one before is complete.
// Of what was dropped it tells what no file before does.
func (f *files) end(h record.Header, dropped map[string]int64, notes []string) {
	if f.open == nil { // it could not be made
		return
	}
	own := map[string]int64{}
	for reason, n := range dropped {
		if n > f.done[reason] {
			own[reason] = n - f.done[reason]
		}
	}
	f.done = dropped
	f.open.SetHeader(h)
	open, before, last := f.open, f.last, make(chan error, 1)
	go func() {
		var err error
		if before != nil {
			err = <-before
		}
		last <- errors.Join(err, open.Close(record.Footer{Dropped: own, Notes: notes}))
	}()
	f.last = last
}

// wait waits until all files that were ended are complete.
func (f *files) wait() error {
	if f.last == nil {
		return nil
	}
	return <-f.last
}
