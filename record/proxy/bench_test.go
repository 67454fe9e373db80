package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"retrace/record/capture"
)

// BenchmarkOverhead measures a short streamed completion of a prompt of 1,000
// token ids through the proxy, through a plain ReverseProxy, and directly.
func BenchmarkOverhead(b *testing.B) {
	stream := strings.Repeat(event, 16) + finished + usage + done
	back := httptest.NewServer(says("text/event-stream", stream))
	defer back.Close()
	u, err := url.Parse(back.URL)
	if err != nil {
		b.Fatal(err)
	}
	body := `{"model":"m","stream":true,"max_tokens":16,"prompt":[1` + strings.Repeat(",12345", 999) + `]}`
	p, err := New(Config{Upstream: u, Output: b.TempDir() + "/out.trace", Capture: capture.Blocks, BlockSize: 16, Salt: capture.NewSalt()})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	plain := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1,
		Transport: newTransport("http"),
	}
	for _, c := range []struct {
		name string
		h    http.Handler
	}{{"direct", nil}, {"plain", plain}, {"record", p}} {
		b.Run(c.name, func(b *testing.B) {
			target := back.URL
			if c.h != nil {
				front := httptest.NewServer(c.h)
				defer front.Close()
				target = front.URL
			}
			client := &http.Client{Transport: newTransport("http")}
			defer client.CloseIdleConnections()
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, target+"/v1/completions", strings.NewReader(body))
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				if n, _ := io.Copy(io.Discard, resp.Body); n != int64(len(stream)) {
					b.Fatalf("%d bytes", n)
				}
				resp.Body.Close()
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
	}
}
