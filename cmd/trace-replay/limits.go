package main

import (
	"golang.org/x/sys/unix"
)

// spareDescriptors are those that a run needs beside its connections.
const spareDescriptors = 32

// checkDescriptors warns where the process may run out of file descriptors. Go
// has raised the soft limit to the hard one at start.
func (c *command) checkDescriptors(plan *survey) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	need := connections(plan.requests, c.o) + spareDescriptors
	if uint64(need) > limit.Cur {
		c.warn("may need about %d file descriptors, the limit is %d: raise it (ulimit -n), or lower --max-concurrency or --max-in-flight",
			need, limit.Cur)
	}
}

// connections is the most that a run can have open. The built-in server has
// the other end of each in the same process.
func connections(planned int64, o *options) int64 {
	n := min(planned, int64(o.inFlight))
	if o.maxConcurrency > 0 {
		n = min(n, int64(o.maxConcurrency))
	}
	if oneOf(sim, o.urls...) {
		n *= 2
	}
	return n
}
