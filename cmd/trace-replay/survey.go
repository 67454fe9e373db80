package main

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrace/internal/plural"
	"retrace/openai"
	"retrace/record"
	"retrace/replay"
)

// survey is what a first look at the selected requests tells: the plan.
type survey struct {
	requests, sessions      int64
	first, last             time.Duration
	timed                   bool
	input, output           int64
	inputUnknown, outputNot int64
	zero, increments        int64
	byAPI                   map[string]int64 // bodies
	arrivals                int64            // requests with a time of their own
	whole                   whole
}

func newSurvey() *survey { return &survey{byAPI: map[string]int64{}} }

// whole is what all shards of a trace must agree on.
type whole struct {
	// delayOnly counts turns that have a delay and no time of their own, arrivals
	// requests with a time, heads those that begin a session, moves the others
	// that have a time.
	delayOnly, timedTurns, arrivals, heads, moves int64
	// requests counts all, delays those that have one.
	requests, delays int64
}

func (w *whole) add(r *record.Request, head, later bool) {
	w.requests++
	if r.Delay != record.NoTime {
		w.delays++
	}
	if head {
		w.heads++
	}
	switch {
	case r.Arrival != record.NoTime:
		w.arrivals++
		if later {
			w.timedTurns++
		}
		if !head {
			w.moves++
		}
	case r.Delay != record.NoTime:
		w.delayOnly++
	}
}

// settle decides the mode of sessions, and how many requests an arrival law places.
func (w *whole) settle(cfg *replay.Config) {
	if cfg.Sessions == "" {
		cfg.Sessions = replay.Open
		if w.delayOnly > 0 && w.timedTurns == 0 {
			cfg.Sessions = replay.Closed
		}
	}
	cfg.Placing.Count = w.arrivals
	if cfg.Sessions == replay.Closed {
		cfg.Placing.Count, cfg.Placing.Moves = w.heads, w.moves > 0
	}
}

// retime takes the times anew, as the arrival law has them.
func (s *survey) retime(reqs iter.Seq2[record.Request, error], stop func() bool) error {
	s.timed, s.arrivals, s.first, s.last = false, 0, 0, 0
	n := 0
	for r, err := range reqs {
		if err != nil {
			return err
		}
		if r.Arrival != record.NoTime {
			s.time(r.Arrival)
		}
		if n++; n%lookEvery == 0 && stop() {
			return errInterrupted
		}
	}
	return nil
}

func (s *survey) time(at time.Duration) {
	if !s.timed {
		s.first, s.last, s.timed = at, at, true
	}
	s.first, s.last = min(s.first, at), max(s.last, at)
	s.arrivals++
}

// lookEvery is how many requests lie between two looks at an interruption.
const lookEvery = 4096

// look reads the trace once: all of it for what the shards must agree on, the
// configured shard for the rest.
func look(reqs iter.Seq2[record.Request, error], cfg *replay.Config, stop func() bool) (*survey, error) {
	s := newSurvey()
	heads := replay.NewHeads()
	n := 0
	for r, err := range reqs {
		if err != nil {
			return nil, err
		}
		head := heads.Add(&r)
		later := !head || r.Turn > 1 || r.Parent != ""
		s.whole.add(&r, head, later)
		if record.ShardOf(&r, cfg.Shards) == cfg.Shard {
			if head && r.Session != "" {
				s.sessions++
			}
			s.add(&r, later)
		}
		if n++; n%lookEvery == 0 && stop() {
			return s, errInterrupted
		}
	}
	return s, nil
}

func (s *survey) add(r *record.Request, later bool) {
	s.requests++
	if r.Arrival != record.NoTime {
		s.time(r.Arrival)
	}
	s.input += max(r.InputTokens, 0)
	s.output += max(r.OutputTokens, 0)
	if r.InputTokens == record.Unknown && r.Body == nil {
		s.inputUnknown++
	}
	if r.OutputTokens == record.Unknown {
		s.outputNot++
	}
	if r.Body != nil {
		s.byAPI[r.API]++
	}
	if r.Increment && later {
		s.increments++
	}
	if r.OutputTokens == 0 || r.Observed.Failed {
		s.zero++
	}
}

// mean is the plan's rate, requests with an arrival / (last − first arrival), in
// requests a second of the trace's time; 0 where it has no span.
func (s *survey) mean() float64 {
	if s.last <= s.first {
		return 0
	}
	return float64(s.arrivals) / (s.last - s.first).Seconds()
}

// print writes the plan.
func (s *survey) print(w io.Writer, o *options, cfg *replay.Config) {
	fmt.Fprintf(w, "plan: %s", plural.Of(s.requests, "request"))
	if s.sessions > 0 {
		fmt.Fprintf(w, " in %s (%s)", plural.Of(s.sessions, "session"), cfg.Sessions)
	}
	speed := ""
	if cfg.Speed != 1 {
		speed = fmt.Sprintf(" at speed %g", cfg.Speed)
	}
	if s.timed {
		scale := func(d time.Duration) time.Duration {
			return time.Duration(float64(d) / cfg.Speed).Round(time.Millisecond)
		}
		fmt.Fprintf(w, ", first at %v, last at %v (span %v%s)", scale(s.first), scale(s.last), scale(s.last-s.first), speed)
	}
	if rate := s.mean(); rate > 0 {
		fmt.Fprintf(w, ", %s requests/s", perSecond(rate*cfg.Speed))
	}
	if cfg.Placing.Law.Replaces() {
		what := "requests"
		if cfg.Sessions == replay.Closed {
			what = "first turns of sessions"
		}
		fmt.Fprintf(w, "\nplan: %s arrive by law: %v, seed %d", what, cfg.Placing.Law, cfg.Seed)
	}
	fmt.Fprintf(w, "\nplan: %s", plural.Of(s.input, "input token"))
	if s.inputUnknown > 0 {
		fmt.Fprintf(w, " (unknown for %s)", plural.Of(s.inputUnknown, "request"))
	}
	fmt.Fprintf(w, ", %s", plural.Of(s.output, "output token"))
	if s.outputNot > 0 {
		fmt.Fprintf(w, " (unknown for %s)", plural.Of(s.outputNot, "request"))
	}
	fmt.Fprintf(w, "\nplan: %s", s.prompts(cfg))
	if s.zero > 0 {
		fmt.Fprintf(w, "; %d without output at the source (--zero-output %s)", s.zero, o.zeroOutput)
	}
	fmt.Fprintln(w)
}

// bodies is the number of requests that have one.
func (s *survey) bodies() (n int64) {
	for _, of := range s.byAPI {
		n += of
	}
	return n
}

// apis counts the requests by the API that they go to.
func (s *survey) apis(cfg *replay.Config) map[string]int64 {
	all := map[string]int64{}
	generated := s.requests
	if cfg.Prompt == replay.Literal {
		for api, n := range s.byAPI {
			all[string(replay.Destination(cfg.API, openai.API(api)))] += n
			generated -= n
		}
	}
	if generated > 0 {
		all[string(cfg.API)] += generated
	}
	return all
}

// apiNames are those of apis, in one word.
func (s *survey) apiNames(cfg *replay.Config) string {
	return strings.Join(slices.Sorted(maps.Keys(s.apis(cfg))), ",")
}

// prompts says what is sent where.
func (s *survey) prompts(cfg *replay.Config) string {
	with := s.bodies()
	if cfg.Prompt != replay.Literal {
		text := fmt.Sprintf("%s prompts to %s", cfg.Prompt, cfg.API)
		if with > 0 {
			text += fmt.Sprintf(", %s not used", plural.Of(with, "body"))
		}
		return text
	}
	var parts []string
	for _, api := range slices.Sorted(maps.Keys(s.byAPI)) {
		to := replay.Destination(cfg.API, openai.API(api))
		part := plural.Of(s.byAPI[api], "body") + " to " + string(to)
		if api != "" && string(to) != api {
			part = plural.Of(s.byAPI[api], "body") + " of " + api + " to " + string(to)
		}
		if !replay.Replays(to) {
			part += " (an API that is not replayed: not sent)"
		}
		parts = append(parts, part)
	}
	if rest := s.requests - with; rest > 0 {
		made := replay.DefaultPrompt(cfg.API)
		parts = append(parts, fmt.Sprintf("%s without a body: %s prompts to %s", plural.Of(rest, "request"), made, cfg.API))
	}
	return "literal prompts: " + strings.Join(parts, ", ")
}

// perSecond is a rate to three digits, or to the unit where it has more.
func perSecond(rate float64) string {
	if rate >= 100 {
		return strconv.FormatFloat(rate, 'f', 0, 64)
	}
	return strconv.FormatFloat(rate, 'g', 3, 64)
}
