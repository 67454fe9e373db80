package formats

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
	"retrace/record/capture"
)

// Trace is an opened trace of whatever format.
type Trace struct {
	// Header is that of the canonical trace which the source amounts to.
	Header record.Header
	// Format is the source's.
	Format *Format

	job     *job
	found   *outcome
	report  Report
	window  window
	origin  time.Duration
	sel     Selection
	figures Figures
	// headless counts the increments that the last range over Requests has
	// yielded of sessions whose earlier turns lie before the window.
	headless int64
}

// Figures are what the selected requests amount to, once all were read.
type Figures struct {
	Requests int64
	// Untimed counts those that have no arrival: turns that wait for an answer.
	Untimed int64
	// First and Last are the least and greatest arrival, NoTime where none has one.
	First, Last time.Duration
	// Input and Output are the known tokens, Blocks the prefix blocks.
	Input, Output, Blocks int64
}

// Span is the time from the first arrival to the last.
func (f Figures) Span() time.Duration {
	if f.First == record.NoTime {
		return 0
	}
	return f.Last - f.First
}

// MeanRate is the requests with an arrival by the time from the first arrival to
// the last, in requests a second: what an analysis calls arrivals.rate_rps.
// There is none where all arrive at one instant.
func (f Figures) MeanRate() (rate float64, ok bool) {
	if f.Span() <= 0 {
		return 0, false
	}
	return float64(f.Requests-f.Untimed) / f.Span().Seconds(), true
}

func newFigures() Figures { return Figures{First: record.NoTime, Last: record.NoTime} }

func (f *Figures) add(r *record.Request) {
	f.Requests++
	if r.Arrival == record.NoTime {
		f.Untimed++
	} else {
		if f.First == record.NoTime {
			f.First, f.Last = r.Arrival, r.Arrival
		}
		f.First, f.Last = min(f.First, r.Arrival), max(f.Last, r.Arrival)
	}
	f.Input += max(r.InputTokens, 0)
	f.Output += max(r.OutputTokens, 0)
	f.Blocks += int64(len(r.Blocks))
}

// Open opens one trace: canonical or of any known format, in one or several
// files or directories, "-" being standard input. It reads a foreign source
// once to learn what its header has to say, and again for the requests.
func Open(paths []string, o Options) (*Trace, error) {
	j, err := prepare(paths, o)
	if err != nil {
		return nil, err
	}
	t, err := j.open()
	if err != nil {
		j.in.close()
		return nil, err
	}
	return t, nil
}

// prepare finds the files and the format.
func prepare(paths []string, o Options) (*job, error) {
	if o.BadLines == "" {
		o.BadLines = Fail
	}
	if o.ClockRestart == "" {
		o.ClockRestart = RestartRefuse
	}
	in, err := listInputs(paths, o)
	if err != nil {
		return nil, err
	}
	j := &job{opts: o, in: in}
	if err := j.choose(); err != nil {
		in.close()
		return nil, err
	}
	return j, nil
}

// choose tells the format by the first file that is not empty.
func (j *job) choose() error {
	for _, in := range j.in.files {
		h, o, err := in.head()
		if err != nil {
			return err
		}
		empty, raw := o.empty, o.raw
		if err := o.close(); err != nil {
			return fmt.Errorf("close %s: %w", in.name, err)
		}
		if empty {
			continue
		}
		if !isContainer(raw) && isContainer(h.Bytes) {
			if err := j.in.unwrap(); err != nil {
				return err
			}
			raw = h.Bytes
		}
		if isContainer(raw) {
			if j.opts.From != "" && j.opts.From != containerFormat.Name {
				return fmt.Errorf("read %s: --from %s does not fit: it looks like trace (%s)",
					in.name, j.opts.From, containerFormat.Title)
			}
			j.format = containerFormat
		} else if j.format, err = choose(h, j.opts.From); err != nil {
			return fmt.Errorf("read %s: %w", in.name, err)
		}
		return j.configure()
	}
	return fmt.Errorf("read %s: the file is empty (0 bytes)", j.in.files[0].name)
}

// configure settles block size and unit.
func (j *job) configure() error {
	if j.format.NewImporter == nil {
		return fmt.Errorf("the format %s can be written only", j.format.Name)
	}
	j.config = ImportConfig{BlockSize: j.format.BlockSize, Unit: j.format.Unit}
	if err := j.configureCapture(); err != nil {
		return err
	}
	if j.format.stored {
		return nil
	}
	if j.opts.BlockSize > 0 {
		j.config.BlockSize = j.opts.BlockSize
	}
	if j.opts.Unit > 0 && j.format.Unit > 0 {
		j.config.Unit = j.opts.Unit
	}
	return nil
}

// configureCapture settles what is kept of a log. Its salt is read once, as a
// source may be read several times.
func (j *job) configureCapture() (err error) {
	o := &j.opts
	if j.format.Name == logName {
		j.config.Capture, j.config.Encode = o.Capture, o.Encode
		j.config.Salt, err = capture.LoadSalt(o.SaltFile)
		return err
	}
	if o.Capture != "" && !o.captureUnasked || o.SaltFile != "" || o.Encode != nil {
		return fmt.Errorf("--capture, --salt-file and --tokenizer are for %s; the input is %s (%s)", logName, j.format.Name, j.format.Title)
	}
	return nil
}

// open surveys the source and settles order, origin and window.
func (j *job) open() (*Trace, error) {
	found, err := j.run(nil)
	if err != nil {
		return nil, j.countMissing(err)
	}
	return j.trace(found)
}

// trace is the Trace of a surveyed source.
func (j *job) trace(found *outcome) (*Trace, error) {
	found, err := j.settleRestarts(found)
	if err != nil {
		return nil, err
	}
	if err := found.facts.origins.mixed(); err != nil && !j.format.stored && !j.format.OwnStart && !found.header.Wall {
		return nil, err
	}
	t := &Trace{Header: found.header, Format: j.format, job: j, found: found, sel: j.opts.Select, figures: newFigures()}
	t.report = found.ledger.report()
	t.origin = t.Header.Origin
	t.window = t.sel.window(t.origin)
	if t.sel.Start > 0 {
		if err := t.rebase(); err != nil {
			return nil, err
		}
	}
	t.notes()
	return t, t.report.Check()
}

// countMissing adds, to the error of a row without a time, how many there are.
func (j *job) countMissing(err error) error {
	if !errors.Is(err, ErrNoTime) {
		return err
	}
	again := *j
	again.opts.BadLines = Skip
	p := again.newPass(nil)
	for _, in := range j.in.files {
		if p.file(in) != nil {
			return err
		}
	}
	n := int64(0)
	for reason, k := range p.ledger.skipped {
		if strings.HasPrefix(reason, p.timeField()+": ") {
			n += k
		}
	}
	return fmt.Errorf("%w; %d of %d rows have none (--bad-lines skip leaves them out)", err, n, p.ledger.read)
}

// settleRestarts does what --clock-restart says.
func (j *job) settleRestarts(found *outcome) (*outcome, error) {
	list := found.facts.restarts.found
	if len(list) == 0 || j.format.stored || found.header.Wall || j.opts.ClockRestart == RestartSort {
		return found, nil
	}
	first := list[0]
	if j.opts.ClockRestart == RestartRefuse || len(j.format.TimeFields) == 0 {
		return nil, fmt.Errorf("read %s: clock restart at row %d: the time goes from %s back to %s (%s); "+
			"choose --clock-restart append (continue after the last) or sort (take the times as they are)",
			first.file, first.row+1, first.before, first.after, plural(int64(len(list)), "such place"))
	}
	j.restarts = list
	again, err := j.run(nil)
	if err != nil {
		return nil, err
	}
	again.ledger.warn(fmt.Sprintf("%s: clock restart at row %d: the rows after it continue after the last before it",
		first.file, first.row+1))
	return again, nil
}

// rebase finds the first request of the window and starts the offsets there.
func (t *Trace) rebase() error {
	first := record.NoTime
	_, err := t.job.run(func(_ *record.Request, key int64) error {
		if key >= t.window.from && key < t.window.to && (first == record.NoTime || key < int64(first)) {
			first = time.Duration(key)
			if t.found.facts.sorted {
				return errStop
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	if first == record.NoTime {
		return fmt.Errorf("no request arrives in the window from %s: the trace spans %s",
			t.sel.Start, t.found.facts.last-t.Header.Origin)
	}
	t.origin, t.Header.Origin = first, first
	return nil
}

// Requests yields the selected requests in order of arrival, ties in the
// source's order. What it yields is the caller's to keep. It may be ranged
// over again, which reads the source again.
func (t *Trace) Requests() iter.Seq2[record.Request, error] {
	return func(yield func(record.Request, error) bool) {
		err := t.each(func(r *record.Request) error {
			if !yield(*r, nil) {
				return errStop
			}
			return nil
		}, true)
		if err != nil && !errors.Is(err, errStop) {
			yield(record.Request{}, err)
		}
	}
}

// each is Requests without copies: r is valid during the call only; its blocks
// for longer where keep says so.
func (t *Trace) each(to func(*record.Request) error, keep bool) error {
	t.figures = newFigures()
	t.headless = 0
	w := t.window
	before := map[uint64]struct{}{} // sessions that begin before the window
	fields := t.timeFields()
	stopped := t.job.opts.interruption()
	take := func(r *record.Request, key int64) error {
		if stopped() {
			return ErrInterrupted
		}
		keep, done := w.take(key)
		switch {
		case done:
			return errStop
		case !keep && r.Session != "":
			before[xxhash.Sum64String(r.Session)] = struct{}{}
			return nil
		case !keep:
			return nil
		}
		if kept, err := t.sel.place(r, t.origin, fields); err != nil || !kept {
			return err
		}
		if r.Increment && len(before) > 0 {
			if _, cut := before[xxhash.Sum64String(r.Session)]; cut {
				t.headless++
			}
		}
		t.figures.add(r)
		return to(r)
	}
	var err error
	if t.found.facts.sorted && (!t.parts() || t.found.facts.tiesUp) {
		p := t.job.newPass(take)
		p.keep = keep
		_, err = p.all()
	} else {
		err = t.eachSorted(take)
	}
	if errors.Is(err, errStop) && w.spent {
		err = nil
	}
	return err
}

// timeFields are the source's names of times, also where the source was stored
// in between.
func (t *Trace) timeFields() []string {
	if t.Format.stored {
		if f, err := Lookup(t.Header.Source); err == nil {
			return f.TimeFields
		}
	}
	return t.Format.TimeFields
}

// eachSorted hands out the source sorted by key.
func (t *Trace) eachSorted(take sink) error {
	if t.parts() {
		return t.resort(t.eachByRow, take)
	}
	return t.resort(t.eachOfSource, take)
}

// eachOfSource hands out the source as it stands.
func (t *Trace) eachOfSource(take sink) error {
	_, err := t.job.run(take)
	return err
}

// parts says that the inputs are parts of one trace, whose rows still have the
// numbers of their source: merged, ties are in the source's order again.
func (t *Trace) parts() bool { return t.Format.stored && len(t.job.in.files) > 1 }

// eachByRow hands out all requests in the order of their rows.
func (t *Trace) eachByRow(take sink) error {
	return t.resort(func(add sink) error {
		return t.eachOfSource(func(r *record.Request, _ int64) error { return add(r, r.Row) })
	}, take)
}

// resort hands out in order what feed gives with a key, outside memory where it
// is much. Each request's own key is then found anew.
func (t *Trace) resort(feed func(add sink) error, take sink) error {
	s := record.NewSorter(record.SorterOptions{TempDir: t.job.opts.TempDir})
	defer s.Close() // removes temporary files; nothing to report
	if err := feed(s.Add); err != nil {
		return err
	}
	known := newSessions()
	for r, err := range s.Sorted() {
		if err != nil {
			return fmt.Errorf("sort requests: %w", err)
		}
		state, err := known.next(&r)
		if err != nil {
			return fmt.Errorf("sort requests: request %s: %w", r.Key(), err)
		}
		known.keep(&r, state)
		if err := take(&r, state.key); err != nil {
			return err
		}
	}
	return nil
}

// Report says what became of the source's rows; after a range over Requests
// also what the window has done to sessions.
func (t *Trace) Report() Report {
	r := t.report
	if t.headless > 0 {
		r.Warnings = append(slices.Clip(r.Warnings), fmt.Sprintf("--start leaves out earlier turns of the sessions of %s that hold only what is new: "+
			"their prompts lack what came before the window", plural(t.headless, "turn")))
	}
	return r
}

// Figures sums up what the last range over Requests has yielded.
func (t *Trace) Figures() Figures { return t.figures }

// Close removes temporary files.
func (t *Trace) Close() error {
	t.job.in.close()
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
