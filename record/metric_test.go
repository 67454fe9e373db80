package record_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"retrace/record"
)

func TestMetricOf(t *testing.T) {
	for name, want := range map[string]record.Metric{
		"vllm:num_requests_waiting":           record.MetricWaiting,
		"vllm:num_requests_waiting_by_reason": record.NoMetric,
		"vllm:gpu_cache_usage_perc":           record.MetricKVUsage,
		"sglang:cached_tokens_total":          record.MetricHits,
		"trtllm_num_requests_running":         record.MetricRunning,
		"llamacpp:tokens_predicted_total":     record.MetricGeneration,
		"process_cpu_seconds_total":           record.NoMetric,
		"":                                    record.NoMetric,
	} {
		if got := record.MetricOf(name); got != want {
			t.Errorf("%s: metric %d, want %d", name, got, want)
		}
	}
	for m, counter := range map[record.Metric]bool{
		record.NoMetric: false, record.MetricRunning: false, record.MetricWaiting: false, record.MetricKVUsage: false,
		record.MetricQueries: true, record.MetricHits: true, record.MetricPreempted: true, record.MetricPrompt: true, record.MetricGeneration: true,
	} {
		if m.Counter() != counter {
			t.Errorf("metric %d: counter %v", m, m.Counter())
		}
	}
}

// TestMetricOfVLLM: a real server's page has each metric under its name and
// with the type that is taken for granted.
func TestMetricOfVLLM(t *testing.T) {
	f, err := os.Open("../../shared/data/vllm/metrics_sample.txt")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/vllm/metrics_sample.txt")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[record.Metric]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 4 || fields[1] != "TYPE" {
			continue
		}
		m := record.MetricOf(fields[2])
		if m == record.NoMetric {
			continue
		}
		found[m] = true
		if (fields[3] == "counter") != m.Counter() {
			t.Errorf("%s is a %s", fields[2], fields[3])
		}
	}
	if len(found) != 8 {
		t.Errorf("%d of 8 metrics found", len(found))
	}
}
