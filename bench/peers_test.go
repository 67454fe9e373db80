package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary stand for this program where a measurement
// starts it as its own server or sender.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve":
			os.Exit(runServe(os.Args[2:], os.Stdout, os.Stderr))
		case "send":
			os.Exit(runSend(os.Args[2:], os.Stdout, os.Stderr))
		}
	}
	os.Exit(m.Run())
}

// TestLateness: due at 0, 10 and 20 ms; they came at 5, 17 and 25 ms of the
// server's clock, so by 5, 7 and 5 late, of which 5 is the clock's.
func TestLateness(t *testing.T) {
	list := []sending{{at: 0}, {at: 10 * time.Millisecond}, {at: 20 * time.Millisecond}}
	got := lateness([]int64{25e6, 5e6, 17e6}, list)
	if want := []float64{0, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("lateness %v, want %v", got, want)
	}
}

// TestInstantAnswers: an HTTP client reads every event, and the stamps are kept.
func TestInstantAnswers(t *testing.T) {
	for _, gap := range []time.Duration{0, time.Millisecond} {
		s := newInstant(4, gap)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go s.serve(l) // ends with the listener
		url := fmt.Sprintf("http://%s", l.Addr())
		for range 2 {
			resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(shortBody))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if n := bytes.Count(text, []byte("data: ")); err != nil || n != 6 { // 4 tokens, the usage, [DONE]
				t.Errorf("gap %v: %d events, %v, want 6", gap, n, err)
			}
		}
		if failed := send(url, []sending{{size: 100}, {at: time.Millisecond, size: 50_000}}); failed != 0 {
			t.Errorf("gap %v: %d bare requests failed", gap, failed)
		}
		path := filepath.Join(t.TempDir(), "stamps")
		if err := s.save(path); err != nil {
			t.Fatal(err)
		}
		stamps, err := readStamps(path)
		if err != nil || len(stamps) != 4 || !slices.IsSorted(stamps) {
			t.Errorf("gap %v: stamps %v, %v, want four in order", gap, stamps, err)
		}
		_ = l.Close()
	}
}
