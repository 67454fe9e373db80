package formats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// T03: ten requests ten minutes apart, then five hundred 0.2 s apart: the
// median request arrives at five a second, whatever the head is like.
func TestRateProfile(t *testing.T) {
	var p rateProfile
	if got := p.median(); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	at := time.Duration(0)
	for range 10 {
		p.add(at)
		at += 600 * time.Second
	}
	for range 500 {
		p.add(at)
		at += 200 * time.Millisecond
	}
	// 6,000 s in at most 2,048 bins are bins of 4 s: 20 requests each.
	if got := p.median(); got != 5 {
		t.Errorf("median %v, want 5", got)
	}
	if p.width != 4*time.Second || len(p.bins) > mostBins {
		t.Errorf("%d bins of %s", len(p.bins), p.width)
	}
	p.add(-time.Hour)                 // counts as at the first
	p.add(290 * 365 * 24 * time.Hour) // almost the end of all times
	if len(p.bins) > mostBins {
		t.Errorf("%d bins", len(p.bins))
	}
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

// T03: the idle head is warned of, a part like the rest is not, nor is the
// whole; --speed changes nothing about it.
func TestOddPart(t *testing.T) {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":5}`+"\n", i*600_000)
	}
	for i := range 500 {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":5}`+"\n", 6_000_000+i*200)
	}
	in := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(in, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sel Selection
		odd bool
	}{
		{Selection{Limit: 10}, true},
		{Selection{Limit: 1}, false}, // no span, no rate
		{Selection{Limit: 10, Speed: 3000}, true},
		{Selection{End: time.Hour}, true},
		{Selection{Start: 6000 * time.Second}, false},
		{Selection{Start: 6000 * time.Second, Limit: 190}, false},
		{Selection{Start: 6000 * time.Second, Limit: 50, Speed: 0.1}, false},
		{Selection{}, false},
	} {
		for _, format := range []string{"trace", "mooncake"} {
			got, err := Convert([]string{in}, Options{Select: c.sel}, Target{Path: in + ".out", Format: format})
			if err != nil {
				t.Fatal(err)
			}
			if odd := strings.Contains(strings.Join(got.Report.Warnings, "\n"), "not like the rest"); odd != c.odd {
				t.Errorf("%+v to %s: warned %t, want %t", c.sel, format, odd, c.odd)
			}
		}
	}
}
