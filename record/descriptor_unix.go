//go:build unix

package record

import (
	"os"
	"syscall"
)

// openDescriptor gives a file that shares the descriptor's place in its file,
// and can be closed alone.
func openDescriptor(fd int, name string) (*os.File, error) {
	n, err := syscall.Dup(fd)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(n)
	return os.NewFile(uintptr(n), name), nil
}
