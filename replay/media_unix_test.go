//go:build unix

package replay

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe without a writer would be opened for ever.
func TestMediaOfPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.png"), 0o600); err != nil {
		t.Skip(err)
	}
	media, err := openMediaDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer media.close()
	read := make(chan error, 1)
	go func() {
		_, err := media.inline([]byte(`{"url":"file:pipe.png"}`))
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("found error %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the pipe is still being opened")
	}
}
