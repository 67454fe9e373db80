package formats

import (
	"bytes"
	"regexp"
	"strings"
)

// refusal is a kind of file that people hold for a trace and that is none, or
// none that is read here. It is told by its content.
type refusal struct {
	// name is a short name of the kind.
	name string
	// what completes "the file is …"; instead says what to do.
	what, instead string
	match         func(sample) bool
}

// Error is the whole sentence, without the file's name.
func (r *refusal) Error() string { return "this is " + r.what + "; " + r.instead }

// sample is the start of a file, looked at in the ways that refusals need.
type sample struct {
	head []byte
	json shape
	// line is the first line that is not blank.
	line string
}

func newSample(head []byte) sample {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	line, _, _ := bytes.Cut(trimmed, []byte("\n"))
	s := sample{head: trimmed, line: strings.TrimRight(string(line), "\r")}
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		s.json = jsonShape(trimmed)
	}
	return s
}

// refuse tells what the file that starts with head is, where it is known to be
// no trace that can be read here; nil otherwise.
func refuse(head []byte) *refusal {
	s := newSample(head)
	if s.json[".hash_ids"] != '{' && (s.json.has(".input_length") || s.json.has(".captureData")) {
		return nil // rows of a format that is read, whatever else they have
	}
	for i := range refusals {
		if refusals[i].match(s) {
			return &refusals[i]
		}
	}
	return nil
}

const convertHint = "write its rows as Mooncake JSON lines " +
	`({"timestamp": ms, "input_length": tokens, "output_length": tokens}) and convert those`

// refusals are tried in this order.
var refusals = []refusal{
	{"lfs-pointer", "a Git LFS pointer, not the file itself",
		"run `git lfs pull` in its repository (or download the file by its raw link) and give that one",
		prefixed("version https://git-lfs.github.com/spec/")},
	{"html", "an HTML or XML page, not a trace",
		"the download probably went to a login or error page: fetch the raw file",
		isMarkup},
	{"parquet", "a Parquet file, which is not read (the Baseten agent traces come as such)",
		"write it as JSON lines first, e.g. with DuckDB: COPY (FROM 'x.parquet') TO 'x.jsonl'",
		prefixed("PAR1")},
	{"arrow", "an Arrow file, which is not read (the Baseten agent traces come as such)",
		"write it as JSON lines first, e.g. with pyarrow or DuckDB",
		prefixed("ARROW1")},
	{"servegen", "a ServeGen rate model (windows of rate, CV and law), not a list of requests",
		"sample requests from it with ServeGen itself and convert those",
		isServeGen},
	{"ragpulse", "a RAGPulse trace (hash_ids by document part, times as strings of seconds), which is not read yet",
		"write its rows as Mooncake JSON lines: times in ms, hash_ids as one list or left out",
		func(s sample) bool { return s.json[".hash_ids"] == '{' }},
	{"tracelab", "a TraceLab agent trace, which is not read yet", convertHint,
		func(s sample) bool { return s.json.has(".prefix_tokens", ".newly_append_tokens") }},
	{"weka", "a Weka agent trace (nested requests in blocks of 64 tokens), which is not read yet", convertHint,
		func(s sample) bool { return isAgentTrace(s.json, "") || isAgentTrace(s.json, "[]") }},
	{"otel", "an export of OpenTelemetry spans, which is not read yet", convertHint, isSpans},
	{"aiperf", "AIPerf's export of a run: a recording, not a trace",
		"convert the trace that the run replayed", isAIPerf},
	{"vllm-bench", "the result of a vLLM benchmark: a recording, not a trace",
		"convert the trace or data set that the benchmark ran", isVLLMBench},
	{"sharegpt", "ShareGPT conversations: a data set without times, not a trace",
		"give its requests times of arrival, then " + convertHint,
		func(s sample) bool { return s.json.has(".conversations") || s.json.has("[].conversations") }},
	{"questions", "a file of questions (BFCL, MT-Bench or the like): a data set without times, not a trace",
		"give its requests times of arrival, then " + convertHint, isQuestions},
	{"json-array", "one JSON array, and not of a kind that is known here",
		"traces are JSON lines: write one object a line, e.g. with jq -c '.[]'",
		func(s sample) bool { return s.json[""] == '[' }},
}

func prefixed(magic string) func(sample) bool {
	return func(s sample) bool { return bytes.HasPrefix(s.head, []byte(magic)) }
}

func isMarkup(s sample) bool {
	start := strings.ToLower(string(s.head[:min(len(s.head), 16)]))
	for _, tag := range []string{"<!doctype", "<html", "<?xml", "<head", "<error"} {
		if strings.HasPrefix(start, tag) {
			return true
		}
	}
	return false
}

// serveGenLine is a window of a rate model: start, rate, CV, law (empty where
// the rate is zero), and the law's two parameters.
var serveGenLine = regexp.MustCompile(`^\d+(\.\d+)?,[\d.eE+-]+,[\d.eE+-]+,[A-Za-z]*,[\d.eE+-]+,[\d.eE+-]+$`)

func isServeGen(s sample) bool {
	return serveGenLine.MatchString(s.line) || (s.json[".*.input_tokens"] == 's' && s.json[".*.output_tokens"] == 's')
}

func isAgentTrace(j shape, at string) bool {
	return j.has(at+".requests", at+".block_size") || j.has(at+".hash_id_scope")
}

func isSpans(s sample) bool {
	for _, at := range []string{"", "[]", ".spans[]", ".data[].spans[]"} {
		if s.json.has(at+".span_id") || s.json.has(at+".spanId") || s.json.has(at+".spanID") {
			return true
		}
	}
	return s.json.has(".resourceSpans") || s.json.has(".resource_spans")
}

func isAIPerf(s sample) bool {
	return strings.HasPrefix(s.line, "Metric,avg,min,max,") ||
		(s.json.has(".metadata", ".metrics") && s.json[".metrics"] == '{') ||
		(s.json[".records"] == '{' && s.json.has(".records.*.tag", ".records.*.unit"))
}

func isVLLMBench(s sample) bool {
	if strings.Contains(s.line, "= Serving Benchmark Result =") {
		return true
	}
	for _, at := range []string{"", ".result"} {
		if s.json.has(at+".request_throughput", at+".total_input_tokens") || s.json.has(at+".ttfts", at+".itls") {
			return true
		}
	}
	return false
}

func isQuestions(s sample) bool {
	for _, at := range []string{"", "[]"} {
		if s.json.has(at+".question_id") || s.json[at+".question"] == '[' || s.json[at+".question"] == 's' {
			return true
		}
	}
	return false
}
