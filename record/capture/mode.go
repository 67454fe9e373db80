package capture

import (
	"fmt"

	"retrace/record"
)

// Mode says what is kept.
type Mode string

// The modes.
const (
	// Lengths keeps shapes and times alone.
	Lengths Mode = "lengths"
	// Blocks keeps also which prompts share their first blocks.
	Blocks Mode = "blocks"
	// Full keeps bodies and names too.
	Full Mode = "full"
)

// ParseMode reads the name of a mode.
func ParseMode(name string) (Mode, error) {
	switch m := Mode(name); m {
	case Lengths, Blocks, Full:
		return m, nil
	}
	return "", fmt.Errorf("capture: found %q, expected %s, %s or %s", name, Lengths, Blocks, Full)
}

// Strip takes out of a request what the mode does not keep: bodies, what the
// source had beyond the model, references to media; of the names of requests and
// sessions it leaves their hashes, which are equal where the names are.
func (m Mode) Strip(r *record.Request, s Salt) {
	if m == Full {
		return
	}
	r.Body, r.Extra, r.Exceptions = nil, nil, nil
	r.ID, r.Parent = s.Identity("request", r.ID), s.Identity("request", r.Parent)
	r.Session = s.Identity("session", r.Session)
	for i := range r.Media {
		r.Media[i].Ref = ""
	}
	if m == Lengths {
		r.Blocks = nil
	}
}
