package simserver

import (
	"slices"
	"time"
)

// plan is what one step computes.
type plan struct {
	tokens   int  // all
	prefill  int  // of prompts, or recomputed after a preemption
	decoding int  // sequences that get one more token
	first    bool // the engine was idle before
}

// plan schedules the next step as vLLM does under its priority policy, which
// is first come first served among equals: first the running sequences in the
// order of their admission, then, where none had to be preempted, the waiting
// ones, while the budget of tokens, the batch and the cache allow.
func (e *engine) plan() plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := plan{first: e.stats.wasIdle}
	e.stats.wasIdle = false
	e.sweep()
	budget := e.cfg.MaxBatchTokens
	preempted := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		need := min(s.known()-s.computed, budget)
		kept := true
		for kept && !e.extend(s, need) {
			preempted = true
			v := e.victim()
			if v < i { // it was planned before: its tokens are free again
				budget += e.running[v].step
				p.remove(e.running[v])
				i--
			}
			kept = e.running[v] != s
			e.preempt(v)
		}
		if kept {
			budget -= need
			p.add(s, need)
		} else {
			i--
		}
	}
	for !preempted && budget > 0 && len(e.running) < e.cfg.MaxBatch && e.waiting.len() > 0 {
		s := e.waiting.front()
		need, ok := e.admit(s, budget)
		if !ok {
			break
		}
		e.waiting.popFront()
		e.running = append(e.running, s)
		budget -= need
		p.add(s, need)
	}
	if p.tokens > 0 {
		e.stats.iterationTokens.observe(float64(p.tokens))
	}
	return p
}

// add puts need tokens of a sequence into the plan.
func (p *plan) add(s *sequence, need int) {
	s.step = need
	p.tokens += need
	if s.decodes() {
		p.decoding++
	} else {
		p.prefill += need
	}
}

// remove takes a sequence out of the plan again.
func (p *plan) remove(s *sequence) {
	p.tokens -= s.step
	if s.decodes() {
		p.decoding--
	} else {
		p.prefill -= s.step
	}
}

// decodes says whether the sequence's part of the step is one more token after
// the first.
func (s *sequence) decodes() bool {
	return s.step == 1 && s.output > 0 && s.computed >= s.promptLen
}

// victim is the place of the running sequence that is preempted first: of the
// highest priority number, the one admitted last.
func (e *engine) victim() int {
	v := len(e.running) - 1
	for i := v - 1; i >= 0; i-- {
		if e.running[i].priority > e.running[v].priority {
			v = i
		}
	}
	return v
}

// extend takes the blocks that need more tokens of a running sequence want.
func (e *engine) extend(s *sequence, need int) bool {
	have := s.computed + need
	blocks, ok := e.pool.Take(s.blocks, e.blocksFor(have)-len(s.blocks))
	if !ok {
		return false
	}
	s.blocks = blocks
	e.commit(s, have)
	return true
}

// commit gives their hashes to the blocks that the first have tokens fill.
// That is before they are computed: another sequence of the same step may
// already share them.
func (e *engine) commit(s *sequence, have int) {
	for full := have / e.cfg.BlockSize; s.committed < full; s.committed++ {
		e.pool.Commit(s.blocks[s.committed], s.hashes[s.committed])
	}
}

// admit starts a waiting sequence where the cache has room for all the tokens
// it has, and returns how many are computed in this step. The last token is
// always computed, so at most ⌊(n−1)/B⌋ blocks come from the cache.
func (e *engine) admit(s *sequence, budget int) (need int, ok bool) {
	n := s.known()
	e.hits = e.pool.Lookup(e.hits[:0], s.hashes[:min(len(s.hashes), (n-1)/e.cfg.BlockSize)])
	if e.blocksFor(n)-len(e.hits)+e.pool.Idle(e.hits) > e.pool.Free() {
		return 0, false
	}
	e.pool.Touch(e.hits)
	s.blocks = append(s.blocks[:0], e.hits...)
	s.committed = len(e.hits)
	s.computed = len(e.hits) * e.cfg.BlockSize
	need = min(n-s.computed, budget)
	e.extend(s, need)
	if s.preempted == 0 {
		s.times.scheduled = time.Now()
		s.cached.Store(int64(s.computed))
		e.stats.admitted(s)
	}
	return need, true
}

func (e *engine) blocksFor(tokens int) int {
	return (tokens + e.cfg.BlockSize - 1) / e.cfg.BlockSize
}

// preempt sends a running sequence back to the head of the line, or of those
// of its priority. Its blocks are free at once; it will recompute what the
// cache has lost by then.
func (e *engine) preempt(i int) {
	s := e.running[i]
	e.running = slices.Delete(e.running, i, i+1)
	e.release(s)
	s.preempted++
	e.stats.preemptions++
	e.waiting.pushFront(s)
}

func (e *engine) release(s *sequence) {
	e.pool.Release(s.blocks)
	s.blocks, s.committed, s.computed, s.step = s.blocks[:0], 0, 0, 0
}

// sweep takes out the sequences whose clients went away.
func (e *engine) sweep() {
	if !e.drops.Swap(false) {
		return
	}
	kept := e.running[:0]
	for _, s := range e.running {
		if s.dropped.Load() {
			e.release(s)
			e.abandon(s)
		} else {
			kept = append(kept, s)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
	line := e.waiting.items[:e.waiting.head]
	for _, s := range e.waiting.items[e.waiting.head:] {
		if s.dropped.Load() {
			e.abandon(s)
		} else {
			line = append(line, s)
		}
	}
	clear(e.waiting.items[len(line):])
	e.waiting.items = line
}

func (e *engine) abandon(s *sequence) {
	e.stats.aborted++
	e.recycle(s)
}

// recycle gives back the memory that a sequence no longer needs.
func (e *engine) recycle(s *sequence) {
	if s.chain != nil {
		e.chains.Put(s.chain)
		s.chain = nil
	}
}

// complete ends a step: each sequence that has all its tokens computed gets
// one more, and finishes or goes on. A token that was just made has no KV yet;
// the last one never gets any.
func (e *engine) complete(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.running[:0]
	for _, s := range e.running {
		s.computed += s.step
		made := s.step > 0 && s.computed == s.known()
		s.step = 0
		if made {
			e.produce(s, now)
		}
		if !s.done() {
			kept = append(kept, s)
		}
		if made {
			s.shown.Store(int64(s.output))
			s.call.ring()
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
}

// produce makes one token, and ends the sequence with its last.
func (e *engine) produce(s *sequence, now time.Time) {
	if s.chain != nil {
		e.token[0] = s.tokenID(e.tok, s.output)
		s.hashes = s.chain.Append(s.hashes, e.token[:])
		if s.keyed && s.chain.Pending() == 0 {
			_ = s.chain.SetExtra(s.tailKeys...) // they were taken for the prompt
			s.keyed = false
		}
	}
	s.output++
	e.stats.produced(s, now)
	if s.done() {
		e.release(s)
		e.recycle(s)
		e.stats.finished(s, now)
	}
}
