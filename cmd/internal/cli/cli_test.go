package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

func testFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Bool("strict", false, "a switch")
	fs.StringP("bad-lines", "b", "fail", "`fail|skip`: what to do")
	fs.Duration("start", 0, "leave out what is earlier")
	fs.Int("limit", 7, "keep `N` requests")
	fs.String("text", "", strings.Repeat("many words ", 20))
	return fs
}

func TestFlagUsages(t *testing.T) {
	got := FlagUsages(testFlags())
	const want = `      --strict               a switch
  -b, --bad-lines fail|skip  what to do (default fail)
      --start DURATION       leave out what is earlier
      --limit N              keep N requests (default 7)
      --text TEXT            many words many words`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(line); n > helpWidth+1 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestParse(t *testing.T) {
	help := func(w io.Writer) error {
		_, err := io.WriteString(w, "the help")
		return err
	}
	for _, c := range []struct {
		args      string
		done      bool
		out, fail string
	}{
		{args: "--help", done: true, out: "the help"},
		{args: "-h", done: true, out: "the help"},
		{args: "--version", done: true, out: "x "},
		{args: "--strict"},
		{args: "--none", fail: "unknown flag: --none"},
	} {
		var out bytes.Buffer
		done, err := Command{Name: "x", Out: &out}.Parse(testFlags(), strings.Fields(c.args), help)
		var wrong UsageError
		switch {
		case done != c.done || !strings.HasPrefix(out.String(), c.out) || c.out == "" && out.Len() > 0:
			t.Errorf("%s: done %t, output %q", c.args, done, &out)
		case (c.fail != "") != errors.As(err, &wrong), err != nil && err.Error() != c.fail:
			t.Errorf("%s: %v, want %q", c.args, err, c.fail)
		}
	}
}

func TestComplain(t *testing.T) {
	var stderr bytes.Buffer
	c := Command{Name: "x", Err: &stderr}
	c.Complain(errors.New("no"), "")
	c.Tell("", "told %d", 1)
	if code := c.Wrong(UsageError{io.EOF}); code != Usage {
		t.Errorf("exit status %d", code)
	}
	const want = "x: error: no\nx: told 1\nx: error: EOF\nx: hint: x --help lists the flags\n"
	if stderr.String() != want {
		t.Errorf("got %q, want %q", &stderr, want)
	}
}

// TestStdoutClosed: head has read enough is no error to speak of; a full disk
// is, and so is a closed pipe that is not stdout.
func TestStdoutClosed(t *testing.T) {
	for _, c := range []struct {
		path string
		err  error
		want string
	}{
		{"/dev/stdout", syscall.EPIPE, ""},
		{"standard output", syscall.EPIPE, ""},
		{"/dev/stdout", syscall.ENOSPC, "x: error: write table: write /dev/stdout: no space left on device\n"},
		{"run.rec", syscall.EPIPE, "x: error: write table: write run.rec: broken pipe\n"},
	} {
		var stderr bytes.Buffer
		Command{Name: "x", Err: &stderr}.Complain(fmt.Errorf("write table: %w", &fs.PathError{Op: "write", Path: c.path, Err: c.err}), "")
		if stderr.String() != c.want {
			t.Errorf("%s, %v: got %q, want %q", c.path, c.err, &stderr, c.want)
		}
	}
}

func TestVersion(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: modified}}
	}
	for want, info := range map[string]*debug.BuildInfo{
		"1.2.3":                    {Main: debug.Module{Version: "v1.2.3"}},
		"devel":                    {Main: debug.Module{Version: "(devel)"}},
		"devel-0123456789ab":       {Settings: vcs("false")},
		"devel-0123456789ab+dirty": {Settings: vcs("true")},
	} {
		if got := version(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Version("x"); !strings.HasPrefix(got, "x ") || !strings.Contains(got, "go1.") {
		t.Errorf("got %q", got)
	}
}
