package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// toolRequests is how many short requests AIPerf and vllm bench make, and
	// toolFirst how many in the run that shows what their start costs.
	toolRequests, toolFirst = 10_000, 500
	// toolLimit ends a run of theirs.
	toolLimit = 5 * time.Minute
	// snapshot stands for a commit in the layout of Hugging Face's cache.
	snapshot = "0000000000000000000000000000000000000001"
)

// tool is a client in Python, which measures itself.
type tool struct {
	name, path string
	args       func(source, url, result string, block, short int) []string
	result     string // what it writes of itself, in the folder result
}

// tools are those that were given, or not.
func tools(o *options) []tool {
	model := filepath.Join(o.scratch, "hub", "models--bench--tokenizer", "snapshots", snapshot)
	return []tool{
		{"aiperf", o.aiperf, func(source, url, result string, block, short int) []string {
			args := []string{"profile", "-m", "m", "--url", url, "--endpoint-type", "completions", "--streaming", "--tokenizer", "bench/tokenizer",
				"--ui", "none", "--no-gpu-telemetry", "--no-server-metrics", "--export-level", "summary", "--artifact-dir", result}
			if short > 0 {
				return append(args, "--concurrency", strconv.Itoa(peerConnections), "--request-count", strconv.Itoa(short),
					"--isl", "16", "--isl-stddev", "0", "--osl", "4")
			}
			return append(args, "--input-file", source, "--custom-dataset-type", "mooncake_trace", "--isl-block-size", strconv.Itoa(block), "--fixed-schedule")
		}, "profile_export_aiperf.json"},
		{"vllm", o.vllm, func(source, url, result string, block, short int) []string {
			args := []string{"bench", "serve", "--backend", "openai", "--base-url", url, "--endpoint", "/v1/completions", "--model", "m",
				"--served-model-name", "m", "--tokenizer", model, "--dataset-name", "timed_trace", "--dataset-path", source, "--self-timed",
				"--timed-trace-chunk-hash-size", strconv.Itoa(block), "--timed-trace-sec-multiplier", "0.001",
				"--ignore-eos", "--disable-tqdm", "--save-result", "--result-dir", result, "--result-filename", "result.json"}
			if short > 0 {
				return append(args, "--num-prompts", strconv.Itoa(short), "--max-concurrency", strconv.Itoa(peerConnections))
			}
			return append(args, "--num-prompts", "1000000") // it sends what there is
		}, "result.json"},
	}
}

// layTokenizer puts the tokenizer where the tools look for it.
func layTokenizer(o *options) error {
	text, err := os.ReadFile(o.tokenizer)
	if err != nil {
		return fmt.Errorf("--tokenizer: %w", err)
	}
	base := filepath.Join(o.scratch, "hub", "models--bench--tokenizer")
	for name, text := range map[string][]byte{
		"refs/main": []byte(snapshot),
		"snapshots/" + snapshot + "/tokenizer.json":        text,
		"snapshots/" + snapshot + "/config.json":           []byte(`{"model_type":"qwen2"}`),
		"snapshots/" + snapshot + "/tokenizer_config.json": []byte(`{"tokenizer_class":"PreTrainedTokenizerFast"}`),
	} {
		path := filepath.Join(base, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			return fmt.Errorf("lay out the tokenizer: %w", err)
		}
	}
	return nil
}

// command is a run of the tool in a process group of its own, without a cache
// of earlier ones; after the limit the whole group is ended.
func (t tool) command(ctx context.Context, o *options, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.path, args...)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "HF_HUB_CACHE="+filepath.Join(o.scratch, "hub"), "HOME="+o.scratch,
		"CUDA_VISIBLE_DEVICES=", "PYTHONHASHSEED=0", "VLLM_HOST_IP=127.0.0.1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// burst makes short requests twice, a few and many, so that the difference of
// CPU time is that of the requests alone. The rate is the tool's own word.
func (t tool) burst(ctx context.Context, o *options, source, url string) (rate, cpu float64, err error) {
	if err := layTokenizer(o); err != nil {
		return 0, 0, err
	}
	var used [2]time.Duration
	for i, n := range []int{toolFirst, toolRequests} {
		dir := filepath.Join(o.scratch, t.name)
		limited, cancel := context.WithTimeout(ctx, toolLimit)
		cmd := t.command(limited, o, t.args(source, url, dir, 16, n))
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			return 0, 0, fmt.Errorf("run %s: %w\n%s", t.name, err, out)
		}
		used[i] = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		text, err := os.ReadFile(filepath.Join(dir, t.result))
		if err == nil {
			rate, err = toolRate(text)
		}
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return 0, 0, fmt.Errorf("read the result of %s: %w", t.name, err)
		}
	}
	return rate, (used[1] - used[0]).Seconds() / (toolRequests - toolFirst), nil
}

// toolRate reads the rate of requests: a number of vllm bench, an object with
// its avg of AIPerf.
func toolRate(text []byte) (float64, error) {
	var s struct {
		Rate json.RawMessage `json:"request_throughput"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, fmt.Errorf("read JSON: %w", err)
	}
	var rate float64
	if json.Unmarshal(s.Rate, &rate) == nil && rate > 0 {
		return rate, nil
	}
	var avg struct{ Avg float64 }
	if err := json.Unmarshal(s.Rate, &avg); err != nil || avg.Avg <= 0 {
		return 0, fmt.Errorf("found request_throughput %s, want a number above 0 or an object with avg", s.Rate)
	}
	return avg.Avg, nil
}

// runTool runs cmd to its end, or to the limit, and gives the peak of the
// memory of its whole group, looked at every half second.
func runTool(cmd *exec.Cmd) (peak int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
			return peak, err
		case <-tick.C:
			peak = max(peak, groupMemory(cmd.Process.Pid))
		}
	}
}

// groupMemory is the memory of a process group on Linux, a page that several
// share counted once (Pss); 0 elsewhere.
func groupMemory(group int) (sum int64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil || groupOf(stat) != group {
			continue // it has ended, or is another's
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
				kib, _ := strconv.ParseInt(f[1], 10, 64) // the kernel wrote it
				sum += kib << 10
			}
		}
	}
	return sum
}

// groupOf reads the process group from /proc/PID/stat: the third field after
// the name, which may have blanks and brackets.
func groupOf(stat []byte) int {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 3 {
		return 0
	}
	group, _ := strconv.Atoi(string(f[2])) // the kernel wrote it
	return group
}

// quicker writes the trace with its timestamps divided by speed, in whole ms.
func quicker(source, path string, speed float64) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		var r map[string]json.RawMessage
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read the trace: %w", err)
		}
		at, err := strconv.ParseFloat(string(r["timestamp"]), 64)
		if err != nil {
			return fmt.Errorf("read the trace: %w", err)
		}
		r["timestamp"] = strconv.AppendInt(nil, int64(at/speed), 10)
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("write the trace: %w", err)
		}
		out.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

// toolSchedule is the row of a tool in the table of schedule.
func toolSchedule(ctx context.Context, o *options, t tool, source string, list []sending) error {
	if t.path == "" {
		fmt.Fprintf(o.stdout, "| %s | not given (`--%s PATH`) | | | | | |\n", t.name, t.name)
		return nil
	}
	if err := layTokenizer(o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	s, path, err := startInstant(context.WithoutCancel(ctx), o)
	if err != nil {
		return err
	}
	cmd := t.command(ctx, o, t.args(source, s.url, filepath.Join(o.scratch, t.name), 512, 0))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	most, err := runTool(cmd)
	s.stop()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("run %s: %w\n%s", t.name, err, out.Bytes())
	}
	stamps, err := readStamps(path)
	if err != nil {
		return err
	}
	if len(stamps) == 0 || len(stamps) > len(list) {
		fmt.Fprintf(o.stdout, "| %s | %d in %v | | | | | %.0f MiB |\n", t.name, len(stamps), time.Since(start).Round(time.Second), mib(most))
		return nil
	}
	late := lateness(stamps, list)
	fmt.Fprintf(o.stdout, "| %s | %d of %d | %.2f | %.2f | %.2f | %.2f | %.0f MiB |\n", t.name, len(stamps), len(list), float64(stamps[0]-start.UnixNano())/1e9,
		late[len(late)/2], late[len(late)*99/100], late[len(late)-1], mib(most))
	return nil
}
