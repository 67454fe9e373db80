package record

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// formatVersion is the version of the container that this package writes, and
// the only one that it reads. Any change of what an item may hold raises it.
const formatVersion = 1

// wireHeader is Header as it stands in the file; times are nanoseconds.
type wireHeader struct {
	Kind         Kind     `cbor:"kind"`
	BlockSize    int      `cbor:"block_size,omitempty"`
	BlockUnit    string   `cbor:"block_unit,omitempty"`
	BytesPer     float64  `cbor:"bytes_per_token,omitempty"`
	Capture      string   `cbor:"capture,omitempty"`
	Source       string   `cbor:"source,omitempty"`
	Unit         int64    `cbor:"unit,omitempty"`
	Origin       int64    `cbor:"origin,omitempty"`
	Wall         bool     `cbor:"wall,omitempty"`
	TimeBasis    string   `cbor:"time_basis,omitempty"`
	Turns        string   `cbor:"turns,omitempty"`
	DelayMeaning string   `cbor:"delay_meaning,omitempty"`
	Synthesised  bool     `cbor:"prefix_synthesised,omitempty"`
	Quantum      int64    `cbor:"quantum,omitempty"`
	Layout       []string `cbor:"layout,omitempty"`
	Namespace    string   `cbor:"namespace,omitempty"`
	Seed         int64    `cbor:"seed,omitempty"`
	RunID        string   `cbor:"run_id,omitempty"`
	Run          *wireRun `cbor:"run,omitempty"`
}

type wireRun struct {
	Start           string   `cbor:"start,omitempty"` // RFC 3339, UTC
	URLs            []string `cbor:"urls,omitempty"`
	Proxy           string   `cbor:"proxy,omitempty"`
	Insecure        bool     `cbor:"insecure,omitempty"`
	Model           string   `cbor:"model,omitempty"`
	API             string   `cbor:"api,omitempty"`
	Prompt          string   `cbor:"prompt,omitempty"`
	Sessions        string   `cbor:"sessions,omitempty"`
	Speed           float64  `cbor:"speed,omitempty"`
	Shard           int      `cbor:"shard,omitempty"`
	Shards          int      `cbor:"shards,omitempty"`
	Salt            string   `cbor:"salt,omitempty"`
	MaxConcurrency  int      `cbor:"max_concurrency,omitempty"`
	MaxLag          int64    `cbor:"max_lag,omitempty"`
	ServerBlockSize int      `cbor:"server_block_size,omitempty"`
	Overhead        int64    `cbor:"overhead,omitempty"`
	Planned         int64    `cbor:"planned,omitempty"`
	wireLoad
}

// wireLoad is Load as it stands in the map of the run.
type wireLoad struct {
	Arrival      string  `cbor:"arrival,omitempty"`
	Rate         float64 `cbor:"rate,omitempty"`
	Burstiness   float64 `cbor:"burstiness,omitempty"`
	RampUp       string  `cbor:"ramp_up,omitempty"`
	RampStart    float64 `cbor:"ramp_start,omitempty"`
	RampEnd      float64 `cbor:"ramp_end,omitempty"`
	Overflow     string  `cbor:"overflow,omitempty"`
	MaxInFlight  int     `cbor:"max_in_flight,omitempty"`
	Assistant    string  `cbor:"assistant,omitempty"`
	FailedTurn   string  `cbor:"failed_turn,omitempty"`
	MaxDelay     int64   `cbor:"max_delay,omitempty"`
	WarmUp       int64   `cbor:"warm_up,omitempty"`
	ProbeRate    float64 `cbor:"probe_rate,omitempty"`
	Retries      int     `cbor:"retries,omitempty"`
	RetryMaxTime int64   `cbor:"retry_max_time,omitempty"`
	Repeat       int     `cbor:"repeat,omitempty"`
	Repeats      int     `cbor:"repeats,omitempty"`
}

func loadToWire(l *Load) wireLoad {
	return wireLoad{
		Arrival: l.Arrival, Rate: l.Rate, Burstiness: l.Burstiness, RampUp: l.RampUp, RampStart: l.RampStart, RampEnd: l.RampEnd,
		Overflow: l.Overflow, MaxInFlight: l.MaxInFlight, Assistant: l.Assistant, FailedTurn: l.FailedTurn, MaxDelay: int64(l.MaxDelay),
		WarmUp: l.WarmUp, ProbeRate: l.ProbeRate, Retries: l.Retries, RetryMaxTime: int64(l.RetryMaxTime), Repeat: l.Repeat, Repeats: l.Repeats,
	}
}

func (l *wireLoad) load() Load {
	return Load{
		Arrival: l.Arrival, Rate: l.Rate, Burstiness: l.Burstiness, RampUp: l.RampUp, RampStart: l.RampStart, RampEnd: l.RampEnd,
		Overflow: l.Overflow, MaxInFlight: l.MaxInFlight, Assistant: l.Assistant, FailedTurn: l.FailedTurn, MaxDelay: time.Duration(l.MaxDelay),
		WarmUp: l.WarmUp, ProbeRate: l.ProbeRate, Retries: l.Retries, RetryMaxTime: time.Duration(l.RetryMaxTime), Repeat: l.Repeat, Repeats: l.Repeats,
	}
}

// wireFooter is Footer as it stands in the file.
type wireFooter struct {
	Requests    int64            `cbor:"requests"`
	Results     int64            `cbor:"results"`
	Series      int64            `cbor:"series"`
	Dropped     map[string]int64 `cbor:"dropped,omitempty"`
	Interrupted bool             `cbor:"interrupted"`
	Notes       []string         `cbor:"notes,omitempty"`
	Index       []indexEntry     `cbor:"index"`
}

// indexEntry is one frame of the file. First and Last are the smallest and
// the largest arrival (of results: scheduled time), null where none is known.
type indexEntry struct {
	_      struct{} `cbor:",toarray"`
	Offset int64
	Length int64
	Kind   string
	Count  int64
	First  *int64
	Last   *int64
	XXH64  uint64
}

// encMode is core deterministic encoding (RFC 8949 §4.2.1), decMode what
// accepts nothing else that matters: no doubled key, no unknown field.
var encMode, decMode = func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err)
	}
	dec, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  1 << 27,
		UTF8:              cbor.UTF8RejectInvalid,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
}()

// encodeHeader makes the header item: ["retrace", version, map].
func encodeHeader(h Header) ([]byte, error) {
	w := wireHeader{
		Kind: h.Kind, BlockSize: h.BlockSize, BlockUnit: h.BlockUnit, BytesPer: h.BytesPerToken, Capture: h.Capture,
		Source: h.Source, Unit: int64(h.Unit), Origin: int64(h.Origin),
		Wall: h.Wall, TimeBasis: h.TimeBasis, Turns: h.Turns, DelayMeaning: h.DelayMeaning,
		Synthesised: h.PrefixSynthesised, Quantum: int64(h.Quantum), Layout: h.Layout, Namespace: h.Namespace,
		Seed: h.Seed, RunID: h.RunID,
	}
	if r := h.Run; r != nil {
		w.Run = &wireRun{
			URLs: r.URLs, Proxy: r.Proxy, Insecure: r.Insecure, Model: r.Model, API: r.API, Prompt: r.Prompt,
			Sessions: r.Sessions, Speed: r.Speed, Shard: r.Shard, Shards: r.Shards, Salt: r.Salt,
			MaxConcurrency: r.MaxConcurrency, MaxLag: int64(r.MaxLag), ServerBlockSize: r.ServerBlockSize,
			Overhead: r.Overhead, Planned: r.Planned, wireLoad: loadToWire(&r.Load),
		}
		if !r.Start.IsZero() {
			w.Run.Start = r.Start.UTC().Format(time.RFC3339Nano)
		}
	}
	body, err := encMode.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode header: %w", err)
	}
	item := appendText(appendHead(nil, cborArray, 3), itemHeader)
	return append(appendHead(item, cborUint, formatVersion), body...), nil
}

// decodeHeader reads the header item.
func decodeHeader(item []byte) (Header, error) {
	cur := cursor{b: item}
	kind, elements, err := itemKind(&cur)
	if err != nil {
		return Header{}, err
	}
	if kind != itemHeader {
		return Header{}, fmt.Errorf("first item is %q, expected %q", kind, itemHeader)
	}
	version := cur.head(cborUint)
	if cur.err == nil && version != formatVersion {
		return Header{}, fmt.Errorf("container has version %d, this program reads version %d", version, formatVersion)
	}
	if cur.err != nil || elements != 3 {
		return Header{}, errors.Join(errors.New("header item is malformed"), cur.err)
	}
	var w wireHeader
	if err := decMode.Unmarshal(cur.b[cur.pos:], &w); err != nil {
		return Header{}, fmt.Errorf("decode header: %w", err)
	}
	return w.header()
}

func (w *wireHeader) header() (Header, error) {
	if w.Kind != KindTrace && w.Kind != KindRecording {
		return Header{}, fmt.Errorf("header: kind is %.32q, expected %q or %q", w.Kind, KindTrace, KindRecording)
	}
	if w.BlockSize < 0 {
		return Header{}, fmt.Errorf("header: block_size is %d, expected 0 or more", w.BlockSize)
	}
	if w.BlockUnit != "" && w.BlockUnit != UnitBytes {
		return Header{}, fmt.Errorf("header: block_unit is %.32q, expected %q or none", w.BlockUnit, UnitBytes)
	}
	if !(w.BytesPer >= 0) || math.IsInf(w.BytesPer, 1) {
		return Header{}, fmt.Errorf("header: bytes_per_token is %g, expected 0 or more", w.BytesPer)
	}
	h := Header{
		Kind: w.Kind, BlockSize: w.BlockSize, BlockUnit: w.BlockUnit, BytesPerToken: w.BytesPer, Capture: w.Capture,
		Source: w.Source, Unit: time.Duration(w.Unit),
		Origin: time.Duration(w.Origin), Wall: w.Wall, TimeBasis: w.TimeBasis, Turns: w.Turns,
		DelayMeaning: w.DelayMeaning, PrefixSynthesised: w.Synthesised, Quantum: time.Duration(w.Quantum),
		Layout: w.Layout, Namespace: w.Namespace, Seed: w.Seed, RunID: w.RunID,
	}
	if r := w.Run; r != nil {
		h.Run = &Run{
			URLs: r.URLs, Proxy: r.Proxy, Insecure: r.Insecure, Model: r.Model, API: r.API, Prompt: r.Prompt,
			Sessions: r.Sessions, Speed: r.Speed, Shard: r.Shard, Shards: r.Shards, Salt: r.Salt,
			MaxConcurrency: r.MaxConcurrency, MaxLag: time.Duration(r.MaxLag), ServerBlockSize: r.ServerBlockSize,
			Overhead: r.Overhead, Planned: r.Planned, Load: r.load(),
		}
		if r.Start != "" {
			start, err := time.Parse(time.RFC3339Nano, r.Start)
			if err != nil {
				return Header{}, fmt.Errorf("header: run start: %w", err)
			}
			h.Run.Start = start.UTC()
		}
	}
	return h, nil
}

// encodeFooter makes the footer item: ["footer", map].
func encodeFooter(f Footer, index []indexEntry) ([]byte, error) {
	body, err := encMode.Marshal(wireFooter{
		Requests: f.Requests, Results: f.Results, Series: f.Series,
		Dropped: f.Dropped, Interrupted: f.Interrupted, Notes: f.Notes, Index: index,
	})
	if err != nil {
		return nil, fmt.Errorf("encode footer: %w", err)
	}
	return append(appendText(appendHead(nil, cborArray, 2), itemFooter), body...), nil
}

// decodeFooter reads on after itemKind.
func decodeFooter(cur *cursor, elements uint64) (Footer, []indexEntry, error) {
	if elements != 2 {
		return Footer{}, nil, fmt.Errorf("footer: array of %d elements, expected 2", elements)
	}
	var w wireFooter
	if err := decMode.Unmarshal(cur.b[cur.pos:], &w); err != nil {
		return Footer{}, nil, fmt.Errorf("decode footer: %w", err)
	}
	f := Footer{
		Requests: w.Requests, Results: w.Results, Series: w.Series,
		Dropped: w.Dropped, Interrupted: w.Interrupted, Notes: w.Notes,
	}
	return f, w.Index, nil
}
