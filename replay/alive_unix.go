//go:build unix

package replay

import (
	"errors"
	"syscall"
)

// alive says whether an idle connection is open and silent.
func (c *conn) alive() bool {
	s, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true // it will show
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		alive = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return alive && err == nil
}
