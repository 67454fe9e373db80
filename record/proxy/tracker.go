package proxy

import (
	"time"

	"retrace/openai"
	"retrace/record"
)

const (
	// knownTurns is how many turns are surely remembered, so that a later one
	// finds its session.
	knownTurns = 1 << 16
	// turnAge is how long a turn may be the parent of another.
	turnAge = time.Hour
)

// tracker gives requests their sessions: by the client's own names, else by
// what their messages begin with. It is for one goroutine.
type tracker struct {
	turns  *recent[digest, turn]
	counts *recent[string, int] // turns by session
}

// turn is one that another may follow.
type turn struct {
	session string
	key     string
	end     time.Duration
}

func newTracker() *tracker {
	return &tracker{turns: newRecent[digest, turn](knownTurns), counts: newRecent[string, int](knownTurns)}
}

// place gives the request its session, turn and parent, and remembers it as a
// parent of others.
func (t *tracker) place(q *record.Request, x *exchange, f *facts) {
	states := statesOf(f)
	parent, found := t.parent(x, f, states)
	switch {
	case x.session != "":
		q.Session = x.session
	case f.session != "":
		q.Session = f.session
	case f.cacheKey != "":
		q.Session = f.cacheKey
	case found:
		q.Session = parent.session
	case len(f.messages) > 0 || f.previous != "":
		q.Session = "s" + q.Key()
	default:
		return
	}
	n, _ := t.counts.get(q.Session)
	t.counts.set(q.Session, n+1)
	q.Turn = n + 1
	if found && parent.session == q.Session {
		q.Parent = parent.key
	}
	t.remember(turn{session: q.Session, key: q.Key(), end: x.end}, x, states)
}

// parent finds the turn that the request follows: the one that it names, or
// that with the longest beginning of its messages.
func (t *tracker) parent(x *exchange, f *facts, states []digest) (turn, bool) {
	if f.previous != "" {
		return t.known(digestOf("response", f.previous), x)
	}
	for i := len(states) - 2; i > 0; i-- { // what is behind it is new
		if p, ok := t.known(states[i], x); ok {
			return p, true
		}
	}
	return turn{}, false
}

// known is a turn that has ended before the request arrived, and not too long ago.
func (t *tracker) known(d digest, x *exchange) (turn, bool) {
	p, ok := t.turns.get(d)
	if !ok || x.arrival < p.end || x.arrival-p.end > turnAge {
		return turn{}, false
	}
	return p, true
}

// remember makes the turn one that others may follow.
func (t *tracker) remember(own turn, x *exchange, states []digest) {
	if x.answer == nil || x.class != "" {
		return
	}
	if x.answer.id != "" {
		t.turns.set(digestOf("response", x.answer.id), own)
	}
	if len(states) == 0 {
		return
	}
	answer := openai.Message{Role: "assistant", Content: string(x.answer.stream.Text())}
	for _, call := range x.answer.stream.ToolCalls() {
		answer.ToolCalls = appendCall(answer.ToolCalls, call.Name, call.Arguments)
	}
	t.turns.set(after(states[len(states)-1], &answer, answer.ToolCalls), own)
}

// states are the digests of the conversation up to each of its messages.
func statesOf(f *facts) []digest {
	if len(f.messages) == 0 {
		return nil
	}
	states := make([]digest, len(f.messages))
	last := digestOf("model", f.Model, f.CacheSalt)
	for i := range f.messages {
		m := &f.messages[i]
		last = after(last, m, calls(m.ToolCalls))
		states[i] = last
	}
	return states
}
