package analysis

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestRepeats: by hand. Rates of 10, 20 and 30 have a mean of 20 and a standard
// deviation of the population of √(200/3) = 8.165; a figure that one run lacks is
// of two.
func TestRepeats(t *testing.T) {
	var runs []*RunReport
	for i, rate := range []float64{10, 30, 20} {
		r := &RunReport{Requests: RunRequests{Total: 5, Completed: 2, Failed: 1, Cancelled: 1, NotSent: 1}}
		r.Throughput.Requests = Some(rate)
		if i > 0 {
			r.TTFT.P50 = Some(rate)
		}
		runs = append(runs, r)
	}
	rep := NewRepeats(runs)
	if want := (RunRequests{Total: 15, Completed: 6, Failed: 3, Cancelled: 3, NotSent: 3}); rep.Requests != want {
		t.Errorf("requests %+v", rep.Requests)
	}
	var text, js bytes.Buffer
	if rep.WriteTable(&text) != nil || rep.WriteJSON(&js) != nil {
		t.Fatal("cannot be written")
	}
	for _, want := range []string{
		"3 runs together: 15 requests, 6 completed, 3 failed, 3 cancelled, 3 not sent",
		"requests/s        3    20  8.165   10   30", "TTFT, ms, p50     2    25      5   20   30",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "TPOT") {
		t.Error("a figure that no run has")
	}
	var doc struct {
		Schema  string
		Runs    []json.RawMessage
		Figures []struct {
			Metric string
			Values struct{ Count int64 }
		}
	}
	if err := json.Unmarshal(js.Bytes(), &doc); err != nil || doc.Schema != "retrace.repeats/1" || len(doc.Runs) != 3 || len(doc.Figures) == 0 {
		t.Errorf("%v: %s", err, js.String())
	}
}
