package record

// Metric is what a figure of a server's /metrics measures, whatever the engine
// calls it.
type Metric uint8

// The metrics that are known. A counter only grows, until its server restarts;
// the others are gauges.
const (
	NoMetric         Metric = iota
	MetricRunning           // requests that the engine works on
	MetricWaiting           // requests in the engine's queue
	MetricKVUsage           // share of the KV cache in use, 0 to 1
	MetricQueries           // counter: prompt tokens looked up in the prefix cache
	MetricHits              // counter: prompt tokens found in the prefix cache
	MetricPreempted         // counter: preemptions, or retractions
	MetricPrompt            // counter: prompt tokens
	MetricGeneration        // counter: generated tokens
)

// ReplicaLabel is the label that a recording's Series has beyond the server's
// own: the index of the URL (Result.Replica).
const ReplicaLabel = "replica"

// metricNames are the names of the engines. vLLM's are of 0.32, those with
// "gpu_" of versions before 0.10; SGLang counts each prompt token as looked up;
// llama.cpp has no prefix-cache counter, trtllm-serve no counter of tokens.
var metricNames = map[string]Metric{
	"vllm:num_requests_running":           MetricRunning,
	"vllm:num_requests_waiting":           MetricWaiting,
	"vllm:kv_cache_usage_perc":            MetricKVUsage,
	"vllm:gpu_cache_usage_perc":           MetricKVUsage,
	"vllm:prefix_cache_queries_total":     MetricQueries,
	"vllm:prefix_cache_hits_total":        MetricHits,
	"vllm:gpu_prefix_cache_queries_total": MetricQueries,
	"vllm:gpu_prefix_cache_hits_total":    MetricHits,
	"vllm:num_preemptions_total":          MetricPreempted,
	"vllm:prompt_tokens_total":            MetricPrompt,
	"vllm:generation_tokens_total":        MetricGeneration,

	"sglang:num_running_reqs":             MetricRunning,
	"sglang:num_queue_reqs":               MetricWaiting,
	"sglang:token_usage":                  MetricKVUsage,
	"sglang:cached_tokens_total":          MetricHits,
	"sglang:num_retracted_requests_total": MetricPreempted,
	"sglang:prompt_tokens_total":          MetricPrompt,
	"sglang:generation_tokens_total":      MetricGeneration,

	"trtllm_num_requests_running": MetricRunning,
	"trtllm_num_requests_waiting": MetricWaiting,
	"trtllm_kv_cache_utilization": MetricKVUsage,

	"llamacpp:requests_processing":    MetricRunning,
	"llamacpp:requests_deferred":      MetricWaiting,
	"llamacpp:kv_cache_usage_ratio":   MetricKVUsage,
	"llamacpp:prompt_tokens_total":    MetricPrompt,
	"llamacpp:tokens_predicted_total": MetricGeneration,
}

// MetricOf says what the metric of that name measures, NoMetric where it is
// none of those that are known.
func MetricOf(name string) Metric { return metricNames[name] }

// Counter says whether the metric only grows.
func (m Metric) Counter() bool { return m >= MetricQueries }
