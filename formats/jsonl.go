package formats

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"retrace/record"
)

// jsonlVersion is the value of a header line's key "retrace".
const jsonlVersion = "requests/1"

func init() {
	register(&Format{
		Name: "jsonl", Title: "Retrace's canonical records as JSON lines", Files: "JSON Lines",
		Carries: FieldAll, Detect: detectJSONL, stored: true,
		NewImporter: func(ImportConfig) Importer { return &jsonlImporter{} },
		NewExporter: func(w io.Writer, h *record.Header) Exporter { return &jsonlExporter{w: w, header: *h} },
	})
}

func detectJSONL(h *Head) Match {
	if len(h.Rows) > 0 && len(h.Rows[0]) > 0 && h.Rows[0][0].Key == "retrace" {
		return Sure
	}
	return No
}

// jsonlHeader is record.Header as the first line has it.
type jsonlHeader struct {
	Retrace           string  `json:"retrace"`
	Source            string  `json:"source,omitempty"`
	BlockSize         int     `json:"block_size,omitempty"`
	BlockUnit         string  `json:"block_unit,omitempty"`
	BytesPerToken     float64 `json:"bytes_per_token,omitempty"`
	Capture           string  `json:"capture,omitempty"`
	UnitNS            int64   `json:"unit_ns,omitempty"`
	OriginNS          int64   `json:"origin_ns"`
	Wall              bool    `json:"wall,omitempty"`
	TimeBasis         string  `json:"time_basis,omitempty"`
	Turns             string  `json:"turns,omitempty"`
	DelayMeaning      string  `json:"delay_meaning,omitempty"`
	PrefixSynthesised bool    `json:"prefix_synthesised,omitempty"`
	QuantumNS         int64   `json:"quantum_ns,omitempty"`
	// Layout is that of a CSV source's columns.
	Layout    []string `json:"layout,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Seed      int64    `json:"seed,omitempty"`
	RunID     string   `json:"run_id,omitempty"`
}

func toJSONLHeader(h *record.Header) jsonlHeader {
	return jsonlHeader{
		Retrace: jsonlVersion, Source: h.Source, BlockSize: h.BlockSize,
		BlockUnit: h.BlockUnit, BytesPerToken: h.BytesPerToken, Capture: h.Capture, UnitNS: int64(h.Unit), OriginNS: int64(h.Origin),
		Wall: h.Wall, TimeBasis: h.TimeBasis, Turns: h.Turns, DelayMeaning: h.DelayMeaning,
		PrefixSynthesised: h.PrefixSynthesised, QuantumNS: int64(h.Quantum), Layout: h.Layout, Namespace: h.Namespace,
		Seed: h.Seed, RunID: h.RunID,
	}
}

func (j jsonlHeader) header() record.Header {
	return record.Header{
		Kind: record.KindTrace, Source: j.Source, BlockSize: j.BlockSize, BlockUnit: j.BlockUnit,
		BytesPerToken: j.BytesPerToken, Capture: j.Capture, Unit: time.Duration(j.UnitNS),
		Origin: time.Duration(j.OriginNS), Wall: j.Wall, TimeBasis: j.TimeBasis, Turns: j.Turns,
		DelayMeaning: j.DelayMeaning, PrefixSynthesised: j.PrefixSynthesised, Quantum: time.Duration(j.QuantumNS),
		Layout: j.Layout, Namespace: j.Namespace, Seed: j.Seed, RunID: j.RunID,
	}
}

// jsonlImporter reads canonical JSON lines.
type jsonlImporter struct {
	merged mergedHeader
	origin time.Duration
	src    *Source
}

// Describe has nothing to add: the files bring their header.
func (j *jsonlImporter) Describe(*record.Header) {}

func (j *jsonlImporter) storedHeader(*facts) record.Header { return j.merged.header }

// Read reads one file, its header line first.
func (j *jsonlImporter) Read(src *Source, emit func(*record.Request) error) error {
	j.src = src
	return src.lines(j.decode, j.head, emit)
}

func (j *jsonlImporter) head(line []byte) error {
	members, err := ParseObject(line)
	if err != nil {
		return fmt.Errorf("read %s: header line: %w", j.src.Name, err)
	}
	var h jsonlHeader
	if err := json.Unmarshal(AppendObject(nil, members), &h); err != nil {
		return fmt.Errorf("read %s: header line: %w", j.src.Name, err)
	}
	if h.Retrace != jsonlVersion {
		return fmt.Errorf("read %s: header line: found \"retrace\": %q, expected %q", j.src.Name, h.Retrace, jsonlVersion)
	}
	j.origin = time.Duration(h.OriginNS)
	return j.merged.add(j.src.Name, h.header())
}

// jsonlExporter writes canonical JSON lines.
type jsonlExporter struct {
	w       io.Writer
	header  record.Header
	buf     []byte
	started bool
}

// start writes the header line, once.
func (e *jsonlExporter) start() error {
	if e.started {
		return nil
	}
	e.started = true
	line, err := json.Marshal(toJSONLHeader(&e.header))
	if err != nil {
		return fmt.Errorf("encode header line: %w", err)
	}
	_, err = e.w.Write(append(line, '\n'))
	return err
}

// Write writes one line.
func (e *jsonlExporter) Write(r *record.Request) error {
	if err := e.start(); err != nil {
		return err
	}
	e.buf = append(appendRequest(e.buf[:0], r), '\n')
	_, err := e.w.Write(e.buf)
	return err
}

// Close writes the header line of a trace without requests.
func (e *jsonlExporter) Close() error { return e.start() }

// appendRequest writes r as one JSON object.
func appendRequest(dst []byte, r *record.Request) []byte {
	o := objectWriter{dst: append(dst, '{')}
	o.num("row", r.Row)
	o.str("id", r.ID)
	o.str("session", r.Session)
	o.opt("turn", int64(r.Turn), 0)
	o.str("parent", r.Parent)
	o.opt("arrival_ns", int64(r.Arrival), int64(record.NoTime))
	o.opt("delay_ns", int64(r.Delay), int64(record.NoTime))
	o.opt("input_tokens", r.InputTokens, record.Unknown)
	o.opt("output_tokens", r.OutputTokens, record.Unknown)
	if len(r.Blocks) > 0 {
		o.key("blocks")
		o.dst = appendIDs(o.dst, r.Blocks)
	}
	o.flag("increment", r.Increment)
	o.str("api", r.API)
	o.raw("body", r.Body)
	o.media(r.Media)
	o.str("model", r.Model)
	o.str("kind", r.Kind)
	if r.Priority != nil {
		o.num("priority", *r.Priority)
	}
	o.observed(&r.Observed)
	o.raw("extra", r.Extra)
	o.exceptions(r.Exceptions)
	return append(o.dst, '}')
}

func (o *objectWriter) media(list []record.Media) {
	if len(list) == 0 {
		return
	}
	o.key("media")
	o.dst = append(o.dst, '[')
	for i, m := range list {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		in := objectWriter{dst: append(o.dst, '{')}
		in.str("kind", m.Kind)
		in.str("ref", m.Ref)
		in.opt("bytes", m.Bytes, record.Unknown)
		o.dst = append(in.dst, '}')
	}
	o.dst = append(o.dst, ']')
}

func (o *objectWriter) observed(b *record.Observed) {
	if *b == record.NewObserved() {
		return
	}
	o.key("observed")
	in := objectWriter{dst: append(o.dst, '{')}
	in.opt("status", int64(b.Status), 0)
	in.opt("latency_ns", int64(b.Latency), int64(record.NoTime))
	in.opt("input_tokens", b.InputTokens, record.Unknown)
	in.opt("output_tokens", b.OutputTokens, record.Unknown)
	in.flag("failed", b.Failed)
	o.dst = append(in.dst, '}')
}

func (o *objectWriter) exceptions(list []record.Exception) {
	if len(list) == 0 {
		return
	}
	o.key("exceptions")
	o.dst = append(o.dst, '[')
	for i, e := range list {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		in := objectWriter{dst: append(o.dst, '{')}
		in.key("field")
		in.dst = AppendString(in.dst, e.Field)
		if e.Raw != nil {
			in.text("raw", e.Raw)
		}
		o.dst = append(in.dst, '}')
	}
	o.dst = append(o.dst, ']')
}

// objectWriter appends the members of a JSON object.
type objectWriter struct {
	dst []byte
}

func (o *objectWriter) key(k string) {
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(AppendString(o.dst, k), ':')
}

func (o *objectWriter) num(k string, n int64) {
	o.key(k)
	o.dst = strconv.AppendInt(o.dst, n, 10)
}

// opt leaves out the value that stands for none.
func (o *objectWriter) opt(k string, n, none int64) {
	if n != none {
		o.num(k, n)
	}
}

func (o *objectWriter) flag(k string, set bool) {
	if set {
		o.key(k)
		o.dst = append(o.dst, "true"...)
	}
}
