package simserver

import (
	"sync"
	"sync/atomic"
	"time"

	"retrace/hashing"
	"retrace/hashing/prefixcache"
)

// maxCatchUp bounds how far behind its own schedule the engine may run and
// still make up for it: beyond, a stall of the process is no debt.
const maxCatchUp = 50 * time.Millisecond

// engine is the scheduler: one goroutine that runs step after step while there
// is work. Handlers submit calls and wait for their bells.
type engine struct {
	cfg  *Config
	tok  *tokenizer
	pool *prefixcache.VLLMPool

	inboxMu sync.Mutex
	inbox   []*call
	wake    chan struct{} // capacity 1
	quit    chan struct{}
	exited  chan struct{}
	drops   atomic.Bool // some sequence is dropped and still in a line
	chains  sync.Pool   // *hashing.Chain

	mu      sync.Mutex // held while a step is planned or completed
	waiting queue
	running []*sequence
	spare   []*call
	hits    []int32
	token   [1]uint32 // the one just made
	stats   stats
}

func newEngine(cfg *Config, tok *tokenizer) (*engine, error) {
	pool, err := prefixcache.NewVLLMPool(cfg.CacheBlocks)
	if err != nil {
		return nil, err
	}
	if _, err := newChain(cfg); err != nil {
		return nil, err
	}
	e := &engine{cfg: cfg, tok: tok, pool: pool,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), exited: make(chan struct{})}
	e.chains.New = func() any {
		c, err := newChain(cfg)
		if err != nil {
			panic(err) // the same arguments worked above
		}
		return c
	}
	e.stats = newStats()
	return e, nil
}

// chain takes a chain that stands at the root.
func (e *engine) chain() *hashing.Chain {
	c := e.chains.Get().(*hashing.Chain)
	c.Reset()
	return c
}

func newChain(cfg *Config) (*hashing.Chain, error) {
	return hashing.NewChain(hashing.XXHashCBOR, cfg.BlockSize, "0")
}

// submit hands a call to the engine.
func (e *engine) submit(c *call) {
	e.inboxMu.Lock()
	e.inbox = append(e.inbox, c)
	e.inboxMu.Unlock()
	e.nudge()
}

// drop ends a call early: its blocks are free before the next step.
func (e *engine) drop(c *call) {
	for _, s := range c.seqs {
		s.dropped.Store(true)
	}
	e.drops.Store(true)
	e.nudge()
}

func (e *engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// close stops the engine and waits for its goroutine.
func (e *engine) close() {
	close(e.quit)
	<-e.exited
}

// run is the engine's goroutine.
func (e *engine) run() {
	defer close(e.exited)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var end time.Time // of the step before
	for {
		e.receive()
		plan := e.plan()
		if plan.tokens == 0 {
			if !e.idle() {
				return
			}
			continue
		}
		now := time.Now()
		if now.Sub(end) > maxCatchUp || plan.first {
			end = now
		}
		end = end.Add(e.cfg.stepCost(plan.prefill, plan.decoding))
		if wait := end.Sub(now); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-e.quit:
				return
			}
			now = time.Now()
		}
		e.complete(now)
		select {
		case <-e.quit:
			return
		default:
		}
	}
}

// idle waits for something to do and says whether there is.
func (e *engine) idle() bool {
	e.mu.Lock()
	e.stats.wasIdle = true
	e.mu.Unlock()
	select {
	case <-e.wake:
		return true
	case <-e.quit:
		return false
	}
}

// receive moves submitted calls into the waiting line.
func (e *engine) receive() {
	e.inboxMu.Lock()
	e.inbox, e.spare = e.spare[:0], e.inbox
	e.inboxMu.Unlock()
	if len(e.spare) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, c := range e.spare {
		for _, s := range c.seqs {
			e.waiting.pushBack(s)
		}
		e.spare[i] = nil
	}
}
