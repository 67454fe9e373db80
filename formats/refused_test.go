package formats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData is where real files lie; tests that want them skip without.
const sharedData = "../../shared/data"

func readShared(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sharedData, name))
	if err != nil {
		t.Skipf("the real file is not here: %v", err)
	}
	return data
}

func TestRefuseRealFiles(t *testing.T) {
	for file, want := range map[string]string{
		"aiperf/aiperf_run1_profile_export.jsonl":                 "aiperf",
		"aiperf/aiperf_run1_profile_export_aiperf.csv":            "aiperf",
		"aiperf/aiperf_run1_profile_export_aiperf.json":           "aiperf",
		"bfcl/bfcl_v4_multi_turn_base_first20.json":               "questions",
		"bfcl/bfcl_v4_simple_python_first100.json":                "questions",
		"burstgpt/burstgpt_without_fails_2.LFS-POINTER.csv":       "lfs-pointer",
		"mtbench/mt_bench_question.jsonl":                         "questions",
		"otel/inference-perf_otel_parallel_requests.json":         "otel",
		"otel/inference-perf_otel_simple_chain.json":              "otel",
		"ragpulse/ragpulse_0_trace.jsonl":                         "ragpulse",
		"servegen/servegen_language_m-small_chunk-0-dataset.json": "servegen",
		"servegen/servegen_language_m-small_chunk-0-trace.csv":    "servegen",
		"tracelab/tracelab_sanitized_round_trace.jsonl":           "tracelab",
		"vllm/bench_serve_result_example.json":                    "vllm-bench",
		"vllm/bench_serve_a_block.txt":                            "vllm-bench",
		// Traces that are read are refused by nothing.
		"mooncake/conversation_trace.jsonl":     "",
		"burstgpt/BurstGPT_1_first_rows.csv":    "",
		"azure/AzureLLMInferenceTrace_code.csv": "",
	} {
		t.Run(file, func(t *testing.T) {
			data := readShared(t, file)
			for _, n := range []int{len(data), 64 << 10, 4 << 10} {
				got := ""
				if r := refuse(data[:min(n, len(data))]); r != nil {
					got = r.name
				}
				if got != want {
					t.Errorf("first %d bytes: got %q, want %q", n, got, want)
				}
			}
		})
	}
}

// The sentence says what the file is and what to do, and names the file.
func TestRefusalSentence(t *testing.T) {
	for text, want := range map[string][]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:1\n":   {"a Git LFS pointer", "git lfs pull"},
		`{"timestamp":"1","input_length":1,"hash_ids":{"history":[]}}`: {"RAGPulse", "Mooncake"},
		`{"metadata":{"x_request_id":"a"},"metrics":{}}`:               {"AIPerf", "a recording, not a trace"},
	} {
		for _, from := range []string{"", "mooncake", "burstgpt", "bailian", "sagemaker"} {
			err := importError(t, "in.x", text, Options{From: from})
			if err == nil {
				t.Errorf("%q --from %q: no error", text, from)
				continue
			}
			wantIn(t, err.Error(), append(want, "in.x")...)
		}
	}
}

// FuzzRefuse: no start of a file makes detection panic, or takes long.
func FuzzRefuse(f *testing.F) {
	for _, s := range []string{"PAR1", `{"a":[{"b":1}]}`, `[{"conversations":[`, "0,0,0,,0,0\n", "<html>", "TIMESTAMP,ContextTokens,GeneratedTokens"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		h := NewHead(head, true)
		format, err := Detect(h)
		if (format == nil) == (err == nil) {
			t.Fatalf("%q: format %v, error %v", head, format, err)
		}
	})
}

// A file that is nothing but brackets is given up at once.
func TestShapeOfDeepNesting(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 1<<18)} {
		if s := jsonShape([]byte(text)); len(s) > 2*shapeDepth+2 {
			t.Errorf("%d paths", len(s))
		}
	}
}

func TestRefuseSmall(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"{", ""},
		{"<!DOCTYPE html>\n<html>", "html"},
		{"\n  <html lang=en>", "html"},
		{"<?xml version=\"1.0\"?><Error>AccessDenied", "html"},
		{"PAR1\x15\x04", "parquet"},
		{"ARROW1\x00\x00", "arrow"},
		{"0,0,0,,0,0\n600,0.5,1.1,Gamma,0.8,2.2\n", "servegen"},
		{`{"0":{"input_tokens":"{}","output_tokens":"{}"}}`, "servegen"},
		{`[{"id":"a","conversations":[{"from":"human","value":"hi"}]}]`, "sharegpt"},
		{`[{"a":1}]`, "json-array"},
		{`{"id":"t","models":["m"],"block_size":64,"hash_id_scope":"local","requests":[]}`, "weka"},
		{`{"resourceSpans":[{"scopeSpans":[]}]}`, "otel"},
		{`{"traceId":"a","spanId":"b"}`, "otel"},
		{`{"timestamp":0,"input_length":1,"hash_ids":[1]}`, ""},
		{"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,1,2,3,API log\n", ""},
		{`{"chat_id":1,"parent_chat_id":-1,"timestamp":0.1,"input_length":3,"hash_ids":[1]}`, ""},
		{`{"captureData":{},"eventMetadata":{},"eventVersion":"0"}`, ""},
	} {
		got := ""
		if r := refuse([]byte(c.in)); r != nil {
			got = r.name
		}
		if got != c.want {
			t.Errorf("%.60q: got %q, want %q", c.in, got, c.want)
		}
	}
}
