package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retrace/cmd/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The help is a golden file: scripts and people rely on it.
func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"--help"}, nil, &stdout, &stderr); code != cli.Done || stderr.Len() > 0 {
		t.Fatalf("exit %d, stderr %q", code, stderr.String())
	}
	path := filepath.Join("testdata", "help.golden")
	if *update {
		if err := os.WriteFile(path, stdout.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, stdout.Bytes()) {
		t.Errorf("help differs from %s; run the test with -update and look at the change. Got:\n%s", path, stdout.String())
	}
}

// Each wrong flag is named, and leaves no file; the exit status is 2, or 1
// where only trying tells.
func TestWrong(t *testing.T) {
	dir := t.TempDir()
	out, there := filepath.Join(dir, "out.trace"), filepath.Join(dir, "there.trace")
	open, bad := filepath.Join(dir, "open"), filepath.Join(dir, "bad")
	for path, mode := range map[string]os.FileMode{there: 0o600, open: 0o644, bad: 0o600} {
		if err := os.WriteFile(path, []byte("secret-digits"), mode); err != nil {
			t.Fatal(err)
		}
	}
	good := []string{"--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "-o", out}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--nope"}, 2, "--nope"},
		{[]string{"extra"}, 2, `found argument "extra"`},
		{[]string{"--upstream", ""}, 2, "--upstream: found nothing"},
		{[]string{"--upstream", "localhost:8000"}, 2, "--upstream: found"},
		{[]string{"--upstream", "http://me:hunter2@h"}, 2, "--upstream: found a user name"},
		{[]string{"--upstream", "http://h/?key=hunter2"}, 2, "--upstream: found a query"},
		{[]string{"--listen", "foo"}, 2, "--listen: found foo"},
		{[]string{"--admin", "foo"}, 2, "--admin: found foo"},
		{[]string{"-o", "-"}, 2, "--output: found -"},
		{[]string{"--capture", "all"}, 2, `--capture: found "all", expected lengths, blocks or full`},
		{[]string{"--block-size", "0"}, 2, "--block-size: found 0"},
		{[]string{"--rotate-size", "-1"}, 2, "--rotate-size: found -1"},
		{[]string{"--rotate-every", "1ms"}, 2, "--rotate-every: found 1ms, expected at least 1s"},
		{[]string{"--grace", "-1s"}, 2, "--grace: found -1s"},
		{[]string{"--tokenizer", filepath.Join(dir, "none")}, 1, "none"},
		{[]string{"--salt-file", open}, 1, "found mode 0644, expected one that only its owner may read"},
		{[]string{"--salt-file", bad}, 1, "expected 64 hexadecimal digits"},
		{[]string{"-o", there}, 1, "--force overwrites it"},
		{[]string{"--listen", "192.0.2.1:0"}, 1, "start proxy: listen tcp 192.0.2.1:0"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), append(good[:len(good):len(good)], c.args...), nil, &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("%q: exit %d, want %d with %q; stdout %q, stderr:\n%s", c.args, code, c.code, c.want, &stdout, &stderr)
		}
		if strings.Contains(stderr.String(), "hunter2") || strings.Contains(stderr.String(), "secret-digits") {
			t.Errorf("%q: a secret was told: %s", c.args, &stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%q: left %s", c.args, out)
		}
	}
	if code := run(context.Background(), []string{"--version"}, nil, &bytes.Buffer{}, &bytes.Buffer{}); code != cli.Done {
		t.Errorf("--version: exit %d", code)
	}
}

// get fetches a page whose status and text must hold want.
func get(t *testing.T, url, want string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(resp.Status+" "+string(text), want) {
		t.Errorf("%s: %s %s, want %q (%v)", url, resp.Status, text, want, err)
	}
}

// One salt file gives a session one name in all traces, and is made for its
// owner alone; without it names differ.
func TestSalt(t *testing.T) {
	dir := t.TempDir()
	sim := simulated(t)
	session := func(name string, args ...string) string {
		out := filepath.Join(dir, name)
		url, stderr, stop := recording(t, append([]string{"--upstream", sim.URL(), "-o", out}, args...)...)
		resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":1,"session_id":"mine"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		stop()
		if strings.Contains(stderr.String(), "mine") {
			t.Errorf("stderr: %s", stderr)
		}
		_, all := load(t, out)
		if len(all) != 1 || all[0].Session == "" || all[0].Session == "mine" {
			t.Fatalf("got %+v", all)
		}
		return all[0].Session
	}
	salt := filepath.Join(dir, "salt")
	a, b := session("a.trace", "--salt-file", salt), session("b.trace", "--salt-file", salt)
	c, d := session("c.trace"), session("d.trace")
	if a != b || c == a || d == a || c == d {
		t.Errorf("sessions %s and %s with one salt; %s and %s without", a, b, c, d)
	}
	if info, err := os.Stat(salt); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("salt file: %v, %v", info, err)
	}
}
