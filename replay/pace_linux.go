package replay

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fineTimer is a timerfd behind Go's network poller.
type fineTimer struct {
	fd    int
	file  *os.File
	fired chan struct{}
	done  chan struct{}
}

// newFineTimer is nil where the system has none to give.
func newFineTimer() *fineTimer {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	t := &fineTimer{fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), fired: make(chan struct{}, 1), done: make(chan struct{})}
	go t.watch()
	return t
}

func (t *fineTimer) watch() {
	defer close(t.done)
	var buf [8]byte
	for {
		if _, err := t.file.Read(buf[:]); err != nil {
			return
		}
		select {
		case t.fired <- struct{}{}:
		default:
		}
	}
}

// set arms the timer; an earlier setting is void.
func (t *fineTimer) set(d time.Duration) bool {
	select {
	case <-t.fired:
	default:
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	return unix.TimerfdSettime(t.fd, 0, &spec, nil) == nil
}

func (t *fineTimer) close() {
	t.file.Close()
	<-t.done
}
