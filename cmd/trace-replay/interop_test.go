package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"retrace/record"
	"retrace/replay/simserver"
)

// counted is what a server has to count over a whole trace.
type counted struct{ requests, prompt, output, hits int64 }

// TestServerCounts makes the checks of interop/vllm.py against the built-in
// server: each prompt and answer is as long as wanted, and the prefix hits are
// the predicted ones in all, by moments, and in the server's metrics. The sums
// are those of a separate program that cuts the rows' hash ids into blocks of
// 32 tokens; vLLM itself counted the same for the Mooncake trace.
func TestServerCounts(t *testing.T) {
	for _, c := range []struct {
		trace string
		want  counted
		args  []string
	}{
		// One at a time, for its moments are too close to tell them apart.
		{"../../fixtures/mooncake_sample.jsonl", counted{65, 68_160, 968, 37_888}, []string{"--speed", "1000", "--max-concurrency", "1"}},
		// 3 s from moment to moment, some nine requests in each.
		{"../../../shared/data/mooncake/conversation_trace.jsonl", counted{200, 671_702, 3_097, 122_208}, []string{"--speed", "20"}},
	} {
		for mode, flags := range map[string][]string{
			"tokens": {"--prompt", "tokens"},
			"text":   {"--prompt", "text"},
			"chat":   {"--api", "chat"},
		} {
			t.Run(filepath.Base(c.trace)+"/"+mode, func(t *testing.T) {
				t.Parallel()
				if _, err := os.Stat(c.trace); err != nil {
					t.Skip("no ", c.trace)
				}
				serverCounts(t, c.want, append(append([]string{c.trace}, c.args...), flags...))
			})
		}
	}
}

func serverCounts(t *testing.T, want counted, args []string) {
	t.Helper()
	server, err := simserver.New(simserver.Config{BlockSize: 32, ChatTemplateTokens: 8, Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, list := recorded(t, append(args, "--url", server.URL(), "--from", "mooncake", "--limit", "200", "--ignore-eos",
		"--max-input-tokens", "4096", "--max-output-tokens", "16")...)
	got, predicted, queries, hits := counted{}, int64(0), int64(0), int64(0)
	moments := map[time.Duration]int64{}
	for _, r := range list {
		queries += r.PromptTokens
		hits += max(r.CachedTokens, 0)
		if r.Mark != 0 { // the probe for the template
			continue
		}
		if r.State != record.Completed || r.PromptTokens != r.WantedInput || r.CompletionTokens != r.WantedOutput {
			t.Errorf("request %s %v: %d prompt tokens, want %d; %d output tokens, want %d",
				r.ID, r.State, r.PromptTokens, r.WantedInput, r.CompletionTokens, r.WantedOutput)
		}
		got = counted{got.requests + 1, got.prompt + r.PromptTokens, got.output + r.CompletionTokens, got.hits + r.CachedTokens}
		predicted += r.PredictedHit
		moments[r.Scheduled] += r.CachedTokens - r.PredictedHit
	}
	if got != want || predicted != want.hits {
		t.Errorf("the server counted %+v, want %+v; predicted hits %d", got, want, predicted)
	}
	for at, by := range moments {
		if by != 0 {
			t.Errorf("at %v the hits are %d off the predicted", at, by)
		}
	}
	if q, h := counter(t, server.URL(), "vllm:prefix_cache_queries_total"), counter(t, server.URL(), "vllm:prefix_cache_hits_total"); q != queries || h != hits {
		t.Errorf("the server's metrics have %d queries and %d hits, its answers %d and %d", q, h, queries, hits)
	}
}

// counter reads one figure of a server's metrics.
func counter(t *testing.T, url, name string) int64 {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // read to its end
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(page), "\n"+name+"{")
	line, _, _ = strings.Cut(line, "\n")
	n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return int64(n)
}
