package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// privateDevice makes a device node that a test may lose.
func privateDevice(t *testing.T, minor int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "device")
	const memory = 1 << 8 // the major number of Linux's memory devices
	if runtime.GOOS != "linux" {
		t.Skip("the device's number is Linux's")
	}
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o600, memory|minor); err != nil {
		t.Skipf("no device nodes can be made here: %v", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("device nodes cannot be opened here: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// fullDisk is a private copy of /dev/full, nullDevice one of /dev/null.
func fullDisk(t *testing.T) string   { t.Helper(); return privateDevice(t, 7) }
func nullDevice(t *testing.T) string { t.Helper(); return privateDevice(t, 3) }

func writeAll(t *testing.T, path, text string) error {
	t.Helper()
	o, err := CreateOutput(path)
	if err != nil {
		return err
	}
	if _, err := o.Write([]byte(text)); err != nil {
		return errors.Join(err, o.Abort())
	}
	return o.Commit()
}

func contains(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Skipf("no links here: %v", err)
	}
}

// TestOutputReplaces: a file appears at Commit alone, keeps the rights of the
// one it replaces, and Abort leaves what was there.
func TestOutputReplaces(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old"), filepath.Join(dir, "fresh")
	write(t, old, "old")
	for _, path := range []string{old, fresh} {
		o, err := CreateOutput(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write([]byte("given up")); err != nil {
			t.Fatal(err)
		}
		if err := o.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	contains(t, old, "old")
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("files are %v", got)
	}
	for _, path := range []string{old, fresh} {
		if err := writeAll(t, path, "new"); err != nil {
			t.Fatal(err)
		}
		contains(t, path, "new")
	}
	if info, err := os.Stat(old); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("rights are %v, %v; want those of the old file", info.Mode(), err)
	}
	if got := entries(t, dir); len(got) != 2 {
		t.Errorf("files are %v", got)
	}
}

// TestOutputThroughLinks: links stay links, and what they lead to is replaced,
// or made, in its own folder.
func TestOutputThroughLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, at("sub/file"), "old")
	symlink(t, "sub/file", at("link"))
	symlink(t, "link", at("second"))
	symlink(t, at("sub/none"), at("dangling"))
	symlink(t, "loop", at("loop"))
	for link, file := range map[string]string{"link": "sub/file", "second": "sub/file", "dangling": "sub/none"} {
		if err := writeAll(t, at(link), link); err != nil {
			t.Fatal(err)
		}
		contains(t, at(file), link)
		if info, err := os.Lstat(at(link)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v, %v", link, info, err)
		}
	}
	if err := writeAll(t, at("loop"), "x"); err == nil || !strings.Contains(err.Error(), "too many links") {
		t.Errorf("a loop of links: %v", err)
	}
	if got := entries(t, at("sub")); len(got) != 2 {
		t.Errorf("files are %v", got)
	}
}

// TestOutputToDevices: devices and pipes are written, not replaced; a full disk
// is told.
func TestOutputToDevices(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	got := make(chan string)
	go func() {
		text, _ := os.ReadFile(pipe)
		got <- string(text)
	}()
	if err := writeAll(t, pipe, "through"); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "through" {
		t.Errorf("through the pipe came %q", text)
	}
	null, full := nullDevice(t), fullDisk(t)
	link := filepath.Join(t.TempDir(), "link")
	symlink(t, null, link)
	for _, path := range []string{null, link} {
		if err := writeAll(t, path, "gone"); err != nil {
			t.Error(err)
		}
	}
	if err := writeAll(t, full, "x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	for path, kind := range map[string]fs.FileMode{pipe: fs.ModeNamedPipe, null: fs.ModeCharDevice, full: fs.ModeCharDevice, link: fs.ModeSymlink} {
		if info, err := os.Lstat(path); err != nil || info.Mode()&kind == 0 {
			t.Errorf("%s was replaced: %v, %v", path, info, err)
		}
		if got := entries(t, filepath.Dir(path)); len(got) != 1 {
			t.Errorf("files are %v", got)
		}
	}
}

// TestOutputToDescriptor: /dev/fd/N goes on where that descriptor is, and does
// not close it.
func TestOutputToDescriptor(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no /proc here")
	}
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, text := range []string{"one ", "two "} {
		if _, err := f.WriteString("+ "); err != nil {
			t.Fatal(err)
		}
		name := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
		if err := writeAll(t, name, text); err != nil {
			t.Fatal(err)
		}
		if _, err := CreateRecording(name, Header{}, true); err == nil {
			t.Error("a recording was made of a descriptor")
		}
	}
	contains(t, path, "+ one + two ")
	for path, want := range map[string]bool{"/dev/stdout": true, "/dev/fd/1": true, path: false, filepath.Dir(path): false, path + "x": false} {
		if InPlace(path) != want {
			t.Errorf("%s is written in place: %t", path, !want)
		}
	}
	for name, want := range map[string]int{"/dev/stdout": 1, "/dev/fd/7": 7, "/dev/fd/./8": 8, "/dev/fd/x": -1, "/dev/full": -1} {
		if fd, ok := descriptor(name); ok != (want >= 0) || ok && fd != want {
			t.Errorf("%s is descriptor %d, %t", name, fd, ok)
		}
	}
}

// TestOutputErrors: errors name the path as given and no other.
func TestOutputErrors(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "none", "x.trace")
	for path, want := range map[string]string{
		missing: "create output " + missing + ": no such directory",
		dir:     "create output " + dir + ": is a directory",
	} {
		if _, err := Create(path, Header{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := CreateOutput(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	if _, err := CreateRecording(missing, Header{}, false); err == nil || err.Error() != "create recording "+missing+": no such directory" {
		t.Errorf("got %v", err)
	}
}

// TestRecordingKind: a recording is one, whatever the caller's header says.
func TestRecordingKind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.rec")
	w, err := CreateRecording(path, Header{Kind: KindTrace}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if kind := r.Header().Kind; kind != KindRecording {
		t.Errorf("kind is %q", kind)
	}
}
