package record

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOutputPath: what is no regular file is never replaced by one.
func TestOutputPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	for link, to := range map[string]string{"link": "file", "pipelink": "pipe", "dangling": "none"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, target string
		direct       bool
	}{
		{"new", "new", false},
		{"file", "file", false},
		{"link", "file", false},
		{"pipe", "pipe", true},
		{"pipelink", "pipelink", true},
		{"dangling", "dangling", false},
	} {
		target, direct, err := OutputPath(at(c.path))
		if err != nil || target != at(c.target) || direct != c.direct {
			t.Errorf("%s: %s, direct %t, %v; want %s, direct %t", c.path, target, direct, err, c.target, c.direct)
		}
	}
	if _, _, err := OutputPath(dir); err == nil {
		t.Error("a directory was taken for an output")
	}
}

// TestCreateThroughLink: the link stays and its file is replaced.
func TestCreateThroughLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.trace"), filepath.Join(dir, "link.trace")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file.trace", link); err != nil {
		t.Fatal(err)
	}
	w, err := Create(link, Header{Kind: KindTrace})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if head, err := os.ReadFile(file); err != nil || !IsContainer(head) {
		t.Errorf("the file behind the link was not written: %q, %v", head, err)
	}
}
