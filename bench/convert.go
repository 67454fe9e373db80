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
	var ours, theirs, back []float64
	for range o.rounds {
		for range passes {
			start := time.Now()
			if err := convert(source, trace); err != nil {
				return err
			}
			ours = append(ours, time.Since(start).Seconds())
		}
		parsed, err := parsePython(ctx, o, source)
		if err != nil {
			return err
		}
		theirs = append(theirs, parsed...)
		for range passes {
			start := time.Now()
			if err := readBack(trace); err != nil {
				return err
			}
			back = append(back, time.Since(start).Seconds())
		}
	}
	whole, err := child(ctx, o, "trace-convert", source, "-o", filepath.Join(o.scratch, "whole.trace"))
	if err != nil {
		return err
	}
	rate := func(seconds []float64) float64 { return float64(info.Size()) / 1e6 / median(seconds) }
	fmt.Fprintf(o.stdout, "%s, %d bytes; one core; medians of %d passes in %d alternating rounds.\n\n", what, info.Size(), len(ours), o.rounds)
	fmt.Fprintf(o.stdout, "| what | result |\n| --- | --- |\n")
	fmt.Fprintf(o.stdout, "| convert to `.trace`, each chunk verified | %.0f MB/s |\n", rate(ours))
	if len(theirs) > 0 {
		fmt.Fprintf(o.stdout, "| Python's `orjson` parses the same lines | %.0f MB/s |\n", rate(theirs))
		fmt.Fprintf(o.stdout, "| ratio | %.2f |\n", rate(ours)/rate(theirs))
	} else {
		fmt.Fprintf(o.stdout, "| Python's `orjson` parses the same lines | `%s` has no orjson |\n", o.python)
	}
	fmt.Fprintf(o.stdout, "| the whole command `trace-convert`, its start included | %.1f ms, %.1f ms of CPU |\n",
		whole.wall.Seconds()*1e3, whole.cpu.Seconds()*1e3)
	fmt.Fprintf(o.stdout, "| size of the `.trace` | %s |\n", size(trace))
	fmt.Fprintf(o.stdout, "| read back into requests | %.0f MB/s of JSONL |\n", rate(back))
	return nil
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
func convert(source, trace string) (err error) {
	in, err := formats.Open([]string{source}, formats.Options{})
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := record.Create(trace, in.Header)
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	for r, err := range in.Requests() {
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		if err := out.WriteRequest(&r); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
	}
	if err := out.Close(record.Footer{}); err != nil {
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

// parsePython is how many seconds each pass of orjson took; none where Python
// has no orjson.
func parsePython(ctx context.Context, o *options, source string) ([]float64, error) {
	if exec.CommandContext(ctx, o.python, "-c", "import orjson").Run() != nil {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, o.python, "-", source, strconv.Itoa(passes))
	cmd.Stdin = strings.NewReader(parseScript)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("parse with orjson: %w\n%s", err, errs.Bytes())
	}
	var seconds []float64
	for line := range strings.FieldsSeq(string(out)) {
		s, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return nil, fmt.Errorf("parse with orjson: %w", err)
		}
		seconds = append(seconds, s)
	}
	return seconds, nil
}
