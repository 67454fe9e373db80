package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"retrace/replay"
)

// progressLine keeps one line on a terminal up to date. It writes from a
// goroutine of its own, for a terminal may stand still (Ctrl-S).
type progressLine struct {
	w       io.Writer
	planned int64
	width   int
	news    chan replay.Progress
	over    chan struct{}
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
	return startProgress(w, planned, width)
}

func startProgress(w io.Writer, planned int64, width int) *progressLine {
	p := &progressLine{w: w, planned: planned, width: width, news: make(chan replay.Progress, 1), over: make(chan struct{})}
	go func() {
		defer close(p.over)
		for now := range p.news {
			p.show(now)
		}
	}()
	return p
}

// update shows now, or, where the terminal is not ready for it, soon what is
// newer. It never waits. It is for one goroutine.
func (p *progressLine) update(now replay.Progress) {
	select {
	case <-p.news: // nobody looked at the older one
	default:
	}
	p.news <- now
}

func (p *progressLine) show(now replay.Progress) {
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
	close(p.news)
	<-p.over
	if p.shown {
		fmt.Fprintln(p.w)
	}
}
