package replay

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// job is one planned request on its way.
type job struct {
	seq    int64
	due    time.Duration
	delay  time.Duration // after the parent's end, or NoTime
	res    record.Result
	api    openai.API
	prompt prompt.Prompt
	source []byte // the trace's body, for literal prompts
	output int64  // wanted output tokens, as sent; Unknown sends none
	weight int64  // bytes held of the plan budget

	model    string // asked for in place of the run's, "" for none
	priority *int64 // nil sends none
	trimmed  bool   // output is to be set in a body too
	other    bool   // another shard sends it

	turn *turn // where later turns may wait for this one
	talk *talk // nil without live answers
	// sent is when the last attempt was handed to the connection; patience is
	// what the server asked for then, 0 for nothing.
	sent     time.Duration
	patience time.Duration

	// The renderer's: body is there when ready is closed.
	ready chan struct{}
	body  *[]byte
	// fields are the optional ones that body has; streams says that it asks
	// for a stream.
	fields  fields
	streams bool
	// without are optional fields that the server refused of this request;
	// results is how many the answer is to have, 0 where that is open.
	without fields
	results int
	held    int64 // bytes held of the body budget
	once    bool  // there is no room to keep the plan while the request runs
	err     error
	// dropped tells the renderer that nobody waits for the body; drawn that it
	// is there. Behind queue.mu.
	dropped, drawn bool
}

// jobHeap orders jobs by their time, then by their place in the trace.
type jobHeap []*job

func (h jobHeap) Len() int { return len(h) }
func (h jobHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].seq < h[j].seq
}
func (h jobHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push and Pop are container/heap's.
func (h *jobHeap) Push(x any) { *h = append(*h, x.(*job)) }

// Pop removes the last element.
func (h *jobHeap) Pop() any {
	old := *h
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return j
}

// queue holds the jobs whose time is known: due for the pacer, draw for the
// renderer.
type queue struct {
	mu    sync.Mutex
	due   jobHeap
	draw  jobHeap
	wake  func()        // called where due has a new first
	drawn chan struct{} // a token: draw has changed
}

func newQueue(wake func()) *queue {
	return &queue{wake: wake, drawn: make(chan struct{}, 1)}
}

func (q *queue) push(j *job) {
	q.mu.Lock()
	heap.Push(&q.due, j)
	heap.Push(&q.draw, j)
	first := q.due[0] == j
	q.mu.Unlock()
	if first {
		q.wake()
	}
	token(q.drawn)
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// next is the time of the earliest job, and false where there is none.
func (q *queue) next() (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		return 0, false
	}
	return q.due[0].due, true
}

// pop takes the earliest job, nil where there is none.
func (q *queue) pop() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		return nil
	}
	return heap.Pop(&q.due).(*job)
}

// draft takes the job to render next; it waits for one until ctx is done,
// and is nil then.
func (q *queue) draft(ctx context.Context) *job {
	for {
		q.mu.Lock()
		for len(q.draw) > 0 {
			j := heap.Pop(&q.draw).(*job)
			if !j.dropped {
				q.mu.Unlock()
				return j
			}
		}
		q.mu.Unlock()
		select {
		case <-q.drawn:
		case <-ctx.Done():
			return nil
		}
	}
}

// redraft puts back a job that draft gave.
func (q *queue) redraft(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	heap.Push(&q.draw, j)
}

// drop says that j's body is not wanted, and whether it is there already: then
// it is the caller's to free, else the renderer's.
func (q *queue) drop(j *job) (drawn bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j.dropped = true
	return j.drawn
}

// deliver says that j's body is there, and whether it is still wanted.
func (q *queue) deliver(j *job) (wanted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j.drawn = true
	return !j.dropped
}

// budget bounds how many bytes are held at once. One request of any size is
// let in where nothing else is held.
type budget struct {
	mu    sync.Mutex
	limit int64
	held  int64
	freed chan struct{}
}

func newBudget(limit int64) *budget {
	return &budget{limit: limit, freed: make(chan struct{}, 1)}
}

// take waits for room for n bytes, and is false where ctx was done first. It
// is for one goroutine.
func (b *budget) take(ctx context.Context, n int64) bool {
	for {
		if b.tryTake(n) {
			return true
		}
		select {
		case <-b.freed:
		case <-ctx.Done():
			return false
		}
	}
}

// tryTake takes n bytes where there is room.
func (b *budget) tryTake(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != 0 && b.held+n > b.limit {
		return false
	}
	b.held += n
	return true
}

// roomTwice says whether n more bytes stay within twice the limit.
func (b *budget) roomTwice(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held+n <= 2*b.limit
}

// force takes n bytes, room or not.
func (b *budget) force(n int64) {
	b.mu.Lock()
	b.held += n
	b.mu.Unlock()
}

func (b *budget) give(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	b.held -= n
	b.mu.Unlock()
	token(b.freed)
}
