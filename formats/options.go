package formats

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"retrace/record/capture"
)

// The values of --turns; "" lets each row decide: a later turn with a delay
// holds only what is new.
const (
	TurnsFull      = "full"
	TurnsIncrement = "increment"
)

// The values of --clock-restart.
const (
	// RestartRefuse makes a clock restart an error.
	RestartRefuse = "refuse"
	// RestartAppend lets the rows after it continue after the last before it.
	RestartAppend = "append"
	// RestartSort takes the times as they are.
	RestartSort = "sort"
)

// Options say how to read a trace. The zero value reads any format as it says itself.
type Options struct {
	// From names the format; "" detects it.
	From string
	// BlockSize, in tokens, and Unit override the format's own where not 0.
	BlockSize int
	Unit      time.Duration
	// BadLines is Fail where empty.
	BadLines Policy
	// Turns is TurnsFull, TurnsIncrement or "".
	Turns string
	// ClockRestart is RestartRefuse where empty.
	ClockRestart string
	// Capture is what is kept of a log of requests: capture.Full where empty, but
	// what Convert writes is then capture.Blocks. SaltFile has the key of its
	// hashes (see capture.LoadSalt). These and Encode are refused with other formats.
	Capture  capture.Mode
	SaltFile string
	// Encode turns a log's text into tokens; nil where nothing does.
	Encode func(dst []uint32, text string) []uint32
	// captureUnasked says that Capture is a default.
	captureUnasked bool
	// Select picks a part of the trace.
	Select Selection
	// Stdin is read for the path "-".
	Stdin io.Reader
	// TempDir is where sorting and standard input spill to; "" is the system's.
	TempDir string
	// Interrupted is asked now and then whether to stop; nil never stops.
	Interrupted func() bool
}

// interruption asks Interrupted once in a while: at every interruptRows-th call.
func (o *Options) interruption() func() bool {
	n := 0
	return func() bool {
		n++
		return n%interruptRows == 0 && o.Interrupted != nil && o.Interrupted()
	}
}

// Flags are the flags that every command that reads a trace has.
type Flags struct {
	set                                  *pflag.FlagSet
	from, unit, badLines, turns, restart string
	blockSize                            int
}

// BindFlags defines --from, --block-size, --time-unit, --bad-lines, --turns and
// --clock-restart.
func BindFlags(fs *pflag.FlagSet) *Flags {
	f := &Flags{set: fs}
	fs.StringVar(&f.from, "from", "", "`FORMAT`: that of the source (see trace-convert --list-formats); default: detected from the content")
	fs.IntVar(&f.blockSize, "block-size", 0, "take a prefix block to hold `N` tokens; default: what the format says")
	fs.StringVar(&f.unit, "time-unit", "", "`s|ms|us|ns`: the unit of the source's times; default: what the format says")
	fs.StringVar(&f.badLines, "bad-lines", string(Fail), "`fail|skip`: end at the first row that cannot be read, or leave such rows out and count them")
	fs.StringVar(&f.turns, "turns", "", "`full|increment`: what later turns of a session hold, the whole prompt or what is new; "+
		"default: increment where they have a delay, else full")
	fs.StringVar(&f.restart, "clock-restart", RestartRefuse, "`refuse|append|sort`: what to do where the source's clock steps far back: end, continue after the last time, or take the times as they are")
	return f
}

// Options checks the values and names the flag that is wrong.
func (f *Flags) Options() (Options, error) {
	o := Options{From: f.from, BlockSize: f.blockSize, BadLines: Policy(f.badLines), Turns: f.turns, ClockRestart: f.restart}
	if f.set.Changed("from") {
		if _, err := Lookup(f.from); err != nil {
			return o, fmt.Errorf("--from: %w", err)
		}
	}
	const maxBlock = 1 << 20
	if f.set.Changed("block-size") && (f.blockSize < 1 || f.blockSize > maxBlock) {
		return o, fmt.Errorf("--block-size %d: want 1 to %d tokens", f.blockSize, maxBlock)
	}
	if f.set.Changed("time-unit") {
		var ok bool
		if o.Unit, ok = units[f.unit]; !ok {
			return o, fmt.Errorf("--time-unit %s: want s, ms, us or ns", f.unit)
		}
	}
	if o.BadLines != Fail && o.BadLines != Skip {
		return o, fmt.Errorf("--bad-lines %s: want fail or skip", f.badLines)
	}
	if f.set.Changed("turns") && o.Turns != TurnsFull && o.Turns != TurnsIncrement {
		return o, fmt.Errorf("--turns %s: want full or increment", f.turns)
	}
	switch o.ClockRestart {
	case RestartRefuse, RestartAppend, RestartSort:
		return o, nil
	}
	return o, fmt.Errorf("--clock-restart %s: want refuse, append or sort", f.restart)
}

var units = map[string]time.Duration{
	"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond,
}
