package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// usage is what a child took.
type usage struct {
	wall, cpu time.Duration
	// rss is the peak resident set in bytes.
	rss int64
	// exit is the exit status.
	exit           int
	stdout, stderr []byte
}

// build compiles the commands, if any, in their own module.
func build(ctx context.Context, o *options, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "retrace")
	list.Stderr = o.stderr
	root, err := list.Output()
	if err != nil {
		return fmt.Errorf("find the commands: %w", err)
	}
	args := []string{"build", "-o", o.bin + string(filepath.Separator)}
	for _, name := range commands {
		args = append(args, "./cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = o.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the commands: %w", err)
	}
	return nil
}

// child runs a command to its end. A status of 3 or 4 (losses, a limit
// broken) is no error here: the caller looks at what it printed.
func child(ctx context.Context, o *options, name string, args ...string) (usage, error) {
	return childIn(ctx, o, nil, name, args...)
}

// childIn is child with variables added to its environment.
func childIn(ctx context.Context, o *options, env []string, name string, args ...string) (usage, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(o.bin, name), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, append(os.Environ(), env...)
	start := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(start), stdout: out.Bytes(), stderr: errs.Bytes()}
	if state := cmd.ProcessState; state != nil {
		u.exit, u.cpu, u.rss = state.ExitCode(), state.UserTime()+state.SystemTime(), peak(state)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && (u.exit == 3 || u.exit == 4) {
		err = nil
	}
	if err != nil {
		return u, fmt.Errorf("run %s %s: %w\n%s", name, strings.Join(args, " "), err, errs.Bytes())
	}
	return u, nil
}

// peak is the peak resident set of a process that has ended.
func peak(state *os.ProcessState) int64 {
	r, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return peakOf(r)
}

// peakOf is the peak resident set in bytes; Linux counts it in KiB.
func peakOf(r *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return r.Maxrss
	}
	return r.Maxrss * 1024
}

// server is a running trace-sim.
type server struct {
	url string
	cmd *exec.Cmd
}

// startServer starts a trace-sim that answers at once, on a free port, and
// waits until it says where it listens.
func startServer(ctx context.Context, o *options) (*server, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(o.bin, "trace-sim"), "--listen", "127.0.0.1:0",
		"--prefill-tokens-per-s", "0", "--decode-step", "0", "--block-size", "16")
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start trace-sim: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start trace-sim: %w", err)
	}
	s := &server{cmd: cmd}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, found := strings.Cut(lines.Text(), "ready on "); found {
			s.url, _, _ = strings.Cut(rest, " ")
			go io.Copy(io.Discard, out) //nolint:errcheck // ends with the process
			return s, nil
		}
	}
	s.stop()
	return nil, errors.New("start trace-sim: it did not say that it was ready")
}

// stop ends the server.
func (s *server) stop() {
	if s.cmd.Process.Signal(syscall.SIGTERM) != nil {
		s.cmd.Process.Kill() //nolint:errcheck // it has ended
	}
	s.cmd.Wait() //nolint:errcheck // it was told to end
}

// machine describes where this runs.
func machine() string {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(info), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			model = strings.TrimSpace(strings.TrimLeft(line, "\t :"))
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s.", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
