package retrace_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// example is one "$ command" of a console block with the output shown below it.
type example struct {
	line    int
	command string
	output  string
}

// TestREADME runs every "$ command" of the README's console blocks, in order
// and in one folder, and compares what it prints with what the README shows.
// What a run measures differs from one run to the next, so the numbers of a
// replay and of its recording are compared as "a number"; all others must be as
// shown. A line "…" stands for any lines.
func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the README's commands, which replay on schedule")
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := consoleExamples(string(page))
	if len(examples) < 6 {
		t.Fatalf("found %d examples in README.md, expected at least 6", len(examples))
	}
	sh := newShell(t)
	for _, ex := range examples {
		t.Logf("README.md:%d: $ %s", ex.line, ex.command)
		got := sh.run(t, ex.command)
		if ok, diff := matches(ex.output, got, measures(ex.command)); !ok {
			t.Errorf("README.md:%d: $ %s\n(-README +printed)\n%s\nprinted in full:\n%s", ex.line, ex.command, diff, got)
		}
	}
}

// measures says that a command prints what a run measured.
func measures(command string) bool {
	return strings.Contains(command, ".rec")
}

// consoleExamples takes the console blocks of a Markdown page apart.
func consoleExamples(page string) []example {
	var all []example
	inside := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside:
		case strings.HasPrefix(line, "$ "):
			all = append(all, example{line: i + 1, command: line[2:]})
		case len(all) > 0 && strings.HasSuffix(all[len(all)-1].command, "\\"):
			last := &all[len(all)-1]
			last.command = strings.TrimSuffix(last.command, "\\") + strings.TrimSpace(line)
		case len(all) > 0:
			all[len(all)-1].output += line + "\n"
		}
	}
	return all
}

// shell runs README commands: the built commands are on its PATH, its folder
// is a fresh one that sees fixtures/, and port 8000 is one that is free.
type shell struct {
	dir  string
	env  []string
	port string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the commands: %v\n%s", err, out)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "fixtures"), filepath.Join(dir, "fixtures")); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return &shell{dir: dir, env: env, port: port}
}

// run runs one command and gives back its output and errors together. A
// command that ends in "&" is left running until the test ends.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	command = strings.ReplaceAll(command, "go run ./cmd/", "")
	command = strings.ReplaceAll(command, ":8000", ":"+s.port)
	background := strings.HasSuffix(command, "&")
	command = strings.TrimSpace(strings.TrimSuffix(command, "&"))
	if background {
		command = "exec " + command
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if background {
		// The buffer is left alone: the server writes to it until the end.
		cmd.Stdout, cmd.Stderr = nil, nil
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		s.waitForPort(t)
		return ""
	}
	err := cmd.Run()
	// Whether a schedule is kept is for the machine to say, which may be busy
	// with other tests: exit status 4 stands for 0.
	if err != nil && cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("$ %s: %v\n%s", command, err, out.String())
	}
	return strings.ReplaceAll(out.String(), ":"+s.port, ":8000")
}

func (s *shell) waitForPort(t *testing.T) {
	t.Helper()
	for range 100 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nothing listens on port %s", s.port)
}

var (
	number = regexp.MustCompile(`[0-9]+(,[0-9]{3})*(\.[0-9]+)?\*?`)
	// Few sends are named in the line where the schedule was not kept.
	notKept = regexp.MustCompile(`Schedule NOT KEPT( \(n=\d+\))?`)
	spaces  = regexp.MustCompile(`[ \t─-]+`)
)

// matches compares outputs line by line with runs of blanks (and of rules,
// which are as wide as their columns) folded, and numbers too where they are
// measured; "…" in want matches any lines.
func matches(want, got string, measured bool) (bool, string) {
	w, g := fold(want, measured), fold(got, measured)
	pattern := "^"
	for _, line := range w {
		if line == "…" {
			pattern += `(.*\n)*?`
			continue
		}
		pattern += regexp.QuoteMeta(line) + `\n`
	}
	text := strings.Join(g, "\n")
	if text != "" {
		text += "\n"
	}
	if regexp.MustCompile(pattern + "$").MatchString(text) {
		return true, ""
	}
	return false, cmp.Diff(w, g)
}

func fold(s string, measured bool) []string {
	var lines []string
	for line := range strings.Lines(s) {
		if measured {
			line = notKept.ReplaceAllString(line, "Schedule kept")
			line = number.ReplaceAllString(line, "N")
		}
		line = spaces.ReplaceAllString(line, " ")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestMatches: the comparison itself must be able to fail.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		name, want, got string
		ok              bool
	}{
		{"numbers are folded", "p50 1.25 ms\n", "p50   17.0 ms\n", true},
		{"words are not", "p99 1.25 ms\n", "p95 1.25 s\n", false},
		{"dots stand for lines", "a\n…\nz\n", "a\nb\nc\nz\n", true},
		{"dots are no excuse", "a\n…\nz\n", "a\nb\n", false},
		{"more output is a difference", "a\n", "a\nb\n", false},
		{"less output is a difference", "a\nb\n", "a\n", false},
	} {
		if ok, _ := matches(c.want, c.got, true); ok != c.ok {
			t.Errorf("%s: matches(%q, %q) = %v", c.name, c.want, c.got, ok)
		}
	}
	if ok, _ := matches("[0,1,2]\n", "[0,1]\n", false); ok {
		t.Error("numbers that are not measured must be as shown")
	}
}
