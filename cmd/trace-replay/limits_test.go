package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClientPorts(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]int64{
		"32768\t60999\n": 28232, "1024 1024": 1,
		"": 0, "x y": 0, "60999 32768": 0, "-1 5": 0, "1 99999": 0,
	} {
		path := filepath.Join(dir, "range")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, ok := clientPorts(path); n != want || ok != (want > 0) {
			t.Errorf("%q: %d ports (%v), want %d", text, n, ok, want)
		}
	}
	if n, ok := clientPorts(filepath.Join(dir, "none")); ok {
		t.Errorf("%d ports of no file", n)
	}
}

// TestConnectionsOfProbes: by hand: 2/s that last 10 s at most are 20 at once.
func TestConnectionsOfProbes(t *testing.T) {
	o := &options{inFlight: 5, maxConcurrency: 3, timeout: 10 * time.Second}
	for rate, want := range map[float64]int64{0: 3, 2: 23, 0.01: 4, 1e9: 1027} {
		if o.load.probeRate = rate; connections(100, o) != want {
			t.Errorf("%v probes/s: %d connections, want %d", rate, connections(100, o), want)
		}
	}
}

// TestPortsWarning: what a run needs goes to several servers, each of which has
// all the ports.
func TestPortsWarning(t *testing.T) {
	ports, ok := clientPorts(portRange)
	if !ok {
		t.Skip("the system does not tell its ports")
	}
	for urls, warned := range map[int]bool{1: true, 3: false} {
		var errs bytes.Buffer
		o := &options{inFlight: 1 << 20, urls: make([]string, urls)}
		c := &command{o: o, stderr: &errs}
		c.checkLimits(&survey{requests: 2 * ports})
		if got := strings.Contains(errs.String(), "ports to one server at most, limit"); got != warned {
			t.Errorf("%d servers: warned %v\n%s", urls, got, errs.String())
		}
	}
}
