package formats

import (
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/record"
)

// job is one import: what to read, as what, and how.
type job struct {
	opts   Options
	in     *inputs
	format *Format
	config ImportConfig
	// restarts are the clock restarts that an earlier pass found, to be appended.
	restarts []restart
}

// sink takes a request, whose Arrival is on the source's clock, and its key.
type sink func(r *record.Request, key int64) error

// outcome is what a pass over the whole source gives.
type outcome struct {
	facts  *facts
	ledger *ledger
	header record.Header
}

// pass reads the source once, from first to last row, in the source's order.
type pass struct {
	*job
	importer Importer
	facts    *facts
	ledger   *ledger
	sessions *sessions
	src      *Source
	to       sink
	// keep says that the sink keeps the requests' blocks.
	keep   bool
	blocks recycler
	// shift is what an appended clock restart adds, from the row on.
	next  int
	shift time.Duration
}

// run reads everything and hands each request to sink, which may be nil and
// does not keep the request's blocks.
func (j *job) run(to sink) (*outcome, error) {
	return j.newPass(to).all()
}

// recycler is an importer that can use the memory of the block lists again
// which it has given out.
type recycler interface {
	recycle()
}

// all reads every file.
func (p *pass) all() (*outcome, error) {
	for _, in := range p.in.files {
		if err := p.file(in); err != nil {
			return nil, err
		}
	}
	if p.facts.rows == 0 && len(p.ledger.skipped) == 0 && !p.format.stored { // a canonical trace may be empty, or cut after its header
		return nil, p.nothing()
	}
	return &outcome{p.facts, p.ledger, p.header()}, nil
}

func (j *job) newPass(to sink) *pass {
	p := &pass{
		job: j, importer: j.format.NewImporter(j.config), facts: newFacts(),
		ledger: newLedger(j.opts.BadLines), sessions: newSessions(), to: to,
	}
	p.blocks, _ = p.importer.(recycler)
	if j.opts.Select.narrow() {
		p.facts.rates = &rateProfile{}
	}
	return p
}

// nothing is the error of a source without a single row.
func (p *pass) nothing() error {
	name := p.in.files[0].name
	if len(p.ledger.losses) > 0 {
		return errors.New(p.ledger.losses[0])
	}
	return fmt.Errorf("read %s: it holds no rows", name)
}

func (p *pass) file(in input) error {
	h, o, err := p.openFile(in)
	if err != nil {
		return p.unreadable(err)
	}
	defer func() { _ = o.close() }() // read only: nothing can be lost
	if o.empty {
		if !in.inDir {
			return fmt.Errorf("read %s: the file is empty (0 bytes)", in.name)
		}
		p.ledger.warn("empty file: " + in.name)
		return nil
	}
	if err := p.fits(in, h, o); err != nil {
		return err
	}
	p.src = &Source{Name: in.name, path: in.path, files: p.in.files, in: o.Reader, ledger: p.ledger}
	p.facts.restarts.begin(in.name)
	p.facts.file = in.name
	p.shift = 0
	if err := p.importer.Read(p.src, p.emit); err != nil {
		return err
	}
	p.facts.restarts.end()
	return nil
}

// openFile opens a file; where there are several, its start is looked at too.
func (p *pass) openFile(in input) (*Head, *opened, error) {
	if len(p.in.files) > 1 {
		return in.head()
	}
	o, err := in.open()
	return nil, o, err
}

// unreadable is a file whose start cannot be decompressed.
func (p *pass) unreadable(err error) error {
	if p.ledger.policy == Skip && len(p.in.files) > 1 {
		p.ledger.losses = append(p.ledger.losses, err.Error())
		return nil
	}
	return err
}

// fits refuses a file that plainly is of another format than the rest.
func (p *pass) fits(in input, h *Head, o *opened) error {
	if isContainer(o.raw) != (p.format == containerFormat) {
		return fmt.Errorf("read %s: it does not fit the first input, which is %s: convert the two apart", in.name, p.format.Title)
	}
	if len(p.in.files) == 1 || p.format == containerFormat {
		return nil
	}
	if r := h.refused(); r != nil {
		return fmt.Errorf("read %s: %w", in.name, r)
	}
	if p.format.Detect(h) != No {
		return nil
	}
	if other, err := Detect(h); err == nil && other != p.format {
		return fmt.Errorf("read %s: it looks like %s, the first input like %s: convert the two apart",
			in.name, other.Name, p.format.Name)
	}
	return nil
}

// interruptRows is how often, in rows, an interruption is looked for.
const interruptRows = 1024

// emit takes a request from the importer.
func (p *pass) emit(r *record.Request) error {
	t := r.Arrival
	if n := r.Size(); n > record.MaxRequestBytes {
		found := fmt.Appendf(nil, "%d bytes", n)
		return p.src.Reject(p.src.Fault("", found, fmt.Sprintf("at most %d in one row", record.MaxRequestBytes)))
	}
	state, err := p.sessions.next(r)
	if err != nil {
		bad := p.src.Fault(p.timeField(), []byte("none"), "a time: only a later turn of a session may have a delay alone")
		bad.Err = err
		return p.src.Reject(bad)
	}
	if p.ledger.kept++; p.ledger.kept%interruptRows == 0 && p.opts.Interrupted != nil && p.opts.Interrupted() {
		return ErrInterrupted
	}
	p.turn(r, state)
	if t != record.NoTime {
		p.facts.restarts.add(r.Row, t, r.Session != "" && state.turn == 1)
		if len(p.restarts) > 0 {
			p.appendRestart(r)
			state.key = int64(r.Arrival)
		}
	}
	key := state.key
	p.sessions.keep(r, state)
	p.facts.add(r, key)
	if p.to != nil {
		err = p.to(r, key)
	}
	if p.blocks != nil && !p.keep {
		p.blocks.recycle()
	}
	return err
}

func (p *pass) timeField() string {
	if len(p.format.TimeFields) > 0 {
		return p.format.TimeFields[0]
	}
	return "time"
}

// turn applies --turns; --turns unset leaves the decision to the row.
func (p *pass) turn(r *record.Request, s session) {
	if p.format.stored {
		return
	}
	if r.Turn == 0 && r.Session != "" {
		r.Turn = int(s.turn)
	}
	later := r.Session != "" && s.turn > 1
	switch p.opts.Turns {
	case TurnsFull:
		r.Increment = false
	case TurnsIncrement:
		r.Increment = later
	default:
		r.Increment = later && r.Delay != record.NoTime && p.format.Turns != TurnsFull
		if r.Increment && len(r.Blocks) > 0 && s.hasBlock && r.Blocks[0] == s.block {
			p.ledger.warn("turns with a delay were taken as increments, but their blocks start like their session's first turn: " +
				"if they hold the whole prompt, say --turns full")
		}
	}
}

// appendRestart moves a row behind a clock restart to after the last row before it.
func (p *pass) appendRestart(r *record.Request) {
	for p.next < len(p.restarts) && r.Row >= p.restarts[p.next].row {
		again := p.restarts[p.next]
		if again.file == p.src.Name {
			p.shift += again.before - again.after
		}
		p.next++
	}
	if p.shift == 0 {
		return
	}
	field := p.format.TimeFields[0]
	if !hasException(r, field) {
		lit := AppendTime(nil, r.Arrival, p.config.Unit)
		r.Exceptions = append(r.Exceptions, record.Exception{Field: field, Raw: lit})
	}
	r.Arrival += p.shift
}

func hasException(r *record.Request, field string) bool {
	for _, e := range r.Exceptions {
		if e.Field == field {
			return true
		}
	}
	return false
}

// header is the trace's header by what was learnt.
func (p *pass) header() record.Header {
	if s, ok := p.importer.(storedImporter); ok {
		return s.storedHeader(p.facts)
	}
	f := p.facts
	h := record.Header{
		Kind: record.KindTrace, Source: p.format.Name, Unit: p.config.Unit, TimeBasis: "arrival",
		Origin: f.first, Turns: f.turns(), Namespace: f.namespace.String(), Quantum: f.quantum.quantum(),
		PrefixSynthesised: !f.blocks,
	}
	if f.blocks {
		h.BlockSize = p.config.BlockSize
	}
	p.importer.Describe(&h)
	return h
}

// storedImporter is an importer of files that bring their header along.
type storedImporter interface {
	Importer
	storedHeader(f *facts) record.Header
}

// session is where a session stands.
type session struct {
	turn int32
	// hasBlock says that block is the first block of the session's first turn.
	hasBlock bool
	block    uint64
	// key is the arrival of its last turn that has one.
	key int64
}

// sessions follows the sessions of a trace by the hash of their name.
type sessions struct{ by map[uint64]session }

func newSessions() *sessions { return &sessions{by: map[uint64]session{}} }

var errNoTurn = errors.New("no earlier turn of its session in the file")

// next is the state of r's session at r: its turn counted, its key set. The
// key orders the trace: the arrival, or, of a row with a delay alone, that of
// the last turn of its session that has one.
func (s *sessions) next(r *record.Request) (session, error) {
	if r.Session == "" {
		if r.Arrival == record.NoTime {
			return session{}, ErrNoTime
		}
		return session{key: int64(r.Arrival)}, nil
	}
	state := s.by[xxhash.Sum64String(r.Session)]
	if r.Arrival == record.NoTime && (r.Delay == record.NoTime || state.turn == 0) {
		if r.Delay == record.NoTime {
			return state, ErrNoTime
		}
		return state, errNoTurn
	}
	if state.turn == 0 && len(r.Blocks) > 0 {
		state.hasBlock, state.block = true, r.Blocks[0]
	}
	state.turn++
	if r.Arrival != record.NoTime {
		state.key = int64(r.Arrival)
	}
	return state, nil
}

func (s *sessions) keep(r *record.Request, state session) {
	if r.Session != "" {
		s.by[xxhash.Sum64String(r.Session)] = state
	}
}
