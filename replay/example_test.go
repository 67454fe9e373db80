package replay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"retrace/record"
	"retrace/replay"
)

func ExampleRun() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"hello\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
		}
	}))
	defer server.Close()

	trace := func(yield func(record.Request, error) bool) {
		for i := range 3 {
			r := record.NewRequest()
			r.Row, r.Arrival = int64(i), time.Duration(i)*10*time.Millisecond
			r.InputTokens, r.OutputTokens = 20, 1
			if !yield(r, nil) {
				return
			}
		}
	}
	out, err := replay.Run(context.Background(), replay.Config{
		URLs:  []string{server.URL},
		Model: "m",
		Sink: func(res *record.Result) error {
			fmt.Println(res.ID, res.Scheduled, res.State)
			return nil
		},
		MaxConcurrency: 1,
	}, trace)
	fmt.Println(out.Planned, out.Completed, err)
	// Output:
	// 0 0s completed
	// 1 10ms completed
	// 2 20ms completed
	// 3 3 <nil>
}
