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
	// delayOnly counts turns that have a delay and no time of their own,
	// timedTurns later turns that have one.
	delayOnly, timedTurns int64
	arrivals              int64 // requests with a time of their own
}

func newSurvey() *survey { return &survey{byAPI: map[string]int64{}} }

// lookEvery is how many requests lie between two looks at an interruption.
const lookEvery = 4096

// look reads the trace once.
func look(reqs iter.Seq2[record.Request, error], stop func() bool) (*survey, error) {
	s := newSurvey()
	seen := map[string]struct{}{}
	for r, err := range reqs {
		if err != nil {
			return nil, err
		}
		s.add(&r, seen)
		if s.requests%lookEvery == 0 && stop() {
			return s, errInterrupted
		}
	}
	s.sessions = int64(len(seen))
	return s, nil
}

func (s *survey) add(r *record.Request, seen map[string]struct{}) {
	s.requests++
	later := r.Turn > 1 || r.Parent != ""
	if r.Session != "" {
		if _, known := seen[r.Session]; known {
			later = true
		}
		seen[r.Session] = struct{}{}
	}
	if r.Arrival != record.NoTime {
		if !s.timed {
			s.first, s.last, s.timed = r.Arrival, r.Arrival, true
		}
		s.first, s.last = min(s.first, r.Arrival), max(s.last, r.Arrival)
		s.arrivals++
		if later {
			s.timedTurns++
		}
	} else if r.Delay != record.NoTime {
		s.delayOnly++
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
			if api == "" {
				api = string(cfg.API)
			}
			all[api] += n
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
		to := api
		if to == "" {
			to = string(cfg.API)
		}
		part := plural.Of(s.byAPI[api], "body") + " to " + to
		if !replay.Replays(openai.API(to)) {
			part += " (an API that is not replayed: not sent)"
		}
		parts = append(parts, part)
	}
	if rest := s.requests - with; rest > 0 {
		made := replay.Tokens
		if cfg.API == openai.Chat {
			made = replay.Text
		}
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
