package record

import (
	"fmt"
	"slices"
	"sort"
	"time"
	"unsafe"
)

// arena hands out copies of slices from memory that is used again for every
// chunk. What it has handed out never moves.
type arena[T any] struct {
	slabs [][]T
	slab  int // in use
	used  int // of it
}

const slabLen = 1 << 16

func (a *arena[T]) reset() { a.slab, a.used = 0, 0 }

// copy keeps nil apart from empty.
func (a *arena[T]) copy(v []T) []T {
	if v == nil {
		return nil
	}
	if len(v) > slabLen/2 {
		return slices.Clone(v)
	}
	if a.slab < len(a.slabs) && a.used+len(v) > slabLen {
		a.slab, a.used = a.slab+1, 0
	}
	if a.slab == len(a.slabs) {
		a.slabs = append(a.slabs, make([]T, slabLen))
	}
	own := a.slabs[a.slab][a.used : a.used+len(v) : a.used+len(v)]
	a.used += len(v)
	copy(own, v)
	return own
}

// plainRecord is what nearly every request has; its blocks are with the encoder.
type plainRecord struct{ arrival, input, output, row int64 }

// requestStage collects the requests of the next chunk but for their blocks.
type requestStage struct {
	plain []plainRecord
	full  []Request // as many, from the first request on that needs more
	keys  []int64   // of a sorted run
	spans []bodySpan
	need  presence
	bytes int
	blobs arena[byte]
}

func (s *requestStage) reset() {
	clear(s.full)
	s.plain, s.full, s.keys, s.spans, s.need, s.bytes = s.plain[:0], s.full[:0], s.keys[:0], s.spans[:0], 0, 0
	s.blobs.reset()
}

// add takes a copy of r, which holds size bytes.
func (s *requestStage) add(r *Request, size int) {
	s.bytes += size
	if s.plain == nil {
		s.plain = make([]plainRecord, 0, maxRecords)
	}
	s.plain = append(s.plain, plainRecord{int64(r.Arrival), r.InputTokens, r.OutputTokens, r.Row})
	plain := isPlain(r)
	if plain && len(s.full) == 0 {
		return
	}
	for i := len(s.full); i < len(s.plain); i++ {
		s.full = append(s.full, NewRequest())
		s.plain[i].restore(&s.full[i])
	}
	if !plain {
		s.need.note(r)
		deepCopy(&s.full[len(s.full)-1], r, &s.blobs)
	}
}

// cut notes where the body of the request that was added last was cut.
func (s *requestStage) cut(spans []bodySpan) {
	for _, sp := range spans {
		sp.row = len(s.plain) - 1
		s.spans = append(s.spans, sp)
	}
}

// restore gives r what p kept of it.
func (p *plainRecord) restore(r *Request) {
	r.Arrival, r.InputTokens, r.OutputTokens, r.Row = time.Duration(p.arrival), p.input, p.output, p.row
}

// same says whether b, a plain request, has these numbers.
func (p *plainRecord) same(b *Request) bool {
	return p.arrival == int64(b.Arrival) && p.input == b.InputTokens && p.output == b.OutputTokens && p.row == b.Row
}

// deepCopy makes c a copy of r that shares none of its memory, but for Blocks,
// which it leaves out.
func deepCopy(c, r *Request, blobs *arena[byte]) {
	*c = *r
	c.Blocks = nil
	c.Body, c.Extra = blobs.copy(r.Body), blobs.copy(r.Extra)
	if r.Priority != nil {
		p := *r.Priority
		c.Priority = &p
	}
	c.Media = slices.Clone(r.Media)
	c.Exceptions = slices.Clone(r.Exceptions)
	for i := range c.Exceptions {
		c.Exceptions[i].Raw = blobs.copy(c.Exceptions[i].Raw)
	}
}

// sortStage collects requests to be sorted.
type sortStage struct {
	recs   []Request
	keys   []int64
	spans  map[int][]bodySpan // of those whose bodies were cut
	bytes  int
	blocks arena[uint64]
	blobs  arena[byte]
}

func (s *sortStage) reset() {
	clear(s.recs)
	s.recs, s.keys, s.spans, s.bytes = s.recs[:0], s.keys[:0], nil, 0
	s.blocks.reset()
	s.blobs.reset()
}

// add takes a copy of r, which holds size bytes.
func (s *sortStage) add(r *Request, key int64, size int) {
	s.bytes += size
	s.keys = append(s.keys, key)
	s.recs = append(s.recs, Request{})
	c := &s.recs[len(s.recs)-1]
	if isPlain(r) {
		*c = *r
	} else {
		deepCopy(c, r, &s.blobs)
	}
	c.Blocks = s.blocks.copy(r.Blocks)
}

// cut notes where the body of the request that was added last was cut.
func (s *sortStage) cut(spans []bodySpan) {
	if len(spans) == 0 {
		return
	}
	if s.spans == nil {
		s.spans = make(map[int][]bodySpan)
	}
	s.spans[len(s.recs)-1] = slices.Clone(spans)
}

// requestBytes is what a request holds in memory beyond its struct.
func requestBytes(r *Request) int {
	n := 8*len(r.Blocks) + len(r.Body) + len(r.Extra)
	n += len(r.ID) + len(r.Session) + len(r.Parent) + len(r.API) + len(r.Model) + len(r.Kind)
	for i := range r.Media {
		n += int(unsafe.Sizeof(Media{})) + len(r.Media[i].Kind) + len(r.Media[i].Ref)
	}
	for i := range r.Exceptions {
		n += int(unsafe.Sizeof(Exception{})) + len(r.Exceptions[i].Field) + len(r.Exceptions[i].Raw)
	}
	return n
}

// resultStage collects the results of the next chunk.
type resultStage struct {
	recs  []Result
	bytes int
	gaps  arena[Gap]
	blobs arena[byte]
}

func (s *resultStage) reset() {
	clear(s.recs)
	s.recs, s.bytes = s.recs[:0], 0
	s.gaps.reset()
	s.blobs.reset()
}

// add takes a deep copy of r with its times cut to whole microseconds.
func (s *resultStage) add(r *Result, size int) {
	s.bytes += size
	s.recs = append(s.recs, *r)
	c := &s.recs[len(s.recs)-1]
	for _, m := range c.moments() {
		*m = wholeMicros(*m)
	}
	for _, d := range []*time.Duration{&c.Connect, &c.ServerQueue, &c.ServerPrefill, &c.ServerDecode} {
		*d = wholeMicros(*d)
	}
	c.Tries = slices.Clone(r.Tries)
	for i := range c.Tries {
		c.Tries[i].Sent, c.Tries[i].Wait = wholeMicros(c.Tries[i].Sent), wholeMicros(c.Tries[i].Wait)
	}
	c.ChoiceFirsts = slices.Clone(r.ChoiceFirsts)
	for i := range c.ChoiceFirsts {
		c.ChoiceFirsts[i] = wholeMicros(c.ChoiceFirsts[i])
	}
	c.Gaps = s.gaps.copy(r.Gaps)
	for i := range c.Gaps {
		c.Gaps[i].Wait = wholeMicros(c.Gaps[i].Wait)
	}
	if r.Output != nil {
		c.Output = s.blobs.copy(r.Output)
	}
}

func wholeMicros(d time.Duration) time.Duration {
	if d == NoTime {
		return d
	}
	return d - d%time.Microsecond
}

func resultBytes(r *Result) int {
	return int(unsafe.Sizeof(Gap{}))*len(r.Gaps) + int(unsafe.Sizeof(Try{}))*len(r.Tries) + 8*len(r.ChoiceFirsts) + len(r.Output) + len(r.ID) + len(r.Session) +
		len(r.Model) + len(r.Kind) + len(r.Class) + len(r.Reason) + len(r.Error) + len(r.FinishReason)
}

// seriesStage collects the series of the next chunk.
type seriesStage struct {
	recs  []Series
	bytes int
}

func (s *seriesStage) reset() {
	clear(s.recs)
	s.recs, s.bytes = s.recs[:0], 0
}

func (s *seriesStage) add(r *Series, size int) {
	s.bytes += size
	c := Series{Name: r.Name, Times: slices.Clone(r.Times), Values: slices.Clone(r.Values)}
	if len(r.Labels) > 0 {
		c.Labels = make(map[string]string, len(r.Labels))
		for k, v := range r.Labels {
			c.Labels[k] = v
		}
	}
	s.recs = append(s.recs, c)
}

func seriesBytes(r *Series) (int, error) {
	if len(r.Times) != len(r.Values) {
		return 0, fmt.Errorf("series %s: %d times for %d values", r.Name, len(r.Times), len(r.Values))
	}
	n := 16*len(r.Times) + len(r.Name)
	for k, v := range r.Labels {
		n += 32 + len(k) + len(v)
	}
	return n, nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
