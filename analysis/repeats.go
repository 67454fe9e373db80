package analysis

import (
	"io"
	"strconv"
)

// repeatsSchema names the JSON form of Repeats.
const repeatsSchema = "retrace.repeats/1"

// Repeats is one run made several times, and how far its figures spread.
type Repeats struct {
	Schema string `json:"schema"`
	// Requests is the sum over the runs.
	Requests RunRequests `json:"requests"`
	// Figures has the spread of each figure over the runs, one value a run.
	Figures []RepeatFigure `json:"figures"`
	Runs    []*RunReport   `json:"runs"`
}

// RepeatFigure is a figure over the runs; runs that lack it are not in it.
type RepeatFigure struct {
	Metric string `json:"metric"`
	Values Stats  `json:"values"`
}

// NewRepeats sums up the runs. The figures are those of a comparison: nothing is
// averaged within a run, and no percentile is taken over runs.
func NewRepeats(runs []*RunReport) *Repeats {
	r := &Repeats{Schema: repeatsSchema, Runs: runs, Figures: []RepeatFigure{}}
	samples := map[string]*Sample{}
	for _, run := range runs {
		q := run.Requests
		r.Requests.Total += q.Total
		r.Requests.Completed += q.Completed
		r.Requests.Failed += q.Failed
		r.Requests.Cancelled += q.Cancelled
		r.Requests.NotSent += q.NotSent
		for _, row := range Compare(run, run).Rows {
			s := samples[row.Metric]
			if s == nil {
				s = &Sample{}
				samples[row.Metric] = s
				r.Figures = append(r.Figures, RepeatFigure{Metric: row.Metric})
			}
			if row.A.OK {
				s.Add(row.A.V)
			}
		}
	}
	for i := range r.Figures {
		r.Figures[i].Values = samples[r.Figures[i].Metric].Stats()
	}
	return r
}

// WriteTable writes the spread for people.
func (r *Repeats) WriteTable(w io.Writer) error {
	p := &report{w: w}
	q := r.Requests
	p.line("%d runs together: %d requests, %d completed, %d failed, %d cancelled, %d not sent",
		len(r.Runs), q.Total, q.Completed, q.Failed, q.Cancelled, q.NotSent)
	p.line("")
	var rows [][]string
	for _, f := range r.Figures {
		if v := f.Values; v.Count > 0 {
			rows = append(rows, []string{f.Metric, strconv.FormatInt(v.Count, 10), figure(v.Mean), figure(v.Std), figure(v.Min), figure(v.Max)})
		}
	}
	p.table([]string{"figure", "runs", "mean", "std", "min", "max"}, rows)
	return p.end("repeats")
}

// WriteJSON writes the runs and their spread as indented JSON with a final newline.
func (r *Repeats) WriteJSON(w io.Writer) error { return writeJSON(w, r) }
