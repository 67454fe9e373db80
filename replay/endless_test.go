package replay

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"retrace/record"
)

// TestEndlessStream: a stream that never stops ends as a bad response, and not
// with the memory of this machine.
func TestEndlessStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := io.WriteString(w, `data: {"choices":[{"index":0,"text":"a"}]}`+"\n\n"); err != nil {
					return
				}
			}
		}))
		defer func() { _ = b.server.Close() }()
		var got record.Result
		cfg := Config{
			URLs: []string{"http://a"}, Model: "m", ServerBlockSize: 16, ReadyTimeout: -1, coarse: true, dial: b.dial, mostOutputs: 1000,
			Sink: func(r *record.Result) error { got = *r; return nil },
		}
		out, err := Run(context.Background(), cfg, func(yield func(record.Request, error) bool) {
			r := record.NewRequest()
			r.Row, r.Arrival, r.InputTokens, r.OutputTokens = 0, 0, 4, 1
			yield(r, nil)
		})
		if err != nil || out.Failed != 1 || got.Class != record.ClassBadResponse || !strings.Contains(got.Error, "on and on") || len(got.Gaps) != 0 {
			t.Errorf("outcome %+v, error %v, class %q: %s", out, err, got.Class, got.Error)
		}
	})
}
