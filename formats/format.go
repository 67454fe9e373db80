package formats

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"retrace/record"
	"retrace/record/capture"
)

// Match says how well a format fits the first rows of an input.
type Match int

// The degrees of a Match.
const (
	No    Match = iota
	Maybe       // possible, taken where no other format is Sure
	Sure        // the rows have what only this format has
)

// Format is one foreign format: how it is told from others, read and written.
type Format struct {
	// Name is what --from and --to take, Title a line for people.
	Name, Title string
	// Files says what its files are: "JSON Lines", "CSV with a header", …
	Files string
	// BlockSize is the length of a prefix block in tokens, 0 where the format has none.
	BlockSize int
	// Unit is that of the format's times, 0 where they are not plain numbers.
	Unit time.Duration
	// TimeFields are the source's names of times. When times are transformed
	// (--speed, an appended clock restart) kept literals of these no longer hold.
	TimeFields []string
	// OwnStart says that the format's times are never counted from 1970.
	OwnStart bool
	// Turns is the fixed dialect of the format's later turns ("full"), "" where
	// a row with a delay holds only what is new.
	Turns string
	// SplitsBlocks says that an export cuts larger blocks into the format's own,
	// where a whole number of these makes one, and leaves out the ids otherwise.
	SplitsBlocks bool
	// Carries are the parts of a record.Request that an export can hold.
	Carries Fields
	// Loses says what an export loses of one request although Carries names its
	// parts, "" for nothing; nil where that does not happen.
	Loses func(r *record.Request) string
	// LeavesOut says why an export cannot write a row for a request at all, ""
	// where it can; nil where it always can.
	LeavesOut func(r *record.Request) string
	// Detect looks at the first rows. It never looks at a file's name.
	Detect func(*Head) Match
	// NewImporter starts an import, nil where the format is not read.
	NewImporter func(ImportConfig) Importer
	// NewExporter starts an export to w, nil where the format is not written.
	// Kept literals and leftovers of the request (Exceptions, Extra) count
	// only where the header's Source is this format.
	NewExporter func(w io.Writer, h *record.Header) Exporter

	// stored says that its files are Retrace's own: rows keep their number,
	// turns are as they were decided, the header is the file's.
	stored bool
}

// ImportConfig is what an importer has to know: the effective values, the
// format's own where no flag overrides them.
type ImportConfig struct {
	BlockSize int
	Unit      time.Duration
	// Capture is what a log's importer keeps, capture.Full where empty, and Salt
	// what it hashes with; Encode turns text into tokens, nil where nothing does.
	Capture capture.Mode
	Salt    capture.Salt
	Encode  func(dst []uint32, text string) []uint32
}

// Importer turns the files of one trace into requests. One Importer sees all
// files of an import, in order.
type Importer interface {
	// Read decodes one file and hands each request to emit, in the file's
	// order, Arrival being on the source's own clock (not yet relative to the
	// first row). The request is copied by emit and may be used again, but its
	// slices are handed over. A row that cannot be read goes to src.Reject.
	// An error from emit or Reject is to be returned as it is.
	Read(src *Source, emit func(*record.Request) error) error
	// Describe adds to the header what the import has learnt: Wall, TimeBasis,
	// DelayMeaning. Called when all files were read.
	Describe(h *record.Header)
}

// Exporter writes requests in a foreign format.
type Exporter interface {
	// Write writes one request; the header's Origin is to be added to Arrival.
	Write(r *record.Request) error
	// Close writes what is left; it does not close the underlying writer.
	Close() error
}

// Fields is a set of parts of a record.Request.
type Fields uint32

// The parts of a request that a format may or may not carry.
const (
	FieldID Fields = 1 << iota
	FieldSession
	FieldTurn
	FieldParent
	FieldArrival
	FieldDelay
	FieldInput
	FieldOutput
	FieldBlocks
	FieldIncrement
	FieldBody
	FieldMedia
	FieldModel
	FieldKind
	FieldPriority
	FieldObserved
	fieldsEnd
)

// FieldAll is every part.
const FieldAll = fieldsEnd - 1

var fieldNames = []string{
	"id", "session", "turn", "parent", "arrival", "delay", "input tokens", "output tokens", "prefix blocks",
	"increment", "body", "media", "model", "kind", "priority", "observed",
}

// String lists the set's members, comma-separated.
func (f Fields) String() string {
	if f&FieldAll == FieldAll {
		return "everything"
	}
	var names []string
	for i, n := range fieldNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// fieldsOf is the set of parts that r really has.
func fieldsOf(r *record.Request) Fields {
	var f Fields
	set := func(has bool, x Fields) {
		if has {
			f |= x
		}
	}
	set(r.ID != "", FieldID)
	set(r.Session != "", FieldSession)
	set(r.Turn != 0, FieldTurn)
	set(r.Parent != "", FieldParent)
	set(r.Arrival != record.NoTime, FieldArrival)
	set(r.Delay != record.NoTime, FieldDelay)
	set(r.InputTokens != record.Unknown, FieldInput)
	set(r.OutputTokens != record.Unknown, FieldOutput)
	set(len(r.Blocks) > 0, FieldBlocks)
	set(r.Increment, FieldIncrement)
	set(r.Body != nil, FieldBody)
	set(len(r.Media) > 0, FieldMedia)
	set(r.Model != "", FieldModel)
	set(r.Kind != "", FieldKind)
	set(r.Priority != nil, FieldPriority)
	set(r.Observed != record.NewObserved(), FieldObserved)
	return f
}

var registry []*Format

// register adds a format; called from init of the file that defines it.
func register(f *Format) {
	for _, g := range registry {
		if g.Name == f.Name {
			panic("formats: registered twice: " + f.Name)
		}
	}
	registry = append(registry, f)
	slices.SortFunc(registry, func(a, b *Format) int { return strings.Compare(a.Name, b.Name) })
}

// All lists every format by name.
func All() []*Format { return slices.Clone(registry) }

// Lookup finds a format by its name.
func Lookup(name string) (*Format, error) {
	known := []string{containerFormat.Name}
	if name == containerFormat.Name {
		return containerFormat, nil
	}
	for _, f := range registry {
		if f.Name == name {
			return f, nil
		}
		known = append(known, f.Name)
	}
	return nil, fmt.Errorf("unknown format %q (known: %s)", name, strings.Join(known, ", "))
}
