package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"retrace/openai"
	"retrace/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble is a server and a way to it without a network, so that it can live
// under a false clock.
type bubble struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	server *http.Server
}

func newBubble(h http.Handler) *bubble {
	b := &bubble{conns: make(chan net.Conn), closed: make(chan struct{}), server: &http.Server{Handler: h}}
	go func() { _ = b.server.Serve(b) }() // ends with Close
	return b
}

func (b *bubble) Accept() (net.Conn, error) {
	select {
	case c := <-b.conns:
		return c, nil
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

func (b *bubble) Close() error   { b.once.Do(func() { close(b.closed) }); return nil }
func (b *bubble) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (b *bubble) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case b.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.closed:
		return nil, errors.New("closed")
	}
}

// answers adds what every mock has beside the endpoint of generation.
func answers(generate http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"mock"},{"id":"other"}]}`)
	})
	mux.HandleFunc("POST /v1/completions", generate)
	mux.HandleFunc("POST /v1/chat/completions", generate)
	return mux
}

// step is one write of a scripted answer.
type step struct {
	at   time.Duration // from the request's arrival
	text string
}

// scripted answers every request by the script.
func scripted(steps ...step) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		start := time.Now()
		w.Header().Set("Content-Type", "text/event-stream")
		for _, s := range steps {
			if wait := s.at - time.Since(start); wait > 0 {
				select {
				case <-time.After(wait):
				case <-r.Context().Done():
					return
				}
			}
			_, _ = io.WriteString(w, s.text)
			w.(http.Flusher).Flush()
		}
	}
}

// event is a chat event with a delta and a finish_reason ("" for null).
func event(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n", delta, reason)
}

const done = "data: [DONE]\n\n"

func usage(prompt, completion int) string {
	return fmt.Sprintf("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\n", prompt, completion)
}

// word is an event with one word of content.
var word = event(`"content":"x"`, "")

// collector is a sink.
type collector struct {
	mu   sync.Mutex
	list []record.Result
}

func (c *collector) sink(r *record.Result) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, *r)
	return nil
}

// byID sorts the results as the trace was; IDs are row numbers.
func (c *collector) byID() []record.Result {
	slices.SortFunc(c.list, func(a, b record.Result) int {
		if len(a.ID) != len(b.ID) {
			return len(a.ID) - len(b.ID)
		}
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	})
	return c.list
}

// every is n requests of 4 tokens in and 2 out, one each gap.
func every(gap time.Duration, n int) []record.Request {
	list := make([]record.Request, n)
	for i := range list {
		r := record.NewRequest()
		r.Row, r.Arrival, r.InputTokens, r.OutputTokens = int64(i), time.Duration(i)*gap, 4, 2
		list[i] = r
	}
	return list
}

func seq(list []record.Request) iter.Seq2[record.Request, error] {
	return func(yield func(record.Request, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// inBubble replays under a false clock: times are exact.
func inBubble(t *testing.T, h http.Handler, reqs []record.Request, change func(*Config)) (out Outcome, results []record.Result) {
	t.Helper()
	return inBubbleCtx(context.Background(), t, h, reqs, change)
}

func inBubbleCtx(ctx context.Context, t *testing.T, h http.Handler, reqs []record.Request, change func(*Config)) (out Outcome, results []record.Result) {
	t.Helper()
	b := newBubble(h)
	c := &collector{}
	cfg := Config{URLs: []string{"http://127.0.0.1"}, API: openai.Completions, Sink: c.sink, coarse: true, dial: b.dial}
	if change != nil {
		change(&cfg)
	}
	out, err := Run(ctx, cfg, seq(reqs))
	_ = b.server.Close() // nothing is served any more
	if err != nil {
		t.Errorf("Run: %v", err)
	}
	synctest.Wait()
	return out, c.byID()
}

const ms = time.Millisecond
