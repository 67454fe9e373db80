package replay

import (
	"errors"
	"fmt"
	"time"
)

// Overflow says what becomes of a request that is due while Config.MaxConcurrency
// others are served.
type Overflow string

// The policies of overflow.
const (
	Queue Overflow = "queue" // it waits in line; what frees slots lets the line catch up
	Shed  Overflow = "shed"  // it is not sent
)

// FailedTurn says what becomes of the turns that wait for one that brought no
// answer.
type FailedTurn string

// The policies of failed turns.
const (
	StopSession     FailedTurn = "stop"     // they are not sent
	ContinueSession FailedTurn = "continue" // they go on after its end
)

// Assistant says whose words later turns hold.
type Assistant string

// The kinds of assistant text.
const (
	RecordedAnswers Assistant = "recorded" // the trace's
	LiveAnswers     Assistant = "live"     // the server's own, of this run
)

// Load says how requests are let through, and what is sent beside the trace's.
// Zero values stand for the defaults that the fields name.
type Load struct {
	// Overflow is the policy of Config.MaxConcurrency; default Queue.
	Overflow Overflow
	// MaxDelay bounds the trace's delays, before Config.Speed divides them; 0 not
	// at all.
	MaxDelay time.Duration
	// FailedTurn is the policy where turns wait for others; default StopSession.
	FailedTurn FailedTurn
	// Assistant is whose words the later turns' chat bodies hold; LiveAnswers
	// needs closed sessions and literal prompts. Default RecordedAnswers.
	Assistant Assistant
	// WarmUp is how many requests are sent before the origin, shaped like the
	// first of the trace, with prompts that share nothing with the trace's.
	WarmUp int
	// ProbeRate is the rate, in requests a second, of probes beside the load: they
	// ask for one token, have prompts of their own, and no limit holds them back.
	ProbeRate float64
	// Retries is how often a request that the server or the network refused may be
	// made again; RetryMaxTime bounds the time from its first attempt to the
	// start of the last, default 1 min.
	Retries      int
	RetryMaxTime time.Duration
}

const defaultRetryMaxTime = time.Minute

// What comes beside the load is held in memory, or has results of its own: more
// of it would be another load.
const (
	MaxWarmUp    = 100_000
	MaxProbeRate = 10_000 // requests a second
)

func (l *Load) fill() {
	setDefault(&l.Overflow, Queue)
	setDefault(&l.FailedTurn, StopSession)
	setDefault(&l.Assistant, RecordedAnswers)
	setDefault(&l.RetryMaxTime, defaultRetryMaxTime)
}

// validateLoad says what of the arrivals and limits cannot be.
func (c *Config) validateLoad() error {
	l := &c.Load
	switch {
	case l.Overflow != "" && l.Overflow != Queue && l.Overflow != Shed:
		return fmt.Errorf("overflow %q: want queue or shed", l.Overflow)
	case l.Overflow == Shed && c.MaxConcurrency == 0:
		return errors.New("overflow shed: it needs a limit of concurrency")
	case l.FailedTurn != "" && l.FailedTurn != StopSession && l.FailedTurn != ContinueSession:
		return fmt.Errorf("failed turn %q: want stop or continue", l.FailedTurn)
	case l.Assistant != "" && l.Assistant != RecordedAnswers && l.Assistant != LiveAnswers:
		return fmt.Errorf("assistant %q: want recorded or live", l.Assistant)
	case l.Assistant == LiveAnswers && (c.Sessions == Open || c.Prompt != "" && c.Prompt != Literal):
		return errors.New("live answers need closed sessions and literal prompts")
	case l.MaxDelay < 0 || l.WarmUp < 0 || l.Retries < 0 || l.RetryMaxTime < 0:
		return errors.New("negative limit")
	case l.WarmUp > MaxWarmUp:
		return fmt.Errorf("warm-up of %d requests: want at most %d", l.WarmUp, MaxWarmUp)
	case !(l.ProbeRate >= 0 && l.ProbeRate <= MaxProbeRate):
		return fmt.Errorf("probe rate %v: want at most %d requests a second", l.ProbeRate, MaxProbeRate)
	}
	if err := c.Placing.Law.Validate(); err != nil {
		return err
	}
	return c.Placing.Law.Fits(c.Placing.Count)
}
