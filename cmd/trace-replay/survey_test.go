package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"retrace/record"
	"retrace/replay"
)

func surveyOf(times ...time.Duration) *survey {
	s := newSurvey()
	seen := map[string]struct{}{}
	for _, at := range times {
		r := record.NewRequest()
		r.Arrival = at
		s.add(&r, seen)
	}
	return s
}

func TestRateProfileFolds(t *testing.T) {
	var p rateProfile
	for i := range 10_000 {
		p.add(time.Duration(i) * time.Minute)
	}
	var sum int64
	for _, n := range p.bins {
		sum += n
	}
	if sum != 10_000 || len(p.bins) > mostBins {
		t.Errorf("%d arrivals in %d bins", sum, len(p.bins))
	}
	if m := p.median(); m < 0.9/60 || m > 1.1/60 {
		t.Errorf("median %v, want 1/60 (one a minute)", m)
	}
	p.add(1 << 62) // 146 years
	if len(p.bins) > mostBins {
		t.Errorf("%d bins", len(p.bins))
	}
}

func TestCompareRates(t *testing.T) {
	var far, near []time.Duration
	for i := range 10 {
		far = append(far, time.Duration(i)*600*time.Second)
	}
	near = append(near, far...)
	for i := range 500 {
		near = append(near, 6000*time.Second+time.Duration(i)*200*time.Millisecond)
	}
	if w := compareRates(surveyOf(far...), surveyOf(near...)); !strings.Contains(w, "not like the rest") {
		t.Errorf("T03: got %q", w)
	}
	if w := compareRates(surveyOf(near[10:200]...), surveyOf(near...)); w != "" {
		t.Errorf("the steady part: got %q", w)
	}
	if w := compareRates(surveyOf(far[:1]...), surveyOf(near...)); w != "" {
		t.Errorf("one request: got %q", w)
	}
}

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
