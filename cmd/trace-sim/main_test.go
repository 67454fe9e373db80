package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"retrace/cmd/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"trace-sim": main})
}

// TestScripts runs the scripts in testdata. Beyond testscript's own commands
// they have get and post (from the server at $ADDR, which may need a moment
// to be ready; the answer is stdout) and occupy (listen on an address).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			addr, err := freeAddr()
			env.Setenv("ADDR", addr)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"get": get, "post": postBody, "occupy": occupy},
	})
}

// freeAddr is an address on which nobody listens just now.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// get PATH fetches from the server, waiting for it up to 10 seconds.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: get PATH")
	}
	url := "http://" + ts.Getenv("ADDR") + args[0]
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		resp, err := http.Get(url)
		if err == nil {
			show(ts, resp)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("get %s: %v", url, err)
		}
	}
}

// postBody PATH JSON sends a body; negated, the request must fail.
func postBody(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: post PATH JSON")
	}
	resp, err := http.Post("http://"+ts.Getenv("ADDR")+args[0], "application/json", strings.NewReader(args[1]))
	if neg != (err != nil) {
		ts.Fatalf("post: %v", err)
	}
	if err == nil {
		show(ts, resp)
	}
}

func show(ts *testscript.TestScript, resp *http.Response) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	http.DefaultClient.CloseIdleConnections()
	_, err = ts.Stdout().Write(append([]byte(resp.Status+"\n"), body...))
	ts.Check(err)
}

// occupy ADDR listens there until the script ends.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: occupy ADDR")
	}
	l, err := net.Listen("tcp", args[0])
	ts.Check(err)
	ts.Defer(func() { l.Close() })
}

// The help is a golden file: scripts and people rely on it.
func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"--help"}, nil, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
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

// The end of the context stops the server as SIGTERM does.
func TestContextStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"--listen", "127.0.0.1:0"}, nil, &stdout, &stderr); code != exitOK {
		t.Errorf("exit %d, stderr %s", code, stderr.String())
	}
	if !strings.HasPrefix(stderr.String(), "trace-sim: ready on http://127.0.0.1:") || stdout.Len() > 0 {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
}

// TestUsageIsTwo: wrong flags have the exit status of wrong usage.
func TestUsageIsTwo(t *testing.T) {
	for _, args := range [][]string{{"--listen", "foo"}, {"--listen", ""}, {"--nope"}, {"extra"}, {"--max-batch", "0"}} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, nil, &out, &errs); code != cli.Usage {
			t.Errorf("%q: exit %d, want 2: %s", args, code, &errs)
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"--version"}, nil, &out, &errs); code != exitOK || !strings.HasPrefix(out.String(), "trace-sim ") {
		t.Errorf("--version: exit %d: %s%s", code, &out, &errs)
	}
}
