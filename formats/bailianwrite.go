package formats

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"retrace/record"
)

// bailianExporter writes Bailian rows.
type bailianExporter struct {
	w      *bufio.Writer
	unit   time.Duration
	origin time.Duration
	// same says that the source was Bailian too.
	same bool
	// split is how many blocks of 16 tokens make one of the trace's, 0 where
	// none do and ids cannot be written.
	split int
	clock exportClock
	chats chatNumbers
	row   []Member
	buf   []byte
}

func newBailianExporter(w io.Writer, h *record.Header) Exporter {
	e := &bailianExporter{w: bufio.NewWriter(w), unit: time.Second, split: 1}
	if h.Source == "bailian" {
		e.same, e.origin = true, h.Origin
		if h.Unit > 0 {
			e.unit = h.Unit
		}
		return e
	}
	if !h.Wall {
		e.origin = h.Origin
	}
	if size := h.TokensPerBlock(); size > 0 {
		e.split = 0
		if size%bailianBlock == 0 {
			e.split = size / bailianBlock
		}
	}
	e.chats = chatNumbers{byKey: map[string]uint64{}, last: map[string]chatTurn{}}
	return e
}

// Write writes one line.
func (e *bailianExporter) Write(r *record.Request) error {
	q := *r
	if e.same {
		if q.Arrival != record.NoTime {
			q.Arrival += e.origin
		}
	} else {
		e.adapt(&q)
	}
	row, err := renderBailian(e.row[:0], &q, e.unit)
	if err != nil {
		return fmt.Errorf("write request %s: %w", r.Key(), err)
	}
	if e.same {
		row = Restore(row, r.Exceptions)
	}
	e.row = row
	e.buf = append(AppendObject(e.buf[:0], row), '\n')
	_, err = e.w.Write(e.buf)
	return err
}

// Close writes out what is buffered.
func (e *bailianExporter) Close() error { return e.w.Flush() }

// adapt makes of a request from another source one that a Bailian row can hold.
func (e *bailianExporter) adapt(q *record.Request) {
	q.Arrival = e.clock.at(q) + e.origin
	e.chats.number(q)
	q.Extra = nil
	if q.Kind == "" {
		q.Kind = "text"
	}
	if q.OutputTokens == record.Unknown {
		q.OutputTokens = q.Observed.OutputTokens
	}
	switch {
	case e.split == 0:
		q.Blocks = nil
	case e.split > 1:
		q.Blocks = splitBlocks(q.Blocks, e.split, q.InputTokens)
	}
}

// splitBlocks gives the ids of blocks of 16 tokens, n to one of the given: two
// prompts share as much in the one as in the other.
func splitBlocks(blocks []uint64, n int, tokens int64) []uint64 {
	count := min(int64(len(blocks))*int64(n), (tokens+bailianBlock-1)/bailianBlock)
	out := make([]uint64, 0, max(count, 0))
	for i := range count {
		id, part := blocks[i/int64(n)], uint64(i)%uint64(n)
		if id > (math.MaxUint64-uint64(n))/uint64(n) {
			id = mix64(id) / uint64(n) // too large to number its parts: take a hash
		}
		out = append(out, id*uint64(n)+part)
	}
	return out
}

// mix64 is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// chatNumbers gives the requests of another source numbers for chat ids.
type chatNumbers struct {
	next  uint64
	byKey map[string]uint64
	last  map[string]chatTurn
}

type chatTurn struct {
	chat uint64
	turn int
}

// number gives q a chat id, and its parent's where it follows one that was
// written before.
func (c *chatNumbers) number(q *record.Request) {
	chat := c.next
	c.next++
	parent := ""
	before, follows := c.last[q.Session]
	if q.Parent != "" {
		if p, ok := c.byKey[q.Parent]; ok {
			parent = strconv.FormatUint(p, 10)
		}
	} else if q.Session != "" && follows {
		parent = strconv.FormatUint(before.chat, 10)
	}
	if q.ID != "" {
		c.byKey[q.ID] = chat
	}
	if q.Turn == 0 {
		q.Turn = before.turn + 1
	}
	if q.Session != "" {
		c.last[q.Session] = chatTurn{chat, q.Turn}
	}
	q.ID, q.Parent = strconv.FormatUint(chat, 10), parent
}
