package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// ParseOnly is Parse for a command that takes flags and no arguments, which
// validate checks. Where done, nothing else is to do, and code is the exit status.
func (c Command) ParseOnly(flags *pflag.FlagSet, args []string, help func(io.Writer) error, validate func() error) (code int, done bool) {
	done, err := c.Parse(flags, args, help)
	if done && err != nil {
		return Failed, true
	}
	if done {
		return Done, true
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("found argument %q, expected flags only", flags.Arg(0))
	}
	if err == nil {
		err = validate()
	}
	if err != nil {
		return c.Wrong(err), true
	}
	return Done, false
}

// ValidAddress says whether addr can be a HOST:PORT; whether it is one of this
// machine, only listening tells.
func ValidAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil
}

// Signals are those that end a server. Make them before it starts, so that none
// that comes meanwhile ends the process at once.
type Signals chan os.Signal

// NotifyStop begins to take signals; the caller is to call Release.
func NotifyStop() Signals {
	s := make(Signals, 2)
	signal.Notify(s, os.Interrupt, syscall.SIGTERM)
	return s
}

// Release leaves signals to their usual effect again.
func (s Signals) Release() { signal.Stop(s) }

// Await waits until a signal comes, which it tells, or ctx ends. Then drain is
// how long what runs may go on: for grace, or until the next signal. The caller
// is to call cancel. The code is the exit status of a command that ends so.
func (s Signals) Await(ctx context.Context, c Command, grace time.Duration) (drain context.Context, cancel context.CancelFunc, code int) {
	code = Done
	select {
	case sig := <-s:
		if sig == os.Interrupt {
			code = Interrupted
		}
		c.Tell("", "%v: stopping", sig)
	case <-ctx.Done():
	}
	drain, cancel = context.WithTimeout(context.WithoutCancel(ctx), grace)
	go func() {
		select {
		case <-s:
			cancel()
		case <-drain.Done():
		}
	}()
	return drain, cancel, code
}
