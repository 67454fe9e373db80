package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// measureMemory converts a large trace, sorted and not, and replays it from
// either form against a server that answers at once.
func measureMemory(ctx context.Context, o *options) error {
	fmt.Fprintf(o.stdout, "%d requests with 8 blocks each; this process had %.0f MiB at its start, below which no peak can be seen.\n\n",
		o.requests, mib(ownPeak()))
	fmt.Fprintln(o.stdout, "| what | input | peak RSS | wall | CPU | requests completed |")
	fmt.Fprintln(o.stdout, "| --- | --- | --- | --- | --- | --- |")
	for _, order := range []string{"sorted", "unsorted"} {
		if err := memoryOf(ctx, o, order); err != nil {
			return err
		}
	}
	return nil
}

// memoryOf measures one order of rows.
func memoryOf(ctx context.Context, o *options, order string) error {
	source := filepath.Join(o.scratch, order+".jsonl")
	trace := filepath.Join(o.scratch, order+".trace")
	err := writeRows(source, o.requests, func(i int) row {
		if order == "unsorted" {
			i = shuffled(i, o.requests)
		}
		return wideRow(i, o.memoryRate)
	})
	if err != nil {
		return err
	}
	from := []string{"--from", "mooncake", "--time-unit", "us", "--block-size", "16"}
	u, err := child(ctx, o, "trace-convert", append([]string{source, "-o", trace}, from...)...)
	if err != nil {
		return err
	}
	memoryRow(o, "trace-convert", order+" JSONL of "+size(source), u, "")
	if err := memoryReplay(ctx, o, order+" JSONL", append([]string{source}, from...)); err != nil {
		return err
	}
	if err := memoryReplay(ctx, o, ".trace of "+size(trace), []string{trace}); err != nil {
		return err
	}
	return errors.Join(os.Remove(source), os.Remove(trace))
}

// memoryReplay replays the input with a recording.
func memoryReplay(ctx context.Context, o *options, input string, args []string) error {
	s, err := startServer(ctx, o)
	if err != nil {
		return err
	}
	defer s.stop()
	rec := filepath.Join(o.scratch, "memory.rec")
	args = append(args, "--url", s.url, "-o", rec, "--force", "--json")
	u, err := child(ctx, o, "trace-replay", args...)
	if err != nil {
		return err
	}
	sum, err := readSummary(u.stdout)
	if err != nil {
		return err
	}
	memoryRow(o, "trace-replay", input, u, fmt.Sprintf("%d of %d", sum.Requests.Completed, sum.Requests.Total))
	return nil
}

// memoryRow prints a row of the table.
func memoryRow(o *options, what, input string, u usage, requests string) {
	fmt.Fprintf(o.stdout, "| %s | %s | %.0f MiB | %.1f s | %.1f s | %s |\n",
		what, input, mib(u.rss), u.wall.Seconds(), u.cpu.Seconds(), requests)
}

// mib is a number of bytes in MiB.
func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// size is a file's size for reading.
func size(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "unknown size"
	}
	if n := info.Size(); n < 1<<20 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	return fmt.Sprintf("%.1f MB", float64(info.Size())/1e6)
}

// ownPeak is this process's peak resident set so far. Linux hands it on to
// children, which share their parent's memory until they run their own program.
func ownPeak() int64 {
	r := ownUsage()
	return peakOf(&r)
}

// ownCPU is the CPU time of this process so far.
func ownCPU() time.Duration {
	r := ownUsage()
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// ownUsage is what the kernel says of this process.
func ownUsage() (r syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return syscall.Rusage{}
	}
	return r
}
