package formats

import (
	"fmt"
	"time"

	"retrace/record"
)

// notes tells what was taken and what was found on the way.
func (t *Trace) notes() {
	t.ignored()
	t.doubtSpan()
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
	o, f := t.job.opts, t.Format
	format := "the format " + f.Name
	own := "the format " + f.Name + ", which was converted with its own"
	for _, c := range []struct {
		flag    string
		given   bool
		ignored bool
		why     string
	}{
		{"--block-size", o.BlockSize > 0, f.stored, own},
		{"--block-size", o.BlockSize > 0, !f.stored && f.BlockSize == 0, format + ", which has no blocks"},
		{"--time-unit", o.Unit > 0, f.stored, own},
		{"--time-unit", o.Unit > 0, !f.stored && f.Unit == 0, format + ", whose times say their unit"},
		{"--turns", o.Turns != "", f.stored, own},
		{"--turns", o.Turns != "", !f.stored && f.Turns != "", format + ", whose later turns are always " + f.Turns},
		{"--turns", o.Turns != "", !f.stored && f.Turns == "" && t.Header.Turns == "", "a trace without sessions"},
		{"--clock-restart", o.ClockRestart != RestartRefuse, f.stored, format},
		{"--clock-restart", o.ClockRestart != RestartRefuse, !f.stored && t.Header.Wall, "wall-clock times"},
		{"--bad-lines", o.BadLines == Skip, f == containerFormat, format + ", which has no lines"},
	} {
		if c.given && c.ignored {
			t.report.Warnings = append(t.report.Warnings, c.flag+" does not apply to "+c.why+": ignored")
		}
	}
}

// Spans outside these bounds hint at a wrong unit of time.
const (
	shortSpan = time.Second
	longSpan  = 30 * 24 * time.Hour
)

// doubtSpan warns where the source's span makes its unit of time doubtful. Where
// turns have delays alone, the span is not known, but it is no less.
func (t *Trace) doubtSpan() {
	f := t.found.facts
	span := f.last - f.first
	var text string
	switch {
	case f.timed < 2 || span <= 0 || t.Format.Unit == 0 && !t.Format.stored:
		return
	case span < shortSpan && f.timed == f.rows:
		text = "the trace spans only " + span.String()
	case span > longSpan:
		text = fmt.Sprintf("the trace spans %.1f days", span.Hours()/24)
	default:
		return
	}
	hint := "--time-unit"
	if t.Format.stored {
		hint = "--time-unit where it was converted"
	}
	t.report.Warnings = append(t.report.Warnings, text+": check the unit of time ("+hint+")")
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
