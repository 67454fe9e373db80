package analysis

import (
	"fmt"
	"strings"
	"time"
)

// SLO is what a request must keep to count as good: limits on its latencies,
// measured from its send. A zero limit is none.
type SLO struct {
	TTFT time.Duration
	TPOT time.Duration
	E2E  time.Duration
}

// ParseSLO reads "ttft=500ms,tpot=50ms,e2e=10s": any of the three, each once,
// with Go's units of time.
func ParseSLO(text string) (SLO, error) {
	var s SLO
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return SLO{}, fmt.Errorf("parse SLO %q: found %q, expected NAME=DURATION such as ttft=500ms", text, part)
		}
		limit, err := s.field(strings.TrimSpace(name))
		if err != nil {
			return SLO{}, fmt.Errorf("parse SLO %q: %w", text, err)
		}
		if *limit != 0 {
			return SLO{}, fmt.Errorf("parse SLO %q: %s is given twice", text, name)
		}
		d, err := time.ParseDuration(strings.TrimSpace(value))
		if err != nil || d <= 0 {
			return SLO{}, fmt.Errorf("parse SLO %q: %s is %q, expected a positive duration such as 500ms", text, name, value)
		}
		*limit = d
	}
	return s, nil
}

func (s *SLO) field(name string) (*time.Duration, error) {
	switch name {
	case "ttft":
		return &s.TTFT, nil
	case "tpot":
		return &s.TPOT, nil
	case "e2e":
		return &s.E2E, nil
	}
	return nil, fmt.Errorf("found metric %q, expected ttft, tpot or e2e", name)
}

// String is the SLO in the form that ParseSLO reads, in the order ttft, tpot, e2e.
func (s SLO) String() string {
	var parts []string
	for _, l := range []struct {
		name  string
		limit time.Duration
	}{{"ttft", s.TTFT}, {"tpot", s.TPOT}, {"e2e", s.E2E}} {
		if l.limit != 0 {
			parts = append(parts, l.name+"="+l.limit.String())
		}
	}
	return strings.Join(parts, ",")
}

// met reports whether a completed request kept every limit. A request whose
// time to first output is unknown did not keep a limit on it; one of a single
// token has no time per output token, so none that is too long.
func (s SLO) met(t *timing) bool {
	if s.TTFT != 0 && (!t.hasFirst || t.ttft > s.TTFT.Microseconds()) {
		return false
	}
	if s.E2E != 0 && (!t.hasLast || t.e2e > s.E2E.Microseconds()) {
		return false
	}
	return s.TPOT == 0 || !t.hasTPOT || t.tpot <= float64(s.TPOT)/float64(time.Microsecond)
}
