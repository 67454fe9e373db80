package replay

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"retrace/record"
)

// BenchmarkReplay sends requests of 32 tokens at a fixed rate to a server in
// the same process, on real sockets, and reports how late they were. One
// operation is one request; its ns/op is the pace, not the cost.
func BenchmarkReplay(b *testing.B) {
	for name, gap := range map[string]time.Duration{"1000rps": time.Millisecond, "2000rps": time.Millisecond / 2} {
		b.Run(name, func(b *testing.B) {
			answer := []byte(word + event("", "stop") + usage(32, 1) + done)
			s := httptest.NewServer(answers(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write(answer)
			}))
			defer s.Close()
			var late []time.Duration
			reqs := func(yield func(record.Request, error) bool) {
				for i := range max(b.N, 100) {
					r := record.NewRequest()
					r.Row, r.Arrival, r.InputTokens, r.OutputTokens = int64(i), time.Duration(i)*gap, 32, 1
					if !yield(r, nil) {
						return
					}
				}
			}
			out, err := Run(context.Background(), Config{URLs: []string{s.URL}, Sink: func(r *record.Result) error {
				late = append(late, r.Sent-r.Scheduled)
				return nil
			}}, reqs)
			if err != nil || out.Completed != out.Planned {
				b.Fatalf("%+v, %v", out, err)
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "late-p50-µs")
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "late-p99-µs")
		})
	}
}
