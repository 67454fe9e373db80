package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"retrace/record"
)

// lines are samples as text, sorted.
func lines(list []sample) []string {
	var out []string
	for _, s := range list {
		var labels []string
		for k, v := range s.labels {
			labels = append(labels, k+"="+v)
		}
		slices.Sort(labels)
		out = append(out, fmt.Sprintf("%s %s %v", s.name, strings.Join(labels, ","), s.value))
	}
	slices.Sort(out)
	return out
}

func TestReadMetrics(t *testing.T) {
	long := strings.Repeat("x", metricsLine)
	for name, c := range map[string]struct {
		page string
		want []string
		err  string
	}{
		"plain": {
			page: "# HELP vllm:num_requests_running x\n# TYPE vllm:num_requests_running gauge\n" +
				"vllm:num_requests_running{engine=\"0\",model_name=\"a b,c\"} 3.0\nvllm:prefix_cache_hits_total 1.6e+01 1700000000000\n",
			want: []string{"vllm:num_requests_running engine=0,model_name=a b,c 3", "vllm:prefix_cache_hits_total  16"},
		},
		"types that contradict": {
			page: "# TYPE vllm:num_requests_running histogram\nvllm:num_requests_running 2\n",
			want: []string{"vllm:num_requests_running  2"},
		},
		"several engines, CRLF, no last newline": {
			page: "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\r\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.25",
			want: []string{"vllm:kv_cache_usage_perc engine=0 0.5", "vllm:kv_cache_usage_perc engine=1 0.25"},
		},
		"escapes": {
			page: `sglang:num_queue_reqs{a="q\"\\\nz"} 1` + "\n",
			want: []string{"sglang:num_queue_reqs a=q\"\\\nz 1"},
		},
		"no numbers":   {page: "vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\nvllm:kv_cache_usage_perc 0\n", want: []string{"vllm:kv_cache_usage_perc  0"}},
		"odd numbers":  {page: "vllm:num_requests_running -1\nvllm:num_requests_waiting 1e308\nvllm:kv_cache_usage_perc 1e-9\n", want: []string{"vllm:kv_cache_usage_perc  1e-09"}},
		"others alone": {page: "# TYPE up gauge\nup 1\n" + long + long + "\n"},
		"long foreign line": {
			page: long + "\nvllm:num_requests_running 1\n", want: []string{"vllm:num_requests_running  1"},
		},
		"empty":           {page: ""},
		"blank":           {page: "\n\n  \n"},
		"HTML":            {page: "<!DOCTYPE html>\n<html><body>log in</body></html>\n", err: errNoPage.Error()},
		"JSON":            {page: `[{"gpuMemUsage": 1, "iter": 2}]`, err: errNoPage.Error()},
		"broken sample":   {page: "vllm:num_requests_running{engine=\"0\" 3\n", err: "parse metrics"},
		"no value":        {page: "vllm:num_requests_running {}\n", err: "parse metrics"},
		"long known line": {page: "vllm:num_requests_running{a=\"" + long + "\"} 1\n", err: "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readMetrics(strings.NewReader(c.page))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(lines(got), c.want) {
				t.Errorf("got %q (%v), want %q", lines(got), err, c.want)
			}
		})
	}
}

// endless is a page without an end, of one line after the other.
type endless struct {
	line string
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.line[(e.read+int64(i))%int64(len(e.line))]
	}
	e.read += int64(len(p))
	return len(p), nil
}

func TestReadMetricsBounds(t *testing.T) {
	for line, want := range map[string]error{
		"some_metric{a=\"b\"} 1\n":        errPageTooLarge,
		"x":                               errPageTooLarge,
		"vllm:num_requests_running{} 1\n": errManySamples,
	} {
		r := &endless{line: line}
		if _, err := readMetrics(r); !errors.Is(err, want) {
			t.Errorf("endless %q: %v, want %v", line, err, want)
		}
		if r.read > metricsPage+metricsLine {
			t.Errorf("endless %q: %d bytes read", line, r.read)
		}
	}
	if _, err := readMetrics(io.MultiReader(strings.NewReader("vllm:num_requests_running 1\n"), brokenReader{})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a page that breaks off: %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestReadMetricsVLLM: a real server's page; the figures were read off by eye.
func TestReadMetricsVLLM(t *testing.T) {
	f, err := os.Open("../../shared/data/vllm/metrics_sample.txt")
	if err != nil {
		t.Skip("no ../shared/data/vllm/metrics_sample.txt")
	}
	defer f.Close()
	list, err := readMetrics(f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[record.Metric]float64{}
	for _, s := range list {
		got[record.MetricOf(s.name)] += s.value
	}
	t.Log(lines(list))
	if len(got) != 8 || got[record.MetricQueries] <= got[record.MetricHits] {
		t.Errorf("got %v", got)
	}
}

func FuzzReadMetrics(f *testing.F) {
	for _, page := range []string{
		"", "vllm:num_requests_running 1\n", "vllm:num_requests_running{engine=\"0\"} NaN\n", "# TYPE x gauge\nx 1\n",
		"vllm:kv_cache_usage_perc{a=\"\\\"\"} 1 2\r\n", "<html>", "sglang:token_usage{\xff=\"\"} 0x1p-2\n",
		"vllm:prompt_tokens_total 1 # {trace=\"1\"} 2\n", "llamacpp:requests_deferred{a=\"1\",a=\"2\"} 3\n",
	} {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		list, err := readMetrics(strings.NewReader(page))
		if err != nil && list != nil {
			t.Errorf("%d figures beside the error %v", len(list), err)
		}
		for _, s := range list {
			if record.MetricOf(s.name) == record.NoMetric || math.IsNaN(s.value) || s.value < 0 || s.value > figureLimit {
				t.Errorf("took %v", s)
			}
		}
	})
}
