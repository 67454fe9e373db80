//go:build !linux

package replay

import "time"

// fineTimer exists on Linux alone; elsewhere Go's timers must do.
type fineTimer struct{}

func newFineTimer() *fineTimer { return nil }

func (*fineTimer) set(time.Duration) bool { return false }

func (*fineTimer) wait() {}

func (*fineTimer) interrupt() {}

func (*fineTimer) close() {}
