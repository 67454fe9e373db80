package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"retrace/replay"
)

// progressLine keeps one line on a terminal up to date.
type progressLine struct {
	w       io.Writer
	planned int64
	width   int
	mu      sync.Mutex
	shown   bool
	last    replay.Progress
}

// newProgressLine is nil where stderr is no terminal.
func newProgressLine(w io.Writer, planned int64) *progressLine {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return nil
	}
	width := int(size.Col)
	if width <= 0 {
		width = 80
	}
	return &progressLine{w: w, planned: planned, width: width}
}

func (p *progressLine) show(now replay.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := []rune(progressText(p.last, now, p.planned))
	if len(line) > p.width-1 {
		line = line[:p.width-1]
	}
	p.last, p.shown = now, true
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(line))
}

// progressText is the line: what is planned, sent, in flight, done and failed,
// the rate of sends since before, and the worst lateness since.
func progressText(before, now replay.Progress, planned int64) string {
	if now.Elapsed < 0 {
		return fmt.Sprintf("starts in %v", (-now.Elapsed).Round(time.Second))
	}
	rate := 0.0
	if span := now.Elapsed - before.Elapsed; span > 0 {
		rate = float64(now.Sent-before.Sent) / span.Seconds()
	}
	text := fmt.Sprintf("%v  planned %d  sent %d  in flight %d", now.Elapsed.Round(time.Second), planned, now.Sent, now.InFlight)
	if now.Waiting > 0 {
		text += fmt.Sprintf("  waiting %d", now.Waiting)
	}
	text += fmt.Sprintf("  done %d  failed %d", now.Done, now.Failed)
	if now.NotSent > 0 {
		text += fmt.Sprintf("  not sent %d", now.NotSent)
	}
	return text + fmt.Sprintf("  %.0f/s  late %v", rate, now.Lag.Round(10*time.Microsecond))
}

// end leaves the last line where it is.
func (p *progressLine) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprintln(p.w)
	}
}
