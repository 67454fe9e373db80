package formats

import (
	"fmt"
	"time"

	"retrace/record"
)

// notes tells what was taken and what was found on the way.
func (t *Trace) notes() {
	t.ignored()
	f, h := t.found.facts, t.Header
	note := func(format string, args ...any) {
		t.report.Notes = append(t.report.Notes, fmt.Sprintf(format, args...))
	}
	how := "detected from the content"
	if t.job.opts.From != "" {
		how = "as given"
	}
	note("format: %s (%s)", t.Format.Name, how)
	if h.Turns != "" {
		note("turns: %s%s", h.Turns, t.turnsWhy())
	}
	if h.DelayMeaning != "" {
		note("delay: %s", h.DelayMeaning)
	}
	if h.Origin != 0 {
		note("origin: offset 0 is at %s on the source's clock", originText(&h))
	}
	if h.Quantum > 0 {
		note("arrivals quantised to %s ms", groups(h.Quantum))
	}
	if h.PrefixSynthesised {
		note("no row has block ids: the prompts share nothing that the source knows of")
	}
	if n := f.restarts.inversions; n > 0 && !t.Format.stored {
		note("%s out of order (largest step back %s): sorted by arrival", plural(n, "row"), f.restarts.largest)
	}
	for _, field := range sortedKeys(t.report.Unknown) {
		note("unknown field %q in %s: kept", field, plural(t.report.Unknown[field], "row"))
	}
}

// ignored warns of flags that do not apply to this source.
func (t *Trace) ignored() {
	o := t.job.opts
	for _, f := range []struct {
		flag    string
		ignored bool
	}{
		{"--block-size", o.BlockSize > 0 && (t.Format.stored || t.Format.BlockSize == 0)},
		{"--time-unit", o.Unit > 0 && (t.Format.stored || t.Format.Unit == 0)},
		{"--turns", o.Turns != "" && t.Format.stored},
		{"--clock-restart", o.ClockRestart != RestartRefuse && t.Format.stored},
	} {
		if f.ignored {
			t.report.Warnings = append(t.report.Warnings, fmt.Sprintf("%s does not apply to the format %s: ignored", f.flag, t.Format.Name))
		}
	}
}

func (t *Trace) turnsWhy() string {
	switch {
	case t.Format.stored:
		return " (as stored)"
	case t.job.opts.Turns != "":
		return " (as given)"
	case t.Header.Turns == TurnsFull:
		return " (each later turn holds its whole prompt)"
	}
	return " (later turns with a delay hold only what is new)"
}

func originText(h *record.Header) string {
	if h.Wall {
		return time.Unix(0, int64(h.Origin)).UTC().Format(time.RFC3339Nano)
	}
	if h.Unit > 0 {
		return string(AppendTime(nil, h.Origin, h.Unit)) + " " + unitShort(h.Unit)
	}
	return h.Origin.String()
}

func unitShort(u time.Duration) string {
	for name, d := range units {
		if d == u {
			return name
		}
	}
	return "× " + u.String()
}

// groups writes a duration in milliseconds with thousands separated: 3,000.
func groups(d time.Duration) string {
	s := string(AppendTime(nil, d, time.Millisecond))
	whole := len(s)
	for i := range len(s) {
		if s[i] == '.' {
			whole = i
			break
		}
	}
	for i := whole - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
