package analysis

// definitions are those of RunReport's figures, in its JSON itself.
var definitions = map[string]string{
	"percentiles":            "exact, by linear interpolation between closest ranks; std is of the population",
	"means":                  "ttft, tpot and e2e have one value a request; itl one a gap, so that long answers weigh more; tpot_token_mean one weight a token",
	"duration_s":             "first send to last output of all completed requests",
	"throughput":             "completed requests and their tokens, by duration_s: the tail in which the server drains is in it; tokens in all are those of text and media together",
	"steady":                 "requests whose last output lies from a tenth of the time of sending after the first send to the last send, by the window's length",
	"ttft_ms":                "send to first output (content, reasoning or tool call)",
	"tpot_ms":                "(last output - first output) / (output tokens - 1), one value a request, from two tokens on",
	"tpot_token_mean_ms":     "sum of (last output - first output) / sum of (output tokens - 1), over the requests of tpot_ms",
	"itl_ms":                 "gaps between streamed outputs, of all requests together, whatever their tokens",
	"token_interval_ms":      "each gap divided by its tokens, one value a token, of the requests whose server told the tokens of every gap",
	"e2e_ms":                 "send to last output",
	"schedule_lag_ms":        "send - the later of the scheduled time and the grant of the slot, of all requests sent",
	"queue_ms":               "grant of the slot - scheduled time, of all requests sent",
	"output_tokens_achieved": "output tokens / output tokens asked for, one value a request",
	"input_tokens_off":       "prompt tokens as the server counted - prompt tokens wanted",
	"goodput":                "completed requests that kept every limit; share is of all requests, failed ones included",
	"prefix_cache":           "predicted: what an endless cache, empty at the start, would hit; observed: cached tokens in the answers' usage; server: growth of the servers' counters from before the first send to after the last end",
	"server_metrics":         "gauges: one value a scrape between the first send and the last end; counters: their growth around the run",
}
