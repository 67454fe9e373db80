package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/openai"
	"retrace/record"
	"retrace/replay"
	"retrace/replay/simserver"
)

// output is stderr that can be read while the command runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// recording runs the command before a server; stop ends it.
func recording(t *testing.T, args ...string) (url string, stderr *output, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stderr = &output{}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), nil, &bytes.Buffer{}, stderr)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-done; code != cli.Done {
			t.Errorf("exit %d: %s", code, stderr)
		}
	})
	t.Cleanup(stop)
	ready := regexp.MustCompile(`ready on (http://\S+),`)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if m := ready.FindStringSubmatch(stderr.String()); m != nil {
			return m[1], stderr, stop
		}
	}
	t.Fatalf("not ready: %s", stderr)
	return "", nil, nil
}

// simulated is an instant server.
func simulated(t *testing.T) *simserver.Server {
	t.Helper()
	s, err := simserver.New(simserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return s
}

// load reads a trace.
func load(t *testing.T, path string) (record.Header, []record.Request) {
	t.Helper()
	trace, err := formats.Open([]string{path}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	var all []record.Request
	for q, err := range trace.Requests() {
		if err != nil {
			t.Fatal(err)
		}
		q.Blocks = slices.Clone(q.Blocks)
		all = append(all, q)
	}
	return trace.Header, all
}

// shared is how many tokens the blocks of two requests have in common.
func shared(a, b *record.Request, size int64) int64 {
	n := int64(0)
	for int(n) < min(len(a.Blocks), len(b.Blocks)) && a.Blocks[n] == b.Blocks[n] {
		n++
	}
	return min(n*size, a.InputTokens, b.InputTokens)
}

// A trace that is replayed through trace-record comes back: the same requests
// in the same order, with the same tokens, sharing the same prefixes.
func TestCircle(t *testing.T) {
	header, want := load(t, "../../fixtures/mooncake_sample.jsonl")
	for _, api := range []openai.API{openai.Completions, openai.Chat} {
		t.Run(string(api), func(t *testing.T) { circle(t, api, header, want) })
	}
}

func circle(t *testing.T, api openai.API, header record.Header, want []record.Request) {
	out := filepath.Join(t.TempDir(), "out.trace")
	url, _, stop := recording(t, "--upstream", simulated(t).URL(), "-o", out, "--block-size", "512")
	sent := map[string]time.Duration{}
	run, err := replay.Run(t.Context(), replay.Config{
		URLs: []string{url}, API: api, Header: header, Speed: 20, IgnoreEOS: true,
		Sink: func(r *record.Result) error { sent[r.ID] = r.Sent; return nil },
	}, func(yield func(record.Request, error) bool) {
		for _, q := range want {
			if !yield(q, nil) {
				return
			}
		}
	})
	if err != nil || run.Completed != int64(len(want)) {
		t.Fatalf("replayed %d of %d: %v", run.Completed, len(want), err)
	}
	stop()
	_, got := load(t, out)
	probes := 0
	for len(got) > len(want) && probes < 2 { // that learn the template's tokens
		got, probes = got[1:], probes+1
	}
	if len(got) != len(want) {
		t.Fatalf("%d recorded, %d replayed", len(got), len(want))
	}
	got = paired(t, want, got)
	var late []time.Duration // arrivals after sends, on clocks with origins of their own
	for i := range want {
		late = append(late, got[i].Arrival-sent[want[i].Key()])
	}
	slices.Sort(late)
	n := len(late)
	t.Logf("arrivals follow sends within %v at p99, %v at p90", late[n*99/100]-late[n/2], late[n*9/10]-late[n/2])
	if spread := late[n*9/10] - late[n/10]; spread > 20*time.Millisecond { // of a busy machine
		t.Errorf("arrivals follow sends by times that differ by %v", spread)
	}
	for i := range want {
		w, g := &want[i], &got[i]
		if g.Observed.Status != 200 || g.Observed.Failed || g.API != string(api) {
			t.Errorf("request %d: got %s, %+v", i, g.API, g.Observed)
		}
		for j := range i {
			if api != openai.Completions {
				break // words are no blocks of tokens
			}
			if a, b := shared(w, &want[j], 512), shared(g, &got[j], 512); a != b {
				t.Errorf("requests %d and %d share %d tokens, want %d", i, j, b, a)
			}
		}
	}
}

// paired orders what was recorded as what was replayed: requests that lie
// microseconds apart may have overtaken one another on their way.
func paired(t *testing.T, want, got []record.Request) []record.Request {
	t.Helper()
	const near = 4
	left := slices.Clone(got)
	var pairs []record.Request
	for i, w := range want {
		at := slices.IndexFunc(left, func(g record.Request) bool {
			return g.InputTokens == w.InputTokens && g.OutputTokens == w.OutputTokens
		})
		if at < 0 || at > near {
			t.Fatalf("request %d, of %d and %d tokens, was recorded %d places late; -1: not at all", i, w.InputTokens, w.OutputTokens, at)
		}
		pairs = append(pairs, left[at])
		left = slices.Delete(left, at, at+1)
	}
	return pairs
}

// The command says what it does, serves its metrics apart, and a trace that is
// there is not overwritten.
func TestServes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.trace")
	sim := simulated(t)
	url, stderr, stop := recording(t, "--upstream", sim.URL(), "-o", out, "--admin", "127.0.0.1:0")
	get(t, url+"/v1/models", `"id":"sim"`)
	m := regexp.MustCompile(`metrics on (http://\S+)`).FindStringSubmatch(stderr.String())
	if m == nil {
		t.Fatalf("no address of the metrics: %s", stderr)
	}
	get(t, m[1], `trace_record_other_requests_total{path="/v1/models"} 1`)
	get(t, strings.Replace(m[1], "metrics", "healthz", 1), "ok")
	get(t, url+"/-/metrics", "404")
	stop()
	if !strings.Contains(stderr.String(), "0 requests recorded") {
		t.Errorf("stderr: %s", stderr)
	}
}
