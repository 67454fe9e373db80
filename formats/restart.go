package formats

import "time"

// restart is a place where the source's clock starts anew.
type restart struct {
	// row is the number of the first row after it, file the name of its file.
	row  int64
	file string
	// before is the greatest time so far in the file, after the row's own.
	before, after time.Duration
}

// Rules of a clock restart: a step back of at least restartStep, to before the
// first restartShare-th of the file's span so far, between two stretches of at
// least restartRun rows in order, in a file that otherwise hardly ever steps
// back. A shuffled file, or one grouped by session, is none.
const (
	restartStep  = time.Minute
	restartRun   = 2
	restartRare  = 1000
	restartKept  = 16
	restartShare = 10
)

// restartFinder watches the times of each file in order.
type restartFinder struct {
	found []restart
	// Over all files: rows out of order and the largest step back.
	inversions int64
	largest    time.Duration

	file             string
	rows, run        int64
	falls            int64
	low, high, prev  time.Duration
	pending          *restart
	candidates       []restart
	candidatesFilled bool
}

// begin starts a file.
func (f *restartFinder) begin(file string) {
	*f = restartFinder{found: f.found, inversions: f.inversions, largest: f.largest, file: file}
}

// add takes the time of a row; fresh says that it is the first of its session,
// which may lie anywhere in a file that is grouped by sessions.
func (f *restartFinder) add(row int64, t time.Duration, fresh bool) {
	if f.rows == 0 {
		f.low, f.high, f.prev, f.rows, f.run = t, t, t, 1, 1
		return
	}
	f.rows++
	if t < f.high {
		f.inversions++
		f.largest = max(f.largest, f.high-t)
	}
	if t < f.prev {
		f.fall(row, t, fresh)
	} else {
		if f.run++; f.pending != nil && t >= f.pending.before {
			f.pending = nil // one late row, not a restart
		}
		f.settle()
	}
	f.prev = t
	f.low, f.high = min(f.low, t), max(f.high, t)
}

func (f *restartFinder) fall(row int64, t time.Duration, fresh bool) {
	f.falls++
	f.pending = nil
	step := f.high - t
	if !fresh && f.run >= restartRun && step >= restartStep && t <= f.low+(f.high-f.low)/restartShare {
		f.pending = &restart{row: row, file: f.file, before: f.high, after: t}
	}
	f.run = 1
}

// settle takes a pending restart once enough rows in order have followed it.
func (f *restartFinder) settle() {
	if f.pending == nil || f.run < restartRun {
		return
	}
	if len(f.candidates) < restartKept {
		f.candidates = append(f.candidates, *f.pending)
	} else {
		f.candidatesFilled = true
	}
	f.low, f.high = f.pending.after, f.prev
	f.pending = nil
}

// end closes a file.
func (f *restartFinder) end() {
	if !f.candidatesFilled && f.falls <= int64(len(f.candidates))+f.rows/restartRare {
		f.found = append(f.found, f.candidates...)
	}
}
