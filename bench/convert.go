package main

import (
	"bytes"
	"context"
	_ "embed" // the Python to compare with
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"retrace/formats"
	"retrace/record"
)

//go:embed parse.py
var parseScript string

// passes is how often each side goes over the file in one round.
const passes = 5

// measureConvert converts the conversation trace in this process, on one core,
// in turns with Python's parse of the same lines; then reads the result back.
func measureConvert(ctx context.Context, o *options) error {
	source, what, err := conversation(o)
	if err != nil {
		return err
	}
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("find the trace: %w", err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	trace := filepath.Join(o.scratch, "conversation.trace")
	var ours, theirs, back timings
	for range o.rounds {
		if err := ours.repeat(func() error { return convert(source, trace) }); err != nil {
			return err
		}
		if err := theirs.parsePython(ctx, o, source); err != nil {
			return err
		}
		if err := back.repeat(func() error { return readBack(trace) }); err != nil {
			return err
		}
	}
	whole, err := child(ctx, o, "trace-convert", source, "-o", filepath.Join(o.scratch, "whole.trace"))
	if err != nil {
		return err
	}
	fmt.Fprintf(o.stdout, "%s, %d bytes; one core; medians of %d passes in %d alternating rounds.\n\n", what, info.Size(), len(ours.wall), o.rounds)
	fmt.Fprintf(o.stdout, "| what | by the clock | by CPU time |\n| --- | --- | --- |\n")
	fmt.Fprintf(o.stdout, "| convert to `.trace`, each chunk verified | %s |\n", ours.rates(info.Size()))
	if len(theirs.wall) > 0 {
		fmt.Fprintf(o.stdout, "| Python's `orjson` parses the same lines | %s |\n", theirs.rates(info.Size()))
		fmt.Fprintf(o.stdout, "| ratio | %.2f | %.2f |\n", median(theirs.wall)/median(ours.wall), median(theirs.cpu)/median(ours.cpu))
	} else {
		fmt.Fprintf(o.stdout, "| Python's `orjson` parses the same lines | `%s` has no orjson | |\n", o.python)
	}
	fmt.Fprintf(o.stdout, "| read the `.trace` back into requests, as JSONL | %s |\n", back.rates(info.Size()))
	fmt.Fprintf(o.stdout, "| the whole command `trace-convert`, its start included | %.1f ms | %.1f ms |\n",
		whole.wall.Seconds()*1e3, whole.cpu.Seconds()*1e3)
	fmt.Fprintf(o.stdout, "\nThe `.trace` has %s.\n", size(trace))
	return nil
}

// timings are the seconds that passes took: by the clock, and of CPU time.
type timings struct{ wall, cpu []float64 }

// repeat makes the passes of one round.
func (t *timings) repeat(f func() error) error {
	for range passes {
		start, cpu := time.Now(), ownCPU()
		if err := f(); err != nil {
			return err
		}
		t.wall = append(t.wall, time.Since(start).Seconds())
		t.cpu = append(t.cpu, (ownCPU() - cpu).Seconds())
	}
	return nil
}

// rates are the median speeds over a file of so many bytes, as two cells.
func (t *timings) rates(bytes int64) string {
	mb := float64(bytes) / 1e6
	return fmt.Sprintf("%.0f MB/s | %.0f MB/s", mb/median(t.wall), mb/median(t.cpu))
}

// conversation is the Mooncake conversation trace, or one made in its place.
func conversation(o *options) (path, what string, err error) {
	if _, err := os.Stat(o.data); err == nil {
		return o.data, "The Mooncake conversation trace", nil
	}
	path = filepath.Join(o.scratch, "conversation.jsonl")
	return path, "A made trace, as the real one is not at " + o.data, writeRows(path, 12031, conversationRows(1))
}

// convert does what trace-convert does.
func convert(source, trace string) error {
	if _, err := formats.Convert([]string{source}, formats.Options{}, formats.Target{Path: trace}); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	return nil
}

// readBack reads every request of a trace.
func readBack(trace string) (err error) {
	in, err := record.Open(trace)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for _, err := range in.Requests() {
		if err != nil {
			return fmt.Errorf("read back: %w", err)
		}
	}
	return nil
}

// parsePython adds the passes that orjson made; none where Python has no orjson.
func (t *timings) parsePython(ctx context.Context, o *options, source string) error {
	if exec.CommandContext(ctx, o.python, "-c", "import orjson").Run() != nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, o.python, "-", source, strconv.Itoa(passes))
	cmd.Stdin = strings.NewReader(parseScript)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("parse with orjson: %w\n%s", err, errs.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		var wall, cpu float64
		if _, err := fmt.Sscan(line, &wall, &cpu); err != nil {
			return fmt.Errorf("parse with orjson: read %q: %w", line, err)
		}
		t.wall, t.cpu = append(t.wall, wall), append(t.cpu, cpu)
	}
	return nil
}
