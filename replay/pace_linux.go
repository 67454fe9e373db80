package replay

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fineTimer is a timerfd behind Go's network poller.
type fineTimer struct {
	fd   int
	file *os.File
}

// newFineTimer is nil where the system has none to give.
func newFineTimer() *fineTimer {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return &fineTimer{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
}

// set arms both timers; an earlier setting is void.
func (t *fineTimer) set(d time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if unix.TimerfdSettime(t.fd, 0, &spec, nil) != nil {
		return false
	}
	return t.file.SetReadDeadline(time.Now().Add(d)) == nil
}

// wait returns when either timer fires, or at interrupt.
func (t *fineTimer) wait() {
	var buf [8]byte
	_, _ = t.file.Read(buf[:]) // whichever way it ends
}

// interrupt ends a wait, if there is one since set.
func (t *fineTimer) interrupt() { _ = t.file.SetReadDeadline(time.Unix(1, 0)) }

func (t *fineTimer) close() { _ = t.file.Close() }
