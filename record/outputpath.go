package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OutputPath says how a file is to be written under path. Where direct is
// false, it is to be made beside target under a temporary name that takes
// target's place when it is complete: target is path, or what path links to,
// so that a link stays one. Where direct is true, target is there, is no
// regular file (a pipe, a device) and must be written as it stands: to put a
// file in its place would destroy it.
func OutputPath(path string) (target string, direct bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, false, nil // creating it tells whether that is all
	case err != nil:
		return "", false, fmt.Errorf("create %s: %w", path, err)
	case info.IsDir():
		return "", false, fmt.Errorf("create %s: is a directory", path)
	case !info.Mode().IsRegular():
		return path, true, nil
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return "", false, fmt.Errorf("create %s: %w", path, err)
	}
	return target, false, nil
}
