package replay

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retrace/record"
)

// Jobs come out by time, ties in the trace's order, whatever order they went in.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 50).Draw(t, "times")
		order := rapid.Permutation(indexes(len(times))).Draw(t, "order")
		q := newQueue(func() {})
		for _, i := range order {
			q.push(&job{seq: int64(i), due: time.Duration(times[i])})
		}
		want := indexes(len(times))
		slices.SortStableFunc(want, func(a, b int) int { return times[a] - times[b] })
		for _, i := range want {
			due, ok := q.next()
			j := q.pop()
			drawn := q.draft(context.Background())
			if !ok || j.seq != int64(i) || due != j.due || drawn != j {
				t.Fatalf("got %d at %v, want %d", j.seq, due, i)
			}
		}
		if q.pop() != nil {
			t.Fatal("more came out than went in")
		}
	})
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Never more than limit run; those in line come in their order; nobody is lost.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &slots{limit: rapid.IntRange(1, 4).Draw(t, "limit")}
		var granted []int64
		running := 0
		for i, enter := range rapid.SliceOfN(rapid.Bool(), 0, 3000).Draw(t, "steps") {
			switch {
			case enter:
				if s.enter(&job{seq: int64(i)}) {
					granted = append(granted, int64(i))
					running++
				}
			case running > 0:
				if j := s.leave(); j != nil {
					granted = append(granted, j.seq)
				} else {
					running--
				}
			}
			if active, _ := s.counts(); active != running || running > s.limit {
				t.Fatalf("%d active, %d running, limit %d", active, running, s.limit)
			}
		}
		for _, j := range s.flush() {
			granted = append(granted, j.seq)
		}
		if !slices.IsSorted(granted) {
			t.Fatalf("out of order: %v", granted)
		}
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		if !b.take(t.Context(), 25) {
			t.Fatal("one of any size is let in")
		}
		got := false
		go func() { got = b.take(context.Background(), 10) }()
		synctest.Wait()
		if got || b.roomTwice(1) {
			t.Error("let in where there is no room")
		}
		b.give(25)
		synctest.Wait()
		if !got || !b.roomTwice(10) || b.roomTwice(11) {
			t.Error("not let in where there is room")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if b.take(ctx, 1) {
			t.Error("let in after the end")
		}
		b.give(0)
		b.give(10)
	})
}

// A drawn body is freed by who drops the job, another by the renderer.
func TestDropAndDeliver(t *testing.T) {
	q := newQueue(func() {})
	early, late := &job{}, &job{}
	if q.drop(early) || q.deliver(early) {
		t.Error("dropped before it was drawn: the renderer frees it")
	}
	if !q.deliver(late) || !q.drop(late) {
		t.Error("drawn before it was dropped: the dropper frees it")
	}
	q.push(early)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if j := q.draft(ctx); j != nil {
		t.Error("a dropped job is drawn")
	}
}

// The real alarm: on time, and woken early, also by a wake before the wait.
func TestAlarm(t *testing.T) {
	for _, coarse := range []bool{false, true} {
		a := newAlarm(coarse)
		for range 20 {
			start := time.Now()
			a.wait(3 * ms)
			if took := time.Since(start); took < 3*ms-100*time.Microsecond {
				t.Errorf("coarse %v: woke after %v", coarse, took)
			}
		}
		start := time.Now()
		a.wake()
		a.wait(time.Hour)
		time.AfterFunc(10*ms, a.wake)
		a.wait(time.Hour)
		if took := time.Since(start); took < 9*ms || took > 10*time.Second {
			t.Errorf("coarse %v: woken after %v", coarse, took)
		}
		a.wait(-1)
		a.close()
	}
}

func TestClockOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		time.Sleep(5 * time.Second)
		c.setOrigin(time.Time{})
		if now := c.now(); now != -lead {
			t.Errorf("now %v, want %v", now, -lead)
		}
		at := time.Now().Add(time.Minute)
		c.setOrigin(at)
		if now := c.now(); now != -time.Minute || !c.wall().Equal(at) {
			t.Errorf("now %v, wall %v", now, c.wall())
		}
		res := record.NewResult()
		res.Sent = 7 * time.Second
		shift(&res, 10*time.Second)
		if res.Sent != -3*time.Second || res.End != record.NoTime {
			t.Errorf("shifted %v %v", res.Sent, res.End)
		}
	})
}
