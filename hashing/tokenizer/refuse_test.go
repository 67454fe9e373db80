package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// small is a tokenizer.json of three bytes, with some parts replaced.
func small(model string, parts ...string) string {
	if model == "" {
		model = `"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]`
	}
	return "{" + strings.Join(append(parts, `"model":{`+model+`}`), ",") + "}"
}

// TestReadRefuses names what is wrong or not supported.
func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"nothing":               {"", "found the end, expected '{'"},
		"not JSON":              {"hello", "byte 0: found 'h'"},
		"cut short":             {`{"model":{"vocab":{"a":0`, "found the end"},
		"more behind it":        {small("") + "x", "found more behind the object"},
		"no model":              {`{"version":"1.0"}`, `found no "model"`},
		"not UTF-8":             {"{\"a\":\"\xff\"}", "UTF-8"},
		"deep nesting":          {`{"decoder":` + strings.Repeat("[", 100), "nested"},
		"Unigram":               {`{"model":{"type":"Unigram","vocab":[["a",0]]}}`, `type "Unigram" is not supported`},
		"WordPiece":             {`{"model":{"type":"WordPiece"}}`, `type "WordPiece" is not supported`},
		"no vocab":              {small(`"merges":[]`), "found no vocab"},
		"no merges":             {small(`"vocab":{"a":0}`), "found no merges"},
		"id twice":              {small(`"vocab":{"a":0,"b":0},"merges":[]`), `id 0 is that of "a" and of "b"`},
		"token twice":           {small(`"vocab":{"a":0,"a":1},"merges":[]`), "found ids 0 and 1"},
		"vocab twice":           {small(`"vocab":{},"vocab":{},"merges":[]`), "vocab twice"},
		"huge id":               {small(`"vocab":{"a":4000000000},"merges":[]`), "too large"},
		"huger id":              {small(`"vocab":{"a":40000000000},"merges":[]`), "above"},
		"negative id":           {small(`"vocab":{"a":-1},"merges":[]`), "whole number"},
		"merge of no token":     {small(`"vocab":{"a":0},"merges":["a b"]`), `merge 0: "b" is not in vocab`},
		"merge into no token":   {small(`"vocab":{"a":0,"b":1},"merges":["a b"]`), `merge 0: "ab" is not in vocab`},
		"merge of three":        {small(`"vocab":{"a":0},"merges":["a a a"]`), "expected two tokens and one space"},
		"merge list of one":     {small(`"vocab":{"a":0},"merges":[["a"]]`), "found 1 parts"},
		"dropout":               {small(`"dropout":0.1,"vocab":{"a":0},"merges":[]`), "dropout 0.1 is not supported"},
		"suffixes":              {small(`"end_of_word_suffix":"</w>","vocab":{"a":0},"merges":[]`), "end_of_word_suffix"},
		"prefixes":              {small(`"continuing_subword_prefix":"##","vocab":{"a":0},"merges":[]`), "continuing_subword_prefix"},
		"normalizer":            {small("", `"normalizer":{"type":"BertNormalizer"}`), `normalizer "BertNormalizer" is not supported`},
		"normalizer by pattern": {small("", `"normalizer":{"type":"Replace","pattern":{"Regex":"a"},"content":"b"}`), "Replace"},
		"normalizers that swell": {small("", `"normalizer":{"type":"Sequence","normalizers":[`+strings.TrimSuffix(
			strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 7), ",")+`]}`), "grow to 128 times"},
		"a long prefix": {small("", `"normalizer":{"type":"Prepend","prepend":"`+strings.Repeat("x", 65)+`"}`), "65 bytes"},
		"pre-tokenizer": {small("", `"pre_tokenizer":{"type":"Whitespace"}`), `pre-tokenizer "Whitespace" is not supported`},
		"behind ByteLevel": {small("", `"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]}`),
			"found another one behind it"},
		"look-behind":     {withPattern(`(?<=a)b`), `the group (?<=a)b… is not supported`},
		"other look":      {withPattern(`a(?=b)`), `is not supported`},
		"back reference":  {withPattern(`(a)\1`), `\1 is not supported`},
		"possessive":      {withPattern(`a++`), "invalid nested repetition"},
		"lazy":            {withPattern(`a+?b`), "short repetitions"},
		"loop of a group": {withPattern(`(?:ab)*`), "repeating"},
		"endless loops":   {withPattern(`a*a*a*a*b`), "4 open repetitions"},
		"set in a set":    {withPattern(`[a[b]]`), "sets within sets"},
		"sets cut":        {withPattern(`[a&&b]`), "sets within sets"},
		"word boundary":   {withPattern(`\bx`), `\b is not supported`},
		"a long pattern":  {withPattern(strings.Repeat("a", 10000)), "at most 8192"},
		"behavior": {small("", `"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Odd"}`),
			`behavior "Odd" is not supported`},
		"no pattern":            {small("", `"pre_tokenizer":{"type":"Split","behavior":"Isolated"}`), "found no pattern"},
		"Metaspace":             {small("", `"pre_tokenizer":{"type":"Metaspace","replacement":""}`), "expected one character"},
		"post-processor":        {small("", `"post_processor":{"type":"BertProcessing"}`), `post-processor "BertProcessing" is not supported`},
		"template without text": {small("", `"post_processor":{"type":"TemplateProcessing","single":[]}`), "found no text"},
		"template without token": {small("", `"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]}`),
			`"x" is not among its special tokens`},
		"decoder":             {small("", `"decoder":{"type":"CTC"}`), `decoder "CTC" is not supported`},
		"added id of another": {small("", `"added_tokens":[{"id":1,"content":"<s>"}]`), `its id 1 is that of "b" too`},
		"added under two ids": {small("", `"added_tokens":[{"id":9,"content":"a"}]`), "found id 9, and 0"},
		"added far away":      {small("", `"added_tokens":[{"id":4000000000,"content":"z"}]`), "too large"},
	} {
		if _, err := Read(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// withPattern is a small tokenizer that splits at a pattern.
func withPattern(expr string) string {
	quoted, _ := json.Marshal(expr) // a string always can be
	return small("", fmt.Sprintf(`"pre_tokenizer":{"type":"Split","pattern":{"Regex":%s},"behavior":"Isolated"}`, quoted))
}
