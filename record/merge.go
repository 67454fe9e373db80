package record

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// run reads one sorted run.
type run struct {
	file  *os.File
	pass  *pass
	codec requestCodec
	order int // among the runs: earlier ones win ties
	keys  []int64
	next  int // in keys
}

// openRun opens a run and reads its first chunk; io.EOF where it has none.
func openRun(path string, order int, dec *zstd.Decoder, blobs *blobStore) (*run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	r := &run{file: f, order: order}
	r.codec.store = blobs
	r.pass = &pass{blobs: &blobStore{at: f, dec: dec}, path: path, scan: frameScanner{r: f}, dec: dec, next: make(map[string]int64)}
	if _, err = r.pass.header(); err == nil {
		err = r.fill()
	}
	if err != nil {
		_ = f.Close() // only read
		return nil, err
	}
	return r, nil
}

// fill reads the next chunk.
func (r *run) fill() error {
	h, _, cur, err := r.pass.chunk()
	if err == nil {
		r.keys, r.next = resize(r.keys, h.count), 0
		if err = r.codec.decode(cur, h); err == nil {
			err = r.codec.decodeKeys(r.keys)
		}
	}
	if loss := r.pass.loss; loss != nil {
		return loss // even at the end: a run that lacks something is no run
	}
	return err
}

// runHeap orders runs by the key of their next record.
type runHeap []*run

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	a, b := h[i].keys[h[i].next], h[j].keys[h[j].next]
	return a < b || a == b && h[i].order < h[j].order
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is never needed; it is there for container/heap.
func (h *runHeap) Push(x any) { *h = append(*h, x.(*run)) }

// Pop takes the last run off.
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// mergeRuns yields the records of all runs by key until yield is false, their
// bodies cut at the spans. blobs has what was cut out.
func mergeRuns(paths []string, blobs *blobStore, yield func(*Request, int64, []bodySpan) bool) error {
	dec, err := newDecoder()
	if err != nil {
		return fmt.Errorf("make zstd decoder: %w", err)
	}
	defer dec.Close()
	var h runHeap
	defer func() {
		for _, r := range h {
			_ = r.file.Close() // only read
		}
	}()
	for i, path := range paths {
		r, err := openRun(path, i, dec, blobs)
		if err != nil {
			return fmt.Errorf("merge runs: %w", err)
		}
		h = append(h, r)
	}
	heap.Init(&h)
	for len(h) > 0 {
		r := h[0]
		if !yield(r.codec.at(r.next), r.keys[r.next], spansOf(r.codec.spans, r.next)) {
			return nil
		}
		if r.next++; r.next < len(r.keys) {
			heap.Fix(&h, 0)
			continue
		}
		switch err := r.fill(); {
		case err == nil:
			heap.Fix(&h, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&h)
			_ = r.file.Close() // only read
		default:
			return fmt.Errorf("merge runs: %w", err)
		}
	}
	return nil
}
