package simserver

import (
	"slices"
	"sort"
)

// queue is a line of sequences, in the order of their priority numbers and
// among equals of their arrival.
type queue struct {
	items []*sequence
	head  int
}

func (q *queue) len() int         { return len(q.items) - q.head }
func (q *queue) front() *sequence { return q.items[q.head] }

// pushBack puts a sequence behind all of its priority.
func (q *queue) pushBack(s *sequence) {
	if q.len() > 0 && q.items[len(q.items)-1].priority > s.priority {
		line := q.items[q.head:]
		at := q.head + sort.Search(len(line), func(i int) bool { return line[i].priority > s.priority })
		q.items = slices.Insert(q.items, at, s)
		return
	}
	q.items = append(q.items, s)
}

func (q *queue) popFront() {
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

// pushFront puts a sequence before all of its priority.
func (q *queue) pushFront(s *sequence) {
	line := q.items[q.head:]
	at := q.head + sort.Search(len(line), func(i int) bool { return line[i].priority >= s.priority })
	if at == q.head && q.head > 0 {
		q.head--
		q.items[q.head] = s
		return
	}
	q.items = slices.Insert(q.items, at, s)
}
