package analysis

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"retrace/record"
)

// RunSchema names the JSON form of a RunReport.
const RunSchema = "retrace.run/1"

// RunReport is the analysis of a run. Its JSON is a contract: docs/analysis.md
// has every key with its unit.
type RunReport struct {
	Schema     string           `json:"schema"`
	Requests   RunRequests      `json:"requests"`
	Errors     map[string]int64 `json:"errors"`
	DurationS  Value            `json:"duration_s"`
	Tokens     RunTokens        `json:"tokens"`
	Throughput RunThroughput    `json:"throughput"`
	// ScheduleKept is nil where nothing was sent.
	ScheduleKept  *bool       `json:"schedule_kept"`
	ScheduleLag   Stats       `json:"schedule_lag_ms"`
	Queue         Stats       `json:"queue_ms"`
	TTFT          Stats       `json:"ttft_ms"`
	TPOT          Stats       `json:"tpot_ms"`
	ITL           Stats       `json:"itl_ms"`
	E2E           Stats       `json:"e2e_ms"`
	TTFTScheduled Stats       `json:"ttft_scheduled_ms"`
	E2EScheduled  Stats       `json:"e2e_scheduled_ms"`
	OutputTokens  Stats       `json:"output_tokens_per_request"`
	Goodput       *RunGoodput `json:"goodput"`
	PrefixCache   RunPrefix   `json:"prefix_cache"`
	InputTokens   Stats       `json:"input_tokens_per_request"`
	FailureRate   Value       `json:"failure_rate"`
	NotSent       counts      `json:"not_sent_reasons"`
	BeyondTrace   RunMarked   `json:"beyond_trace"`
	Interrupted   bool        `json:"interrupted"`
	MaxLagMS      float64     `json:"max_lag_ms"`
	Replicas      []RunServer `json:"replicas"`
	Warnings      []string    `json:"warnings"`
	// Planned is what the headers promise, nil where one promises nothing. It
	// is more than Requests.Total where a run was killed.
	Planned *int64 `json:"planned"`
	// FirstByte and FirstContent run from the send, as TTFT does: to the
	// response's first byte, and to content proper (not reasoning or a tool call).
	FirstByte    Stats `json:"first_byte_ms"`
	FirstContent Stats `json:"first_content_ms"`
	// InputOff is the server-counted prompt tokens minus the wanted ones.
	InputOff Stats `json:"input_tokens_off"`
	// Steady is nil where all was sent at one moment.
	Steady *Steady `json:"steady"`
	// TokenMean is TPOT with each token counting once: all requests' time from
	// first to last output, by their tokens but the first.
	TokenMean Value `json:"tpot_token_mean_ms"`
	// Interval is the time a token, one value a token after the first output,
	// of the requests whose every gap has a known number of tokens.
	Interval Stats `json:"token_interval_ms"`
	// Achieved is output tokens by the wanted ones, of each request.
	Achieved Stats `json:"output_tokens_achieved"`
	// WarmUp and Probes are nil where there were none.
	WarmUp *RunAside `json:"warmup"`
	Probes *RunAside `json:"probes"`
	// Server is what all servers' /metrics said, nil where none was scraped.
	Server *ServerMetrics `json:"server_metrics"`
	// ServerQueue, ServerPrefill and ServerDecode are the server's own times of
	// each request, where it sends them with its answers.
	ServerQueue   Stats `json:"server_queue_ms"`
	ServerPrefill Stats `json:"server_prefill_ms"`
	ServerDecode  Stats `json:"server_decode_ms"`
	// Retries is nil where attempts are not made again.
	Retries *RunRetries `json:"retries"`
	// Definitions says in words what the figures are.
	Definitions map[string]string `json:"definitions"`

	missing string // what is not in the files, for the table's first line
}

// counts is a table of counts by name.
type counts map[string]int64

// RunRequests counts the trace's requests by how they ended; Total is the sum
// of the four.
type RunRequests struct {
	Total     int64 `json:"total"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	NotSent   int64 `json:"not_sent"`
}

// RunTokens are the tokens of the completed requests, as the server counted
// them; Cached does not exist where no server reported cached tokens.
type RunTokens struct {
	Input  Total `json:"input"`
	Output Total `json:"output"`
	Cached Total `json:"cached"`
	// Reasoning is the part of Output that was reasoning, Media that of Input
	// which images, audio and video took; they do not exist where no server told.
	Reasoning Total `json:"reasoning"`
	Media     Total `json:"media"`
}

// RunThroughput is per second of the run's duration, completed requests only.
type RunThroughput struct {
	Requests     Value `json:"requests_per_s"`
	OutputTokens Value `json:"output_tokens_per_s"`
	TotalTokens  Value `json:"total_tokens_per_s"`
}

// RunGoodput counts the completed requests that kept the SLO.
type RunGoodput struct {
	SLO      string `json:"slo"`
	Good     int64  `json:"good"`
	Requests Value  `json:"requests_per_s"`
	// Share is Good by all of the run's requests, failed ones included.
	Share Value `json:"share"`
}

// RunPrefix are the run's shares of prompt tokens that hit the prefix cache.
type RunPrefix struct {
	// Predicted is what an endless cache, empty at the start, would have hit.
	Predicted Value `json:"predicted_token_hit_rate"`
	// Observed is what the server reports, over the requests for which it does.
	Observed Value `json:"observed_token_hit_rate"`
	// Counted is what the servers' counters grew by: hits by queries. Whatever
	// else the servers did in the time is in it.
	Counted Value `json:"server_token_hit_rate"`
	// The tokens of the three rates.
	PredictedTokens Value `json:"predicted_hit_tokens"`
	ObservedTokens  Value `json:"observed_hit_tokens"`
	CountedTokens   Value `json:"server_hit_tokens"`
}

// RunAside are the requests of one mark beyond the trace's.
type RunAside struct {
	Requests RunRequests      `json:"requests"`
	Errors   map[string]int64 `json:"errors"`
	TTFT     Stats            `json:"ttft_ms"`
	E2E      Stats            `json:"e2e_ms"`
}

// RunMarked counts the requests beyond the trace's; they are in no other figure.
type RunMarked struct {
	Overhead int64 `json:"overhead"`
	WarmUp   int64 `json:"warmup"`
	Probe    int64 `json:"probe"`
}

// RunServer is the part of a run that one server (--url) took.
type RunServer struct {
	Replica      int         `json:"replica"`
	URL          string      `json:"url"`
	Requests     RunRequests `json:"requests"`
	OutputTokens int64       `json:"output_tokens"`
	TTFT         Stats       `json:"ttft_ms"`
	TPOT         Stats       `json:"tpot_ms"`
	E2E          Stats       `json:"e2e_ms"`
	InputTokens  int64       `json:"input_tokens"`
	CachedTokens Total       `json:"cached_tokens"`
	PrefixCache  RunPrefix   `json:"prefix_cache"`
	// Server is what its /metrics said, nil where it was not scraped.
	Server *ServerMetrics `json:"server_metrics"`
}

const (
	nsPerUS = 1e3
	nsPerMS = 1e6
	usPerMS = 1e3
	usPerS  = 1e6
	msPerS  = 1e3
)

// Report computes the figures of all that was added so far.
func (r *Run) Report() *RunReport {
	rep := &RunReport{
		Schema:        RunSchema,
		Requests:      requestsOf(r.states),
		Errors:        maps.Clone(r.classes),
		Tokens:        RunTokens{r.tokens.input, r.tokens.output, r.tokens.cached, r.tokens.reasoning, r.tokens.media},
		ScheduleLag:   r.lag.Stats(usPerMS),
		Queue:         r.queue.Stats(usPerMS),
		TTFT:          r.lat.ttft.Stats(usPerMS),
		TPOT:          scaled(r.lat.tpot.Stats(), usPerMS),
		ITL:           r.lat.itl.Stats(usPerMS),
		E2E:           r.lat.e2e.Stats(usPerMS),
		TTFTScheduled: r.lat.ttftSched.Stats(usPerMS),
		E2EScheduled:  r.lat.e2eSched.Stats(usPerMS),
		OutputTokens:  r.lat.output.Stats(1),
		InputTokens:   r.lat.input.Stats(1),
		PrefixCache:   r.prefix.report(),
		NotSent:       maps.Clone(r.reasons),
		BeyondTrace:   RunMarked{r.beside[record.Overhead].count(), r.beside[record.WarmUp].count(), r.beside[record.Probe].count()},
		Interrupted:   r.shards.interrupted+r.shards.unclosed > 0,
		MaxLagMS:      float64(r.maxLag()) / float64(time.Millisecond),
		FirstByte:     r.lat.firstByte.Stats(usPerMS),
		FirstContent:  r.lat.content.Stats(usPerMS),
		InputOff:      r.lat.inputOff.Stats(1),
		TokenMean:     Ratio(float64(r.lat.spans)/usPerMS, float64(r.lat.steps)),
		Interval:      r.lat.interval.Stats(nsPerMS),
		Achieved:      r.lat.achieved.Stats(),
		WarmUp:        r.beside[record.WarmUp].report(),
		Probes:        r.beside[record.Probe].report(),
		ServerQueue:   r.lat.serverQueue.Stats(usPerMS),
		ServerPrefill: r.lat.prefill.Stats(usPerMS),
		ServerDecode:  r.lat.decode.Stats(usPerMS),
		Definitions:   definitions,
	}
	notes := r.addServers(rep)
	rep.FailureRate = Ratio(float64(rep.Requests.Failed), float64(rep.Requests.Total))
	rep.Retries = r.retried(rep)
	rep.rates(r)
	rep.Steady = r.load.steady(&rep.Throughput)
	if p99, ok := rep.ScheduleLag.P99.Get(); ok {
		kept := p99 <= rep.MaxLagMS
		rep.ScheduleKept = &kept
	}
	if n, ok := r.shards.planned(); ok {
		rep.Planned = &n
	}
	rep.missing = r.shards.missing(rep.Requests.Total)
	rep.Warnings = append(r.warnings(rep), notes...)
	return rep
}

func (a *aside) count() (n int64) {
	for _, k := range a.states {
		n += k
	}
	return n
}

// report is nil where there was no request.
func (a *aside) report() *RunAside {
	if a.count() == 0 {
		return nil
	}
	rep := &RunAside{Requests: requestsOf(a.states), Errors: maps.Clone(a.classes), TTFT: a.ttft.Stats(usPerMS), E2E: a.e2e.Stats(usPerMS)}
	if rep.Errors == nil {
		rep.Errors = map[string]int64{}
	}
	return rep
}

// rates fills in what is per second of the run's duration.
func (rep *RunReport) rates(r *Run) {
	us, _ := between(r.firstSend, r.lastOut)
	seconds := float64(us) / usPerS
	if r.timed {
		rep.DurationS = Some(seconds)
	}
	rep.Throughput.Requests = Ratio(float64(rep.Requests.Completed), seconds)
	in, out := rep.Tokens.Input, rep.Tokens.Output
	if out.Known > 0 {
		rep.Throughput.OutputTokens = Ratio(float64(out.Sum), seconds)
	}
	if in.Known > 0 { // embeddings and the like have no output
		rep.Throughput.TotalTokens = Ratio(float64(in.Sum+out.Sum), seconds)
	}
	if r.opts.SLO != nil {
		rep.Goodput = &RunGoodput{
			SLO: r.opts.SLO.String(), Good: r.good,
			Requests: Ratio(float64(r.good), seconds),
			Share:    Ratio(float64(r.good), float64(rep.Requests.Total)),
		}
	}
}

func requestsOf(states [record.NotSent + 1]int64) RunRequests {
	q := RunRequests{
		Completed: states[record.Completed],
		Failed:    states[record.Failed],
		Cancelled: states[record.Cancelled],
		NotSent:   states[record.NotSent],
	}
	q.Total = q.Completed + q.Failed + q.Cancelled + q.NotSent
	return q
}

// addServers fills in what the servers' metrics say, and lists the servers where
// there are several.
func (r *Run) addServers(rep *RunReport) (notes []string) {
	each, all, notes := r.serverMetrics()
	rep.Server = all
	rep.PrefixCache.counted(all)
	rep.Replicas = []RunServer{}
	if len(r.replicas) < 2 {
		return notes
	}
	for i, p := range r.replicas {
		s := RunServer{
			Replica: i, URL: r.shards.url(i), Requests: requestsOf(p.states), OutputTokens: p.tokens,
			TTFT: p.ttft.Stats(usPerMS), TPOT: scaled(p.tpot.Stats(), usPerMS), E2E: p.e2e.Stats(usPerMS),
			InputTokens: p.input, CachedTokens: p.cached, PrefixCache: p.prefix.report(), Server: each[i],
		}
		s.PrefixCache.counted(s.Server)
		rep.Replicas = append(rep.Replicas, s)
	}
	return notes
}

// counted takes over what the servers counted.
func (p *RunPrefix) counted(m *ServerMetrics) {
	if m != nil {
		p.Counted, p.CountedTokens = m.HitRate, m.Hits
	}
}

func (s *shards) url(i int) string {
	for _, h := range s.headers {
		if h.Run != nil && i < len(h.Run.URLs) {
			return h.Run.URLs[i]
		}
	}
	return ""
}

// scaled divides all figures of a distribution by unit.
func scaled(s Stats, unit float64) Stats {
	for _, v := range []*Value{&s.Mean, &s.Std, &s.Min, &s.P50, &s.P90, &s.P95, &s.P99, &s.Max} {
		v.V /= unit
	}
	return s
}

// JSON is the report as indented JSON with a final newline.
func (rep *RunReport) JSON() ([]byte, error) { return marshal(rep) }

func marshal(report any) ([]byte, error) {
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return append(b, '\n'), nil
}

// WriteJSON writes JSON's bytes to w.
func (rep *RunReport) WriteJSON(w io.Writer) error { return writeJSON(w, rep) }

func writeJSON(w io.Writer, report any) error {
	b, err := marshal(report)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// sortedNames are a table's names, the most frequent first, then by name.
func sortedNames(m map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			if m[a] > m[b] {
				return -1
			}
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
}
