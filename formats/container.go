package formats

import (
	"fmt"

	"retrace/record"
)

// containerFormat is Retrace's own. It is no member of the registry, as it is
// told by its container, not by its rows.
var containerFormat = &Format{
	Name: "trace", Title: "Retrace's own container (.trace, .rec)", Files: "container",
	Carries: FieldAll, Detect: func(*Head) Match { return No }, stored: true,
	NewImporter: func(ImportConfig) Importer { return &containerImporter{} },
}

// containerImporter reads canonical traces.
type containerImporter struct {
	merged mergedHeader
}

// Describe has nothing to add: the files bring their header.
func (c *containerImporter) Describe(*record.Header) {}

func (c *containerImporter) storedHeader(*facts) record.Header { return c.merged.header }

// Read reads one container. Whole chunks are always delivered; what is missing
// is a loss, whatever --bad-lines says.
func (c *containerImporter) Read(src *Source, emit func(*record.Request) error) error {
	r, err := record.Open(src.path)
	if err != nil {
		return fmt.Errorf("read %s: %w", src.Name, err)
	}
	defer r.Close() // read only: nothing can be lost
	h := r.Header()
	if err := c.merged.add(src.Name, h); err != nil {
		return err
	}
	for q, err := range r.Requests() {
		if err != nil {
			return fmt.Errorf("read %s: %w", src.Name, err)
		}
		src.Row()
		if q.Arrival != record.NoTime {
			q.Arrival += h.Origin
		}
		if err := emit(&q); err != nil {
			return err
		}
	}
	if loss := r.Loss(); loss != nil {
		loss.Path = src.Name // not that of a temporary copy
		src.ledger.losses = append(src.ledger.losses, loss.Error())
	}
	return nil
}

// mergedHeader is the header of one or several canonical files.
type mergedHeader struct {
	header record.Header
	name   string
}

func (m *mergedHeader) add(name string, h record.Header) error {
	if h.Kind != record.KindTrace {
		return fmt.Errorf("read %s: it is a recording: it holds results, no requests (trace-analyze reads it)", name)
	}
	if m.name == "" {
		m.name, m.header = name, h
		return nil
	}
	have := &m.header
	for _, d := range []struct {
		what string
		same bool
	}{
		{"namespace (they are different traces, and equal block ids would become one)", h.Namespace == have.Namespace},
		{"block size", h.BlockSize == have.BlockSize || h.BlockSize == 0 || have.BlockSize == 0},
		{"unit of blocks", h.BlockUnit == have.BlockUnit || h.BlockSize == 0 || have.BlockSize == 0},
		{"source format", h.Source == have.Source},
		{"clock", h.Wall == have.Wall},
	} {
		if !d.same {
			return fmt.Errorf("merge %s and %s: they differ in their %s", m.name, name, d.what)
		}
	}
	if have.BlockSize == 0 {
		have.BlockSize, have.BlockUnit, have.BytesPerToken = h.BlockSize, h.BlockUnit, h.BytesPerToken
	}
	if have.Capture != h.Capture {
		have.Capture = ""
	}
	have.Origin = min(have.Origin, h.Origin)
	have.PrefixSynthesised = have.PrefixSynthesised && h.PrefixSynthesised
	switch {
	case have.Turns == "":
		have.Turns = h.Turns
	case h.Turns != "" && h.Turns != have.Turns:
		have.Turns = "mixed"
	}
	if have.DelayMeaning == "" {
		have.DelayMeaning = h.DelayMeaning
	}
	return nil
}
