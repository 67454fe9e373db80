package tokenizer_test

import (
	"fmt"
	"log"
	"strings"

	"retrace/hashing/tokenizer"
)

// A tokenizer of two merges, and one special token.
func Example() {
	const file = `{
		"added_tokens": [{"id": 5, "content": "<s>", "special": true}],
		"decoder": {"type": "ByteLevel"},
		"model": {
			"type": "BPE",
			"vocab": {"n": 0, "o": 1, "w": 2, "ow": 3, "now": 4},
			"merges": [["o", "w"], ["n", "ow"]]
		}
	}`
	t, err := tokenizer.Read(strings.NewReader(file))
	if err != nil {
		log.Fatal(err)
	}
	ids := t.Encode(nil, "<s>nownoow")
	text, err := t.Decode(nil, ids)
	fmt.Println(ids, string(text), err)
	fmt.Println(t.VocabSize(), t.Ordinary(4), t.Ordinary(5))
	// Output:
	// [5 4 0 1 3] <s>nownoow <nil>
	// 6 true false
}
