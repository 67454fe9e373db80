package replay

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retrace/record"
)

// measured is a handler that answers completions after a time, and whose page of
// metrics is page's.
func measured(service time.Duration, page http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", page)
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(service)
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
	})
	return mux
}

// scraped replays n requests, one a second, and gives the points by name.
func scraped(t *testing.T, n int, page http.HandlerFunc, change func(*Config)) (points map[string][]string, out Outcome, err error) {
	b := newBubble(measured(100*time.Millisecond, page))
	defer func() { _ = b.server.Close() }()
	points = map[string][]string{}
	cfg := Config{
		URLs: []string{"http://server"}, Model: "m", ServerBlockSize: 16, coarse: true, dial: b.dial,
		Series: func(s *record.Series) error {
			if len(s.Times) != 1 || len(s.Values) != 1 {
				t.Errorf("series %v: want one point", s)
			}
			key := s.Name + " " + s.Labels[record.ReplicaLabel]
			points[key] = append(points[key], fmt.Sprintf("%v=%v", s.Times[0].Round(time.Millisecond), s.Values[0]))
			return nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	out, err = Run(context.Background(), cfg, func(yield func(record.Request, error) bool) {
		for i := range n {
			r := record.NewRequest()
			r.Row, r.Arrival, r.InputTokens, r.OutputTokens = int64(i), time.Duration(i)*time.Second, 4, 1
			if !yield(r, nil) {
				return
			}
		}
	})
	return points, out, err
}

// counting is a page whose counter grows by one each time it is read.
func counting() http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine=\"0\"} %d\n", n.Add(1))
	}
}

// TestScrapes: one before the origin, which is 100 ms later, one a second from
// the start of the run on, and one 100 ms after the last answer at 2.1 s.
func TestScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		points, out, err := scraped(t, 3, counting(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"-100ms=1", "900ms=2", "1.9s=3", "2.2s=4"}
		if got := points["vllm:prompt_tokens_total 0"]; !slices.Equal(got, want) || len(points) != 1 {
			t.Errorf("points %v, want %v", points, want)
		}
		if len(out.Notes) > 0 || out.Completed != 3 {
			t.Errorf("outcome %+v", out)
		}
	})
}

func TestScrapeInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		points, _, _ := scraped(t, 2, counting(), func(c *Config) { c.MetricsInterval = 500 * time.Millisecond })
		want := []string{"-100ms=1", "400ms=2", "900ms=3", "1.2s=4"}
		if got := points["vllm:prompt_tokens_total 0"]; !slices.Equal(got, want) {
			t.Errorf("points %v, want %v", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		asked := false
		points, out, _ := scraped(t, 1, func(http.ResponseWriter, *http.Request) { asked = true }, func(c *Config) { c.MetricsInterval = -1 })
		if len(points) > 0 || asked || len(out.Notes) > 0 {
			t.Errorf("with no interval: asked %v, points %v, notes %q", asked, points, out.Notes)
		}
	})
}

// TestScrapesOfTwo: each server's figures carry its number, and its own label of
// that name another.
func TestScrapesOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var theirs []string
		page := func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "sglang:num_running_reqs{replica=\"9\",key=\"secret-key\"} 1\n")
		}
		points, out, err := scraped(t, 2, page, func(c *Config) {
			c.Client.APIKey = "secret-key"
			c.URLs = []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}
			plain := c.Series
			c.Series = func(s *record.Series) error {
				theirs = append(theirs, s.Labels["exported_replica"]+s.Labels["key"])
				return plain(s)
			}
		})
		if err != nil || len(points) != 2 || len(points["sglang:num_running_reqs 0"]) < 3 || len(points["sglang:num_running_reqs 1"]) < 3 {
			t.Errorf("points %v, error %v, notes %q", points, err, out.Notes)
		}
		for _, l := range theirs {
			if l != "9***" {
				t.Errorf("labels %q", l)
			}
		}
	})
}

// TestScrapeFails: whatever a server's page does, each request is completed, and
// a sentence says why there is nothing.
func TestScrapeFails(t *testing.T) {
	n := 0
	for name, c := range map[string]struct {
		page http.HandlerFunc
		note string
		asks int // at most
	}{
		"404":           {http.NotFound, "not scraped: no metrics: HTTP 404", 2},
		"401":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "HTTP 401", 2},
		"redirect":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "HTTP 302", 2},
		"500":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "4 of 4 scrapes failed, the first: HTTP 500", 4},
		"HTML":          {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>\nlog in</html>") }, "no Prometheus text", 2},
		"JSON":          {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"iter":1}]`) }, "no Prometheus text", 2},
		"nothing known": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "# TYPE up gauge\nup 1\n") }, "none of the names are known", 4},
		"broken":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "vllm:num_requests_running{ 1\n") }, "4 of 4 scrapes failed, the first: parse metrics", 4},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for line := []byte(strings.Repeat("up{a=\"b\"} 1\n", 5000)); ; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, "not scraped: the page has more than", 1},
		"hang":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "failed, the first: no whole page within 2s", 4},
		"abort": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "4 of 4 scrapes failed, the first: EOF", 8},
		"odd encoding": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "x")
		}, "content encoding", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n = 0
				page := func(w http.ResponseWriter, r *http.Request) { n++; c.page(w, r) }
				points, out, err := scraped(t, 3, page, nil)
				if err != nil || out.Completed != 3 || len(points) > 0 {
					t.Errorf("completed %d of 3, error %v, points %v", out.Completed, err, points)
				}
				if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], c.note) || !strings.Contains(out.Notes[0], "http://server/") {
					t.Errorf("notes %q, want one that says %q", out.Notes, c.note)
				}
				if n > c.asks {
					t.Errorf("asked %d times, want at most %d", n, c.asks)
				}
			})
		})
	}
}

// TestScrapeCompressed: a page that comes compressed unasked is read.
func TestScrapeCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		points, out, err := scraped(t, 1, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "identity" {
				t.Errorf("asks for %q", r.Header.Get("Accept-Encoding"))
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, "vllm:num_requests_waiting 7\n")
			_ = z.Close()
		}, nil)
		if err != nil || len(points["vllm:num_requests_waiting 0"]) != 2 || len(out.Notes) > 0 {
			t.Errorf("points %v, notes %q, error %v", points, out.Notes, err)
		}
	})
}

// TestScrapeLater: a server that answers no page at first, and one that fails
// once, are asked again.
func TestScrapeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		points, out, err := scraped(t, 3, func(w http.ResponseWriter, _ *http.Request) {
			if n++; n == 1 || n == 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintf(w, "vllm:num_requests_waiting %d\n", n)
		}, nil)
		want := []string{"900ms=2", "2.2s=4"}
		if got := points["vllm:num_requests_waiting 0"]; err != nil || !slices.Equal(got, want) {
			t.Errorf("points %v, want %v (%v)", got, want, err)
		}
		if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "2 of 4 scrapes failed, the first: HTTP 503") {
			t.Errorf("notes %q", out.Notes)
		}
	})
}

// TestScrapeSecondPath: trtllm-serve has JSON at /metrics, its metrics elsewhere.
func TestScrapeSecondPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/metrics":
				fmt.Fprint(w, `[]`)
			case "/prometheus/metrics":
				if user, password, _ := r.BasicAuth(); user != "u" || password != "pass" {
					t.Errorf("no credentials")
				}
				fmt.Fprint(w, "trtllm_num_requests_running 2\n")
			default:
				measured(0, http.NotFound).ServeHTTP(w, r)
			}
		}))
		defer func() { _ = b.server.Close() }()
		points, out, err := scraped(t, 1, http.NotFound, func(c *Config) { c.URLs, c.dial = []string{"http://u:pass@127.0.0.1/v1"}, b.dial })
		if got := points["trtllm_num_requests_running 0"]; err != nil || len(got) != 2 || len(out.Notes) > 0 {
			t.Errorf("points %v, notes %q, error %v", points, out.Notes, err)
		}
	})
}

// TestScrapeSinkFails: what cannot be stored ends the run, as with results.
func TestScrapeSinkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, out, err := scraped(t, 5, counting(), func(c *Config) {
			calls := 0
			c.Series = func(*record.Series) error {
				if calls++; calls == 2 {
					return io.ErrShortWrite
				}
				return nil
			}
		})
		if err == nil || out.Reasons[reasonSink] == 0 || out.Planned != 5 {
			t.Errorf("error %v, outcome %+v", err, out)
		}
	})
}

// TestScrapeInterrupted: an interrupted run is scraped after its end too.
func TestScrapeInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		points, out, _ := scraped(t, 100, counting(), func(c *Config) { c.MaxDuration = 2500 * time.Millisecond })
		want := []string{"-100ms=1", "900ms=2", "1.9s=3", "2.6s=4"}
		if got := points["vllm:prompt_tokens_total 0"]; !slices.Equal(got, want) || !out.TimedOut {
			t.Errorf("points %v, want %v", got, want)
		}
	})
}

// TestNotSentOfAServer: a request that is not sent counts for the server whose
// turn it was.
func TestNotSentOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		_, _, err := scraped(t, 4, http.NotFound, func(c *Config) {
			c.URLs = []string{"http://a", "http://b"}
			c.MaxDuration = 1500 * time.Millisecond
			c.Sink = func(r *record.Result) error {
				got = append(got, fmt.Sprintf("%s:%d", r.State, r.Replica))
				return nil
			}
		})
		want := []string{"completed:0", "completed:1", "not_sent:0", "not_sent:1"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, want %q (%v)", got, want, err)
		}
	})
}

// TestScrapedAfterWarmUp: what warms the server up is no part of the counters'
// growth: the first scrape is 100 ms after it.
func TestScrapedAfterWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answered atomic.Int64
		b := newBubble(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/completions" {
				// A server that counts a request 50 ms after its answer.
				time.AfterFunc(50*time.Millisecond, func() { answered.Add(1) })
			}
			measured(0, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "vllm:prompt_tokens_total %d\n", answered.Load())
			}).ServeHTTP(w, r)
		}))
		defer func() { _ = b.server.Close() }()
		points, _, err := scraped(t, 2, http.NotFound, func(c *Config) { c.dial, c.Load.WarmUp = b.dial, 3 })
		got := points["vllm:prompt_tokens_total 0"]
		if err != nil || len(got) < 2 || !strings.HasSuffix(got[0], "=3") || !strings.HasSuffix(got[len(got)-1], "=5") {
			t.Errorf("points %v, error %v", points, err)
		}
	})
}
