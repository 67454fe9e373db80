package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"retrace/record"
)

// ServerMetrics sums up what a server's /metrics said while a run went on.
// Figures that the server does not have do not exist.
type ServerMetrics struct {
	// Scrapes is the number of times that the page was read.
	Scrapes int64 `json:"scrapes"`
	// Running and Waiting are requests in the engine and in its queue, KVUsage
	// the share (0 to 1) of the KV cache in use: one value a scrape from the
	// run's first send to its last end; of several engines behind one server
	// the requests are added up, and each engine's usage is a value of its own.
	Running Stats `json:"running"`
	Waiting Stats `json:"waiting"`
	KVUsage Stats `json:"kv_cache_usage"`
	// The counters' growth, from the last scrape before the first send to the
	// last scrape of all. Queries and Hits are the prompt tokens that were
	// looked up and found in the prefix cache.
	Preemptions      Value `json:"preemptions"`
	PromptTokens     Value `json:"prompt_tokens"`
	GenerationTokens Value `json:"generation_tokens"`
	Queries          Value `json:"prefix_cache_queries"`
	Hits             Value `json:"prefix_cache_hits"`
	// HitRate is Hits by Queries.
	HitRate Value `json:"prefix_cache_hit_rate"`
	// QueriesBefore is what the server had counted before: more than 0 says
	// that its cache was in use, and may be warm.
	QueriesBefore Value `json:"prefix_cache_queries_before"`
	// Resets counts the restarts of counters, as a server's own restart brings.
	Resets int64 `json:"resets"`
}

// figureLimit is beyond all that a server counts.
const figureLimit = 1 << 53

// serverKey is a server as one shard of the run saw it.
type serverKey struct{ shard, replica int }

// serverSeries are the series of one server, by metric and name.
type serverSeries map[record.Metric]map[string][]*points

// points are one series, in the order of their times.
type points struct {
	id     string // of its labels
	times  []int64
	values []float64
}

// AddSeries takes a series of one shard's recording. Those of metrics that are
// not known (record.MetricOf) are left alone, and so are figures that these
// cannot have: below 0, or no numbers.
func (r *Run) AddSeries(shard int, s *record.Series) {
	metric := record.MetricOf(s.Name)
	replica, err := strconv.Atoi(s.Labels[record.ReplicaLabel])
	if metric == record.NoMetric || err != nil || replica < 0 || replica >= maxReplicas {
		return
	}
	key := serverKey{shard, replica}
	if r.series == nil {
		r.series = map[serverKey]serverSeries{}
	}
	if r.series[key] == nil {
		r.series[key] = serverSeries{}
	}
	r.series[key].add(metric, s)
}

func (m serverSeries) add(metric record.Metric, s *record.Series) {
	p := m.points(metric, s.Name, labelsID(s.Labels))
	for k, t := range s.Times {
		if v := s.Values[k]; v >= 0 && v <= figureLimit { // NaN is neither
			p.insert(t.Microseconds(), v)
		}
	}
}

// points are those of one series, made where there were none.
func (m serverSeries) points(metric record.Metric, name, id string) *points {
	if m[metric] == nil {
		m[metric] = map[string][]*points{}
	}
	list := m[metric][name]
	i, found := slices.BinarySearchFunc(list, id, func(p *points, id string) int { return strings.Compare(p.id, id) })
	if !found {
		list = slices.Insert(list, i, &points{id: id})
		m[metric][name] = list
	}
	return list[i]
}

// insert puts a point where its time belongs; of two at one time the later
// given stays.
func (p *points) insert(at int64, v float64) {
	i, found := slices.BinarySearch(p.times, at)
	if found {
		p.values[i] = v
		return
	}
	p.times, p.values = slices.Insert(p.times, i, at), slices.Insert(p.values, i, v)
}

// labelsID tells label sets apart.
func labelsID(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for k, v := range labels {
		parts = append(parts, strconv.Quote(k)+strconv.Quote(v))
	}
	slices.Sort(parts)
	return strings.Join(parts, "")
}

// of are the series of a metric. vLLM had two names for some at once; the one
// without "gpu_", which is the later of the two in the alphabet, counts.
func (m serverSeries) of(metric record.Metric) []*points {
	name := ""
	for n := range m[metric] {
		name = max(name, n)
	}
	return m[metric][name]
}

// scrapes are the moments at which the page was read.
func (m serverSeries) scrapes() (times []int64) {
	for _, names := range m {
		for _, list := range names {
			for _, p := range list {
				times = append(times, p.times...)
			}
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// window is the part of a run's time that counts.
type window struct{ from, to int64 }

func (w window) holds(t int64) bool { return t >= w.from && t <= w.to }

// serverSums collects ServerMetrics, of one server or of several.
type serverSums struct {
	scrapes, resets       int64
	running, waiting      Sample
	usage                 Sample
	grown                 [record.MetricGeneration + 1]Value
	before                Value
	lateStart, lateAtStop bool
}

// add takes what one server showed in the run.
func (s *serverSums) add(m serverSeries, run window) {
	times := m.scrapes()
	if len(times) == 0 {
		return
	}
	s.scrapes += int64(len(times))
	// The counters' base is the last scrape before the first send.
	base := times[0]
	for _, t := range times {
		if t <= run.from {
			base = t
		}
	}
	s.lateStart = s.lateStart || base > run.from
	s.lateAtStop = s.lateAtStop || times[len(times)-1] < run.to
	for metric := range s.grown {
		if metric := record.Metric(metric); metric.Counter() {
			s.count(metric, m.of(metric), base)
		}
	}
	if m.of(record.MetricQueries) == nil && m.of(record.MetricHits) != nil { // SGLang looks up every prompt token
		s.count(record.MetricQueries, m.of(record.MetricPrompt), base)
	}
	addUp(&s.running, m.of(record.MetricRunning), run)
	addUp(&s.waiting, m.of(record.MetricWaiting), run)
	for _, p := range m.of(record.MetricKVUsage) {
		for i, t := range p.times {
			if run.holds(t) {
				s.usage.Add(p.values[i])
			}
		}
	}
}

// count adds a counter's growth since base. A series that the first scrape did
// not have began at 0.
func (s *serverSums) count(metric record.Metric, list []*points, base int64) {
	for _, p := range list {
		grown, before := 0.0, 0.0
		for i, t := range p.times {
			v := p.values[i]
			switch {
			case t <= base:
				before = v
			case i == 0:
				grown = v
			case v < p.values[i-1]:
				s.resets++
				grown += v
			default:
				grown += v - p.values[i-1]
			}
		}
		s.grown[metric] = Some(s.grown[metric].V + grown)
		if metric == record.MetricQueries {
			s.before = Some(s.before.V + before)
		}
	}
}

// addUp takes the sum of all engines of each scrape within the run.
func addUp(to *Sample, list []*points, run window) {
	sums := map[int64]float64{}
	for _, p := range list {
		for i, t := range p.times {
			if run.holds(t) {
				sums[t] += p.values[i]
			}
		}
	}
	for _, v := range sums {
		to.Add(v)
	}
}

// report is nil where nothing was scraped.
func (s *serverSums) report() *ServerMetrics {
	if s.scrapes == 0 {
		return nil
	}
	g := &s.grown
	return &ServerMetrics{
		Scrapes: s.scrapes, Running: s.running.Stats(), Waiting: s.waiting.Stats(), KVUsage: s.usage.Stats(),
		Preemptions: g[record.MetricPreempted], PromptTokens: g[record.MetricPrompt], GenerationTokens: g[record.MetricGeneration],
		Queries: g[record.MetricQueries], Hits: g[record.MetricHits], HitRate: hitRate(g[record.MetricHits], g[record.MetricQueries]),
		QueriesBefore: s.before, Resets: s.resets,
	}
}

func hitRate(hits, queries Value) Value {
	if !hits.OK || !queries.OK {
		return Value{}
	}
	return Ratio(hits.V, queries.V)
}

// serverMetrics sums up each server and all together.
func (r *Run) serverMetrics() (each map[int]*ServerMetrics, all *ServerMetrics, notes []string) {
	each = map[int]*ServerMetrics{}
	run, ok := r.load.window()
	if !ok {
		return each, nil, nil
	}
	replicas := map[int]bool{}
	for key := range r.series {
		replicas[key.replica] = true
	}
	var total serverSums
	late := 0
	for i := range len(r.replicas) {
		if !replicas[i] {
			continue
		}
		var one serverSums
		m := r.view(i, run)
		one.add(m, run)
		total.add(m, run)
		each[i] = one.report()
		if one.lateStart || one.lateAtStop {
			late++
		}
	}
	all = total.report()
	if late > 0 {
		notes = append(notes, fmt.Sprintf("the metrics of %d of %d servers were not read before the first send or after the last end: their counters lack a part of the run",
			late, len(replicas)))
	}
	if all != nil && all.Resets > 0 {
		notes = append(notes, fmt.Sprintf("%d times a counter of a server fell: it restarted, and what it had counted since the last look is not known", all.Resets))
	}
	return each, all, notes
}
