package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"retrace/replay"
)

func TestProgressText(t *testing.T) {
	before := replay.Progress{Elapsed: time.Second, Sent: 100}
	now := replay.Progress{Elapsed: 1200 * time.Millisecond, Sent: 150, InFlight: 7, Waiting: 3, Done: 140, Failed: 2, NotSent: 1, Lag: 1234 * time.Microsecond}
	want := "1s  planned 900  sent 150  in flight 7  waiting 3  done 140  failed 2  not sent 1  250/s  late 1.23ms"
	if got := progressText(before, now, 900); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := progressText(before, replay.Progress{Elapsed: -3 * time.Second}, 900); got != "starts in 3s" {
		t.Errorf("got %s", got)
	}
}

// standstill is a terminal that takes nothing until it is released.
type standstill struct {
	released chan struct{}
	bytes.Buffer
}

func (s *standstill) Write(b []byte) (int, error) {
	<-s.released
	return s.Buffer.Write(b)
}

// R03: whoever reports progress never waits for the terminal; what it shows in
// the end is the newest.
func TestProgressNeverWaits(t *testing.T) {
	s := &standstill{released: make(chan struct{})}
	p := startProgress(s, 100, 80)
	for i := range 50 {
		p.update(replay.Progress{Elapsed: time.Second, Sent: int64(i + 1)})
	}
	close(s.released)
	p.end()
	if shown := s.String(); !strings.Contains(shown, "sent 50 ") || strings.Contains(shown, "sent 49 ") {
		t.Errorf("shown: %q", shown)
	}
}
