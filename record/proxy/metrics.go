package proxy

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"retrace/openai"
)

// maxPaths bounds the paths that are counted by name: paths may be anything.
const maxPaths = 64

// counts are what the metrics tell of the traffic.
type counts struct {
	unreachable atomic.Int64
	inFlight    atomic.Int64

	mu     sync.Mutex
	ended  map[ending]int64
	others map[string]int64
}

// ending is what generation requests are counted by; status 0 is no answer.
type ending struct {
	api    openai.API
	status int
}

func (c *counts) begin(openai.API) { c.inFlight.Add(1) }

func (c *counts) end(api openai.API, status int) {
	c.inFlight.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = map[ending]int64{}
	}
	c.ended[ending{api, status}]++
}

// other counts a request that is only passed on.
func (c *counts) other(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.others == nil {
		c.others = map[string]int64{}
	}
	if _, ok := c.others[path]; !ok && len(c.others) >= maxPaths {
		path = "other"
	}
	c.others[path]++
}

// Admin serves /-/metrics and /-/healthz.
func (p *Proxy) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /-/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, p.exposition())
	})
	return mux
}

// exposition is the page of metrics.
func (p *Proxy) exposition() string {
	var b strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	p.counts.mu.Lock()
	ended, others := maps.Clone(p.counts.ended), maps.Clone(p.counts.others)
	p.counts.mu.Unlock()

	family("trace_record_requests_total", "counter", "Generation requests that have ended, by the server's status; 0: no answer.")
	for _, k := range slices.SortedFunc(maps.Keys(ended), func(a, b ending) int {
		return strings.Compare(string(a.api)+strconv.Itoa(a.status), string(b.api)+strconv.Itoa(b.status))
	}) {
		fmt.Fprintf(&b, "trace_record_requests_total{api=%s,status=\"%d\"} %d\n", quote(string(k.api)), k.status, ended[k])
	}
	family("trace_record_other_requests_total", "counter", "Requests that were passed on and not recorded, by path.")
	for _, path := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(&b, "trace_record_other_requests_total{path=%s} %d\n", quote(path), others[path])
	}
	family("trace_record_dropped_total", "counter", "Records that were not written, by reason.")
	s := &p.recorder.stats
	fmt.Fprintf(&b, "trace_record_dropped_total{reason=%q} %d\n", dropQueue, s.droppedQueue.Load())
	fmt.Fprintf(&b, "trace_record_dropped_total{reason=%q} %d\n", dropLarge, s.large.Load())
	fmt.Fprintf(&b, "trace_record_dropped_total{reason=%q} %d\n", dropWrite, s.droppedWrite.Load())
	fmt.Fprintf(&b, "trace_record_dropped_total{reason=%q} %d\n", dropFault, s.fault.Load())
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"trace_record_written_total", "counter", "Records that were written.", s.written.Load()},
		{"trace_record_oversized_total", "counter", "Records without what their bodies say, for want of room.", s.oversized.Load()},
		{"trace_record_unreachable_total", "counter", "Requests that the server did not answer.", p.counts.unreachable.Load()},
		{"trace_record_in_flight", "gauge", "Generation requests under way.", p.counts.inFlight.Load()},
		{"trace_record_queue_length", "gauge", "Records that wait to be written.", int64(len(p.recorder.queue))},
		{"trace_record_held_bytes", "gauge", "Memory taken by copies of request bodies.", p.recorder.held.used.Load()},
	} {
		family(m.name, m.kind, m.help)
		fmt.Fprintf(&b, "%s %d\n", m.name, m.value)
	}
	return b.String()
}

// quote is a label's value.
func quote(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
