package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/pflag"
)

// The exit status of every command. Where several apply, the order is
// Interrupted, Failed, Limit, Losses.
const (
	Done        = 0
	Failed      = 1
	Usage       = 2   // wrong usage: nothing was done
	Losses      = 3   // done, but with losses that the last lines on stderr name
	Limit       = 4   // a stated limit was broken
	Interrupted = 130 // by a signal, as shells have it
)

// Command is a command's name and its ends.
type Command struct {
	Name     string
	In       io.Reader
	Out, Err io.Writer
}

// UsageError is a mistake in how a command was called.
type UsageError struct{ Err error }

// Error is the mistake.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap is the error within.
func (e UsageError) Unwrap() error { return e.Err }

// Tell writes one line to stderr: "NAME: KIND: …", or "NAME: …" where the kind
// is empty.
func (c Command) Tell(kind, format string, args ...any) {
	if kind != "" {
		kind += ": "
	}
	fmt.Fprintf(c.Err, "%s: %s%s\n", c.Name, kind, fmt.Sprintf(format, args...))
}

// Complain tells an error and, where there is one, a hint, in one write. That
// whoever reads stdout has seen enough (as head has) is worth no word, only the
// exit status.
func (c Command) Complain(err error, hint string) {
	if stdoutClosed(err) {
		return
	}
	var b bytes.Buffer
	to := Command{Name: c.Name, Err: &b}
	to.Tell("error", "%v", err)
	if hint != "" {
		to.Tell("hint", "%s", hint)
	}
	_, _ = c.Err.Write(b.Bytes()) // there is nowhere to tell that stderr is gone
}

// stdoutClosed says whether nobody reads stdout any more; package formats calls
// it by its other name.
func stdoutClosed(err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && (at.Path == os.Stdout.Name() || at.Path == "standard output") && errors.Is(at, syscall.EPIPE)
}

// Wrong tells a mistake of usage; its value is the exit status.
func (c Command) Wrong(err error) int {
	c.Complain(err, c.Name+" --help lists the flags")
	return Usage
}

// Parse reads the flags, of which it adds --version. Where help or the version
// was asked for, it is printed, and done says that there is nothing else to do.
// Errors of the arguments are a UsageError.
func (c Command) Parse(flags *pflag.FlagSet, args []string, help func(io.Writer) error) (done bool, err error) {
	flags.SetOutput(io.Discard)
	version := flags.Bool("version", false, "print the version and exit")
	err = flags.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return true, help(c.Out)
	case err != nil:
		return false, UsageError{err}
	case *version:
		_, err = fmt.Fprintln(c.Out, Version(c.Name))
		return true, err
	}
	return false, nil
}
