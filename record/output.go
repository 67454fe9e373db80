package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Output is a file being written under a path. It is made beside that path
// under a temporary name, which takes the path's place at Commit, so that a
// file of that name is whole at any time. Of a link the file behind it is
// replaced, and the link stays one. What is there and is no regular file (a
// device, a pipe, a descriptor of this process as /dev/stdout) is written as it
// stands: to put a file in its place would destroy it.
type Output struct {
	path string // as given: what messages call it
	// target is the place that the file takes at Commit, "" where it is
	// written as it stands.
	target string
	file   *os.File
}

// CreateOutput starts an output. Its errors name the path as given.
func CreateOutput(path string) (*Output, error) {
	o, err := openOutput(path)
	if err != nil {
		return nil, fmt.Errorf("create output %s: %w", path, pathless(err))
	}
	return o, nil
}

func openOutput(path string) (*Output, error) {
	target, err := follow(path)
	if err != nil {
		return nil, err
	}
	if fd, ok := descriptor(target); ok {
		f, err := openDescriptor(fd, path)
		return &Output{path: path, file: f}, err
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := openTemp(target)
		return &Output{path: path, target: target, file: f}, err
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errIsDirectory
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		return &Output{path: path, file: f}, err
	}
	f, err := openTemp(target)
	if err != nil {
		return nil, err
	}
	_ = f.Chmod(info.Mode().Perm()) // best effort: as the file that it replaces
	return &Output{path: path, target: target, file: f}, nil
}

// InPlace says whether an output of that path is written as it stands: what was
// written cannot be taken back.
func InPlace(path string) bool {
	target, err := follow(path)
	if err != nil {
		return false
	}
	if _, ok := descriptor(target); ok {
		return true
	}
	info, err := os.Stat(target)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// errIsDirectory is the error of a directory as an output.
var errIsDirectory = errors.New("is a directory")

// noDirectoryError is the error of an output in a directory that is not there.
type noDirectoryError struct{ error }

// Error says what is missing: not the file, which is yet to be made.
func (noDirectoryError) Error() string { return "no such directory" }

// Unwrap is the system's error.
func (e noDirectoryError) Unwrap() error { return e.error }

// pathless is what a call on a file failed with, without the path that it was
// made with: that may be a temporary one.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

// tempTries bounds the search for a free temporary name.
const tempTries = 1000

// openTemp makes a file beside target, under a name of its own.
func openTemp(target string) (*os.File, error) {
	dir, base := filepath.Split(target)
	for n := 0; ; n++ {
		name := dir + "." + base + "." + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(n) + ".tmp"
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		switch {
		case errors.Is(err, fs.ErrExist) && n < tempTries:
		case errors.Is(err, fs.ErrNotExist):
			return nil, noDirectoryError{pathless(err)}
		default:
			return f, err
		}
	}
}

// maxLinks is how many links may follow one another.
const maxLinks = 40

// follow is what a path links to in the end, whether that is there or not. The
// name of a descriptor is not followed: it stands for more than its file.
func follow(path string) (string, error) {
	for range maxLinks {
		if _, ok := descriptor(path); ok {
			return path, nil
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			dir, _ := filepath.Split(path)
			to = dir + to // not Join: ".." behind a link is not the parent
		}
		path = to
	}
	return "", errors.New("too many links")
}

// descriptor tells the number of the descriptor that a path stands for.
func descriptor(path string) (fd int, ok bool) {
	path = filepath.Clean(path)
	for i, name := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == name {
			return i, true
		}
	}
	own := "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/"
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/", own} {
		if n, found := strings.CutPrefix(path, dir); found {
			fd, err := strconv.Atoi(n)
			return fd, err == nil && fd >= 0
		}
	}
	return 0, false
}

// inPlace says that the output is written as it stands.
func (o *Output) inPlace() bool { return o.target == "" }

// Write writes on. Its errors name no path.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if err != nil {
		err = pathless(err)
	}
	return n, err
}

// Commit makes the output appear under its path; where that fails it leaves
// what was there before.
func (o *Output) Commit() error {
	err := o.file.Close()
	if err == nil && !o.inPlace() {
		err = os.Rename(o.file.Name(), o.target)
	}
	if err == nil {
		return nil
	}
	o.remove()
	return fmt.Errorf("write output %s: %w", o.path, pathless(err))
}

// Abort gives the output up and leaves what was there before. What was written
// as it stands keeps what it got.
func (o *Output) Abort() error {
	_ = o.file.Close() // it is given up
	o.remove()
	return nil
}

func (o *Output) remove() {
	if !o.inPlace() {
		_ = os.Remove(o.file.Name()) // best effort: it is of no use to anyone
	}
}
