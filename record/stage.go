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

// requestStage collects the requests of the next chunk.
type requestStage struct {
	recs   []Request
	keys   []int64 // of a sorted run
	need   presence
	bytes  int
	blocks arena[uint64]
	blobs  arena[byte]
}

func (s *requestStage) reset() {
	clear(s.recs)
	s.recs, s.keys, s.need, s.bytes = s.recs[:0], s.keys[:0], 0, 0
	s.blocks.reset()
	s.blobs.reset()
}

// add takes a deep copy of r, which holds size bytes.
func (s *requestStage) add(r *Request, size int) {
	s.need.note(r)
	s.bytes += size
	if n := len(s.recs); n == cap(s.recs) && n < maxRecords {
		// Two steps, so that small files stay small and others do not copy much.
		s.recs = append(make([]Request, 0, max(min(16*n, maxRecords), 128)), s.recs...)
	}
	s.recs = append(s.recs, *r)
	c := &s.recs[len(s.recs)-1]
	c.Blocks = s.blocks.copy(r.Blocks)
	if r.Body != nil {
		c.Body = s.blobs.copy(r.Body)
	}
	if r.Extra != nil {
		c.Extra = s.blobs.copy(r.Extra)
	}
	if r.Priority != nil {
		p := *r.Priority
		c.Priority = &p
	}
	c.Media = slices.Clone(r.Media)
	if len(r.Exceptions) > 0 {
		c.Exceptions = slices.Clone(r.Exceptions)
		for i := range c.Exceptions {
			c.Exceptions[i].Raw = s.blobs.copy(c.Exceptions[i].Raw)
		}
	}
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
	c.Connect = wholeMicros(c.Connect)
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
	return d / time.Microsecond * time.Microsecond
}

func resultBytes(r *Result) int {
	return int(unsafe.Sizeof(Gap{}))*len(r.Gaps) + len(r.Output) + len(r.ID) + len(r.Session) +
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
