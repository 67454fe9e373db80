package main

import (
	"fmt"

	"retrace/replay"
)

// fits says which flag does not go with the trace.
func (o *options) fits(plan *survey, cfg *replay.Config) error {
	if err := cfg.Placing.Law.Fits(cfg.Placing.Count); err != nil {
		return fmt.Errorf("--arrival %s: %w", cfg.Placing.Law.Name(), err)
	}
	return nil
}
