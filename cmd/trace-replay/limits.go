package main

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"retrace/replay"
)

// spareDescriptors are those that a run needs beside its connections.
const spareDescriptors = 32

// portRange is where Linux tells which ports it gives to clients.
const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

// checkLimits warns where the process may run out of what connections take: a
// request that meets such a limit fails by the class client_limit.
func (c *command) checkLimits(plan *survey) {
	need := connections(plan.requests, c.o)
	if limit, ok := descriptorLimit(); ok && uint64(need)+spareDescriptors > limit {
		c.warn("the run needs about %d file descriptors at most, limit %d: raise it (ulimit -n), or lower --max-concurrency or --max-in-flight",
			need+spareDescriptors, limit)
	}
	// Ports are counted for each server's address apart.
	perServer := (need + int64(len(c.o.urls)) - 1) / int64(max(len(c.o.urls), 1))
	if limit, ok := clientPorts(portRange); ok && perServer > limit {
		c.warn("the run needs about %d ports to one server at most, limit %d: widen net.ipv4.ip_local_port_range, or lower --max-concurrency or --max-in-flight",
			perServer, limit)
	}
}

// descriptorLimit is the number of file descriptors that the process may have.
// Go has raised the soft limit to the hard one at start.
func descriptorLimit() (uint64, bool) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	return limit.Cur, true
}

// clientPorts is how many ports there are for connections to one address, where
// the system tells it in the file at path: the first and the last.
func clientPorts(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	var first, last int64
	if _, err := fmt.Sscan(string(b), &first, &last); err != nil || first < 0 || last < first || last > 1<<16 {
		return 0, false
	}
	return last - first + 1, true
}

// connections is the most that a run can have open. The built-in server has
// the other end of each in the same process.
func connections(planned int64, o *options) int64 {
	n := min(planned, int64(o.inFlight))
	if o.maxConcurrency > 0 {
		n = min(n, int64(o.maxConcurrency))
	}
	n += int64(math.Ceil(min(o.load.probeRate*o.timeout.Seconds(), replay.MaxProbes)))
	if oneOf(sim, o.urls...) {
		n *= 2
	}
	return n
}
