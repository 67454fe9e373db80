package simserver

import (
	"bufio"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scraped is a metrics page, read by the rules of the text format: families by
// name with their type, samples by name and labels.
type scraped struct {
	types   map[string]string
	samples map[string]float64
	order   []string
}

var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)$`)
)

// parseMetrics is a strict reader: each sample follows its family's HELP and
// TYPE, no family or sample comes twice.
func parseMetrics(t *testing.T, page string) scraped {
	t.Helper()
	out := scraped{types: map[string]string{}, samples: map[string]float64{}}
	if !strings.HasSuffix(page, "\n") {
		t.Fatal("the page does not end with a newline")
	}
	family, help := "", ""
	lines := bufio.NewScanner(strings.NewReader(page))
	for lines.Scan() {
		line := lines.Text()
		if m := helpLine.FindStringSubmatch(line); m != nil {
			help = m[1]
		} else if m := typeLine.FindStringSubmatch(line); m != nil {
			family = m[1]
			if _, twice := out.types[family]; twice || help != family {
				t.Fatalf("%q: twice, or after the HELP of %q", line, help)
			}
			out.types[family] = m[2]
		} else if m := sampleLine.FindStringSubmatch(line); m != nil {
			out.add(t, family, m)
		} else {
			t.Fatalf("%q is no line of the format", line)
		}
	}
	return out
}

func (s *scraped) add(t *testing.T, family string, m []string) {
	t.Helper()
	base := m[1]
	if s.types[family] == "histogram" {
		base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, "_bucket"), "_count"), "_sum")
	}
	if base != family {
		t.Fatalf("sample %s in the family %s", m[0], family)
	}
	v, err := strconv.ParseFloat(m[3], 64)
	if err != nil || math.IsNaN(v) {
		t.Fatalf("%s: value %q", m[0], m[3])
	}
	labels := strings.Split(m[2], ",")
	slices.Sort(labels)
	key := m[1] + "{" + strings.Join(labels, ",") + "}"
	if _, twice := s.samples[key]; twice {
		t.Fatalf("%s comes twice", key)
	}
	s.samples[key] = v
	s.order = append(s.order, key)
}

// get is a sample of the only model and engine.
func (s scraped) get(t *testing.T, name string, more ...string) float64 {
	t.Helper()
	labels := append([]string{`engine="0"`, `model_name="sim"`}, more...)
	slices.Sort(labels)
	v, ok := s.samples[name+"{"+strings.Join(labels, ",")+"}"]
	if !ok {
		t.Fatalf("no sample %s %v", name, more)
	}
	return v
}

func scrape(t *testing.T, s *Server, client *http.Client) scraped {
	t.Helper()
	resp, err := client.Get(s.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("content type %q", got)
	}
	return parseMetrics(t, string(page))
}

// After two equal requests of 40 words with 5 tokens each: 80 tokens queried,
// 32 of them (two blocks) hit, 10 generated.
func TestMetrics(t *testing.T) {
	s, client := started(t, Config{CacheBlocks: 1000})
	prompt := strings.Repeat("word ", 40)
	for range 2 {
		post(t, client, s.URL()+"/v1/completions", `{"prompt":"`+prompt+`","max_tokens":5}`)
	}
	m := scrape(t, s, client)
	for _, c := range []struct {
		name string
		want float64
		more []string
	}{
		{"vllm:prefix_cache_queries_total", 80, nil},
		{"vllm:prefix_cache_hits_total", 32, nil},
		{"vllm:prompt_tokens_total", 80, nil},
		{"vllm:prompt_tokens_cached_total", 32, nil},
		{"vllm:prompt_tokens_cached_by_source_total", 32, []string{`source="device"`}},
		{"vllm:prompt_tokens_cached_by_source_total", 0, []string{`source="host"`}},
		{"vllm:generation_tokens_total", 10, nil},
		{"vllm:request_success_total", 2, []string{`finished_reason="length"`}},
		{"vllm:request_success_total", 0, []string{`finished_reason="stop"`}},
		{"vllm:num_requests_running", 0, nil},
		{"vllm:num_requests_waiting", 0, nil},
		{"vllm:kv_cache_usage_perc", 0, nil},
		{"vllm:num_preemptions_total", 0, nil},
		{"vllm:request_prompt_tokens_sum", 80, nil},
		{"vllm:request_prompt_tokens_bucket", 0, []string{`le="20.0"`}},
		{"vllm:request_prompt_tokens_bucket", 2, []string{`le="50.0"`}},
		{"vllm:request_generation_tokens_bucket", 2, []string{`le="5.0"`}},
		{"vllm:request_prefill_kv_computed_tokens_sum", 48, nil},
		{"vllm:time_to_first_token_seconds_count", 2, nil},
		{"vllm:inter_token_latency_seconds_count", 8, nil},
		{"vllm:e2e_request_latency_seconds_count", 2, nil},
		{"vllm:iteration_tokens_total_sum", 40 + 8 + 4 + 4, nil},
	} {
		if got := m.get(t, c.name, c.more...); got != c.want {
			t.Errorf("%s %v = %v, want %v", c.name, c.more, got, c.want)
		}
	}
	info := slices.IndexFunc(m.order, func(k string) bool { return strings.HasPrefix(k, "vllm:cache_config_info{") })
	if info < 0 || !strings.Contains(m.order[info], `block_size="16"`) || !strings.Contains(m.order[info], `num_gpu_blocks="1001"`) {
		t.Errorf("cache_config_info is missing or wrong: %v", m.order)
	}
	checkHistograms(t, m)
}

// checkHistograms: buckets never fall, and the last is the count.
func checkHistograms(t *testing.T, m scraped) {
	t.Helper()
	last, name := 0.0, ""
	for _, key := range m.order {
		base, labels, _ := strings.Cut(key, "_bucket{")
		if labels == "" {
			continue
		}
		if base != name {
			name, last = base, 0
		}
		v := m.samples[key]
		if v < last {
			t.Errorf("%s = %v, less than the bucket before", key, v)
		}
		last = v
		if strings.Contains(labels, `le="+Inf"`) && v != m.get(t, base+"_count") {
			t.Errorf("%s = %v, the count is %v", key, v, m.get(t, base+"_count"))
		}
	}
}

// Every family is one of the real server's, of the same type.
func TestMetricNamesOfRealServer(t *testing.T) {
	page, err := os.ReadFile("../../../shared/data/vllm/metrics_sample.txt")
	if os.IsNotExist(err) {
		t.Skip("shared test data metrics_sample.txt is not here")
	} else if err != nil {
		t.Fatal(err)
	}
	real := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if m := typeLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			real[m[1]] = m[2]
		}
	}
	s, client := started(t, Config{})
	for name, kind := range scrape(t, s, client).types {
		if real[name] != kind {
			t.Errorf("%s is a %s here, %q there", name, kind, real[name])
		}
	}
}

func TestLabelEscapes(t *testing.T) {
	if got, want := label("a", "x\\y\"z\n"), `a="x\\y\"z\n"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for v, want := range map[float64]string{0: "0.0", 1: "1.0", 0.25: "0.25", 5.184393216e+09: "5184393216.0", 1e21: "1e+21"} {
		if got := string(appendFloat(nil, v)); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
