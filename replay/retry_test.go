package replay

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"retrace/record"
)

// fails answers the requests with these statuses in turn, then with success. A
// Retry-After is as given; 0 breaks the connection.
func fails(after string, codes ...int) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if n++; n > len(codes) {
			scripted(step{100 * ms, word + done})(w, r)
			return
		}
		if codes[n-1] == 0 {
			panic(http.ErrAbortHandler)
		}
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(codes[n-1])
	}
}

// TestRetries (R17): 429 with Retry-After: 1, twice, then 200. One result, its
// attempts listed, times from the first schedule and the first send.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name      string
		handler   http.HandlerFunc
		retries   int
		most      time.Duration
		want      string // state, class, tries, attempts
		pauses    []time.Duration
		firstFail int64
	}{
		{"none by default", fails("1", 429, 429), 0, 0, "failed http_429 0 1", nil, 1},
		{"two are needed", fails("1", 429, 429), 2, 0, "completed  2 3", []time.Duration{time.Second, time.Second}, 1},
		{"one is not enough", fails("1", 429, 429), 1, 0, "failed http_429 1 2", []time.Duration{time.Second}, 1},
		{"time is up", fails("1", 429, 429), 9, 1500 * ms, "failed http_429 1 2", []time.Duration{time.Second}, 1},
		{"too long a wait", fails("3600", 429), 9, 0, "failed http_429 0 1", nil, 1},
		{"500", fails("", 500), 3, 0, "completed  1 2", nil, 1},
		{"connection", fails("", 0, 0), 3, 0, "completed  2 3", nil, 1},
		{"404 does not pass", fails("", 404), 3, 0, "failed http_4xx 0 1", nil, 1},
		{"a date", fails(time.Date(2000, 1, 1, 0, 0, 5, 0, time.UTC).Format(http.TimeFormat), 503), 1, 0, "completed  1 2", nil, 1},
		{"nothing fails", fails(""), 3, 0, "completed  0 1", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, results := inBubble(t, answers(c.handler), every(0, 1), func(cfg *Config) {
					cfg.Load.Retries, cfg.Load.RetryMaxTime = c.retries, c.most
				})
				sum(t, out, results)
				r := results[0]
				got := fmt.Sprint(r.State, " ", r.Class, " ", len(r.Tries), " ", r.Attempts)
				if got != c.want || len(results) != 1 || out.FirstFailed != c.firstFail || (out.Retried > 0) != (len(r.Tries) > 0) {
					t.Errorf("got %q, want %q; %+v", got, c.want, out)
				}
				at := time.Duration(0)
				for i, try := range r.Tries {
					if c.pauses != nil && try.Wait != c.pauses[i] {
						t.Errorf("pause %d is %v", i, try.Wait)
					}
					if try.Sent != at || try.Class == "" {
						t.Errorf("try %d: %+v, want it sent at %v", i, try, at)
					}
					at += try.Wait
				}
				if r.Scheduled != 0 || r.Sent != 0 || r.State == record.Completed && (r.FirstOutput != at+100*ms || r.Status != 200 || r.Error != "") {
					t.Errorf("scheduled %v, sent %v, first output %v, %d %s", r.Scheduled, r.Sent, r.FirstOutput, r.Status, r.Error)
				}
			})
		})
	}
}

// TestRetryEndsWithTheRun: who waits for a retry when sending stops does not
// send it, and has failed.
func TestRetryEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		out, results := inBubble(t, answers(fails("30", 429, 429)), every(0, 1), func(c *Config) {
			c.Load.Retries, c.MaxDuration = 5, 2*time.Second
		})
		sum(t, out, results)
		if r := results[0]; r.State != record.Failed || r.Class != record.ClassHTTP429 || len(r.Tries) != 0 || time.Since(begin) > 3*time.Second {
			t.Errorf("%+v after %v", r, time.Since(begin))
		}
	})
}

// TestPauses: without a word of the server they double on average, differ from
// request to request, and are the same in another run.
func TestPauses(t *testing.T) {
	pause := func(id string, tries int) time.Duration {
		j := &job{res: record.NewResult()}
		j.res.ID, j.res.Tries = id, make([]record.Try, tries)
		return (&engine{cfg: Config{Seed: 4}}).pause(j)
	}
	for n := range 10 {
		mean := min(firstPause<<n, longestPause)
		for id := range 50 {
			p := pause(fmt.Sprint(id), n)
			if p < mean/2 || p > mean*3/2 || p != pause(fmt.Sprint(id), n) {
				t.Errorf("retry %d of request %d after %v", n, id, p)
			}
		}
	}
	if pause("1", 0) == pause("2", 0) {
		t.Error("all wait alike")
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "2": 2 * time.Second, "-2": 0, "0": 0, "x": 0, "99999999999": 0, "Sat, 01 Jan 2000 00:00:00 GMT": 0} {
		if got := retryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
