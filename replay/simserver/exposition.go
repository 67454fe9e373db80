package simserver

import (
	"math"
	"strconv"
)

// exposition writes metrics in Prometheus' text format, version 0.0.4.
type exposition struct {
	buf    []byte
	labels string // of every series: engine and model_name, rendered
}

// family opens a metric family.
func (x *exposition) family(name, kind, help string) {
	x.buf = append(x.buf, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// sample writes one line; more are further labels, rendered, or "".
func (x *exposition) sample(name, more string, v float64) {
	x.buf = append(append(append(x.buf, name...), '{'), x.labels...)
	if more != "" {
		x.buf = append(append(x.buf, ','), more...)
	}
	x.buf = append(appendFloat(append(x.buf, "} "...), v), '\n')
}

func (x *exposition) counter(name, help string, v uint64) {
	x.family(name, "counter", help)
	x.sample(name, "", float64(v))
}

func (x *exposition) gauge(name, help string, v float64) {
	x.family(name, "gauge", help)
	x.sample(name, "", v)
}

func (x *exposition) histogram(name, help string, h *histogram) {
	x.family(name, "histogram", help)
	total := uint64(0)
	for i, bound := range h.bounds {
		total += h.counts[i]
		x.sample(name+"_bucket", label("le", string(appendFloat(nil, bound))), float64(total))
	}
	x.sample(name+"_bucket", label("le", "+Inf"), float64(h.count))
	x.sample(name+"_count", "", float64(h.count))
	x.sample(name+"_sum", "", h.sum)
}

// appendFloat writes a value as Python's client does: 1.0, not 1.
func appendFloat(dst []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return append(strconv.AppendFloat(dst, v, 'f', -1, 64), ".0"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// label renders one label, escaped by the format's rules.
func label(name, value string) string {
	out := append([]byte(name), '=', '"')
	for i := range len(value) {
		switch c := value[i]; c {
		case '\\', '"':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// metrics renders the whole page.
func (e *engine) metrics() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := &exposition{labels: label("engine", "0") + "," + label("model_name", e.cfg.Model)}
	e.writeGauges(x)
	e.stats.writeCounters(x)
	e.stats.writeHistograms(x)
	e.writeInfo(x)
	return x.buf
}

func (e *engine) writeGauges(x *exposition) {
	e.inboxMu.Lock()
	waiting := e.waiting.len()
	for _, c := range e.inbox {
		waiting += len(c.seqs)
	}
	e.inboxMu.Unlock()
	used := e.pool.Len() - e.pool.Free()
	x.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", float64(len(e.running)))
	x.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", float64(waiting))
	name := "vllm:num_requests_waiting_by_reason"
	x.family(name, "gauge", "Number of requests waiting to be processed, by reason.")
	x.sample(name, label("reason", "capacity"), float64(waiting))
	x.sample(name, label("reason", "deferred"), 0)
	x.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", float64(used)/float64(e.pool.Len()))
}

func (st *stats) writeCounters(x *exposition) {
	x.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.", st.queries)
	x.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.", st.hits)
	x.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", st.preemptions)
	x.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", st.promptTokens)
	bySource := "vllm:prompt_tokens_by_source_total"
	x.family(bySource, "counter", "Number of prompt tokens by source.")
	x.sample(bySource, label("source", "local_compute"), float64(st.queries-st.hits))
	x.sample(bySource, label("source", "local_cache_hit"), float64(st.hits))
	x.sample(bySource, label("source", "external_kv_transfer"), 0)
	x.counter("vllm:external_prefix_cache_queries_total", "External prefix cache queries, in terms of number of queried tokens.", 0)
	x.counter("vllm:external_prefix_cache_hits_total", "External prefix cache hits, in terms of number of cached tokens.", 0)
	x.counter("vllm:prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).", st.hits)
	name := "vllm:prompt_tokens_cached_by_source_total"
	x.family(name, "counter", "Prefix-cache hit tokens by the cache tier that supplied them. Counted at admission.")
	for _, source := range []string{"device", "host", "p2p", "disk", "external_unspecified"} {
		hits := st.hits
		if source != "device" {
			hits = 0
		}
		x.sample(name, label("source", source), float64(hits))
	}
	x.counter("vllm:generation_tokens_total", "Number of generation tokens processed.", st.generated)
	name = "vllm:request_success_total"
	x.family(name, "counter", "Count of successfully processed requests.")
	for _, reason := range []struct {
		name  string
		count uint64
	}{{finishStop, st.stopped}, {finishLength, st.lengthEnded}, {"abort", st.aborted}, {"error", 0}, {"repetition", 0}} {
		x.sample(name, label("finished_reason", reason.name), float64(reason.count))
	}
}

func (st *stats) writeHistograms(x *exposition) {
	x.histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", &st.promptSize)
	x.histogram("vllm:request_generation_tokens", "Number of generation tokens processed.", &st.outputSize)
	x.histogram("vllm:request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.", &st.outputSize)
	x.histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", &st.iterationTokens)
	x.histogram("vllm:request_params_n", "Histogram of the n request parameter.", &st.choices)
	x.histogram("vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.", &st.maxTokens)
	x.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &st.firstToken)
	x.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", &st.interToken)
	x.histogram("vllm:request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", &st.perToken)
	x.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &st.latency)
	x.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", &st.queued)
	x.histogram("vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", &st.inference)
	x.histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", &st.prefill)
	x.histogram("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", &st.decode)
	x.histogram("vllm:request_num_preemptions", "Histogram of the number of times a request was preempted.", &st.preemptionsEach)
	x.histogram("vllm:request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding cached tokens).", &st.prefillComputed)
}

// writeInfo writes the cache's configuration as labels. As vLLM's, the number
// of blocks counts the null block too, which no request can have.
func (e *engine) writeInfo(x *exposition) {
	c := e.cfg
	x.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
	x.buf = append(x.buf, "vllm:cache_config_info{"+
		label("block_size", strconv.Itoa(c.BlockSize))+","+
		label("enable_prefix_caching", "True")+","+
		label("engine", "0")+","+
		label("kv_cache_size_tokens", strconv.Itoa(c.BlockSize*(c.CacheBlocks+1)))+","+
		label("num_gpu_blocks", strconv.Itoa(c.CacheBlocks+1))+","+
		label("prefix_caching_hash_algo", "xxhash_cbor")+"} 1.0\n"...)
}
