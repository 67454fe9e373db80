package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

// SorterOptions bound what a Sorter holds; zero values stand for the defaults.
type SorterOptions struct {
	// TempDir is where sorted runs go, os.TempDir() by default.
	TempDir string
	// MaxRecords and MaxBytes are what is sorted in memory at a time: 32,768
	// records and 16 MiB by default. What fits goes through no file.
	MaxRecords int
	MaxBytes   int
	// FanIn is the number of runs that are merged at a time, 64 by default.
	FanIn int
}

// Sorter sorts any number of requests by a key in bounded memory, through
// temporary files; long strings of base64 that bodies share are stored once.
// Requests of one key keep the order in which they were added.
type Sorter struct {
	opts  SorterOptions
	stage sortStage
	dir   string   // of the runs, "" before the first
	runs  []string // paths, in the order of their records
	made  int      // runs ever made
	err   error    // sticky
	// Long strings of bodies are stored once, apart from the runs.
	cutter cutter
	codec  codec // of the blobs, made with the first
	blobs  blobStore
}

// runChunk is the number of records in a chunk of a run: small, because a
// merge holds one chunk of every run.
const runChunk = 512

var errSorterClosed = errors.New("sort requests: the sorter is closed")

// NewSorter makes an empty Sorter. Close it to remove its files.
func NewSorter(opts SorterOptions) *Sorter {
	if opts.MaxRecords <= 0 {
		opts.MaxRecords = 32 << 10
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 16 << 20
	}
	if opts.FanIn < 2 {
		opts.FanIn = 64
	}
	s := &Sorter{opts: opts}
	s.cutter = cutter{least: leastBlob, put: s.putBlob}
	return s
}

// Add takes a copy of r with the key to sort by. r may be used again at once.
func (s *Sorter) Add(r *Request, key int64) error {
	if s.err != nil {
		return s.err
	}
	if size := requestBytes(r); size > maxRecordBytes {
		return fmt.Errorf("sort requests: %w", tooLarge("request", r.Key(), size))
	}
	if len(r.Body) >= s.cutter.least {
		return s.addLong(r, key)
	}
	return s.add(r, key, nil)
}

// add takes a copy of r, whose body was cut at spans.
func (s *Sorter) add(r *Request, key int64, spans []bodySpan) error {
	size := requestBytes(r) + int(unsafe.Sizeof(*r)) + spanBytes*len(spans)
	if n := len(s.stage.recs); n > 0 && (n >= s.opts.MaxRecords || s.stage.bytes+size > s.opts.MaxBytes) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.stage.add(r, key, size)
	s.stage.cut(spans)
	return nil
}

// addLong takes a copy of r, whose body is to be cut.
func (s *Sorter) addLong(r *Request, key int64) error {
	body, spans, err := s.cutter.cut(r.Body)
	if err != nil {
		s.err = fmt.Errorf("sort requests: %w", err)
		return s.err
	}
	c := *r
	c.Body = body
	return s.add(&c, key, spans)
}

// putBlob stores what was cut out of a body.
func (s *Sorter) putBlob(number int64, digest [sha256.Size]byte, data []byte) (err error) {
	if s.codec.enc == nil {
		if s.codec.enc, err = newBlobEncoder(zstd.SpeedFastest); err == nil {
			s.codec.dec, err = newDecoder()
		}
		if err != nil {
			return fmt.Errorf("make zstd codec: %w", err)
		}
		s.blobs.dec, s.blobs.dir = s.codec.dec, s.opts.TempDir
	}
	b := blobItem{number, digest, data}
	return s.blobs.add(b, s.codec.enc.EncodeAll(appendBlob(nil, b), nil), 0)
}

// joined is r with its body put together.
func (s *Sorter) joined(r *Request, spans []bodySpan) (Request, error) {
	if len(spans) == 0 {
		return *r, nil
	}
	c := *r
	var err error
	if c.Body, err = s.blobs.join(r.Body, spans); err != nil {
		return c, fmt.Errorf("sort requests: %w", err)
	}
	return c, nil
}

// Sorted yields the requests by key. Nothing can be added after. It can be
// called again, and broken off.
func (s *Sorter) Sorted() iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		if s.err == nil && len(s.runs) > 0 {
			s.err = s.reduce()
		}
		if s.err != nil {
			yield(Request{}, s.err)
			return
		}
		if len(s.runs) == 0 {
			for _, i := range s.order() {
				if !yield(s.joined(&s.stage.recs[i], s.stage.spans[int(i)])) {
					return
				}
			}
			return
		}
		err := mergeRuns(s.runs, &s.blobs, func(r *Request, _ int64, spans []bodySpan) bool { return yield(s.joined(r, spans)) })
		if err != nil {
			s.err = err
			yield(Request{}, err)
		}
	}
}

// Close removes the temporary files. What Sorted yielded stays valid only
// where it came from files; copy what is kept.
func (s *Sorter) Close() error {
	s.stage = sortStage{}
	s.err = errSorterClosed
	s.blobs.close()
	s.codec.close()
	s.codec = codec{}
	if s.dir == "" {
		return nil
	}
	dir := s.dir
	s.dir, s.runs = "", nil
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("sort requests: remove runs: %w", err)
	}
	return nil
}

// order is the staged records by key.
func (s *Sorter) order() []int32 {
	order := make([]int32, len(s.stage.recs))
	for i := range order {
		order[i] = int32(i)
	}
	if keys := s.stage.keys; !slices.IsSorted(keys) {
		slices.SortStableFunc(order, func(a, b int32) int {
			switch {
			case keys[a] < keys[b]:
				return -1
			case keys[a] > keys[b]:
				return 1
			}
			return 0
		})
	}
	return order
}

// spill writes the staged records as a run.
func (s *Sorter) spill() error {
	path, err := s.newRun(func(w *Writer) error {
		for _, i := range s.order() {
			if err := w.addCut(&s.stage.recs[i], &s.stage.keys[i], s.stage.spans[int(i)]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.err = fmt.Errorf("sort requests: %w", err)
		return s.err
	}
	s.runs = append(s.runs, path)
	s.stage.reset()
	return nil
}

// reduce spills the rest, and merges runs until one merge is left to do.
func (s *Sorter) reduce() error {
	if len(s.stage.recs) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.stage = sortStage{}
	for len(s.runs) > s.opts.FanIn {
		var merged []string
		for group := range slices.Chunk(s.runs, s.opts.FanIn) {
			path, err := s.mergeGroup(group)
			if err != nil {
				return fmt.Errorf("sort requests: %w", err)
			}
			merged = append(merged, path)
		}
		s.runs = merged
	}
	return nil
}

// mergeGroup merges runs into one and removes them.
func (s *Sorter) mergeGroup(group []string) (string, error) {
	if len(group) == 1 {
		return group[0], nil
	}
	path, err := s.newRun(func(w *Writer) error {
		var werr error
		err := mergeRuns(group, &s.blobs, func(r *Request, key int64, spans []bodySpan) bool {
			werr = w.addCut(r, &key, spans)
			return werr == nil
		})
		return errors.Join(err, werr)
	})
	if err != nil {
		return "", err
	}
	for _, old := range group {
		if err := os.Remove(old); err != nil {
			return "", fmt.Errorf("remove run: %w", err)
		}
	}
	return path, nil
}

// newRun writes one run through fill.
func (s *Sorter) newRun(fill func(*Writer) error) (path string, err error) {
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp(s.opts.TempDir, "retrace-sort-"); err != nil {
			return "", fmt.Errorf("make directory for runs: %w", err)
		}
	}
	path = filepath.Join(s.dir, fmt.Sprintf("%06d.run", s.made))
	s.made++
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("create run: %w", err)
	}
	w, err := newWriter(f, Header{Kind: KindTrace}, zstd.SpeedFastest)
	if err == nil {
		w.chunk, w.proof = runChunk, false
		if err = fill(w); err == nil {
			err = w.Close(Footer{})
		}
		w.discard()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("write run %s: %w", path, err)
	}
	return path, nil
}
