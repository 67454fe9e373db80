package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestHintOfFullDisk: what a recording keeps is told where it is the recording
// that found no room, and not of a summary that did not get out.
func TestHintOfFullDisk(t *testing.T) {
	for path, want := range map[string]bool{"run.rec": true, "/dev/stdout": false} {
		err := fmt.Errorf("write: %w", &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC})
		if got := strings.Contains(hint(err), "the recording keeps"); got != want {
			t.Errorf("%v: hint %q", err, hint(err))
		}
	}
}
