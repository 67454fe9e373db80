package formats_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"retrace/formats"
)

func ExampleOpen() {
	rows := `{"timestamp": 5000, "input_length": 700, "output_length": 20, "hash_ids": [0, 1]}
{"timestamp": 4000, "input_length": 600, "output_length": 10, "hash_ids": [0, 2]}`
	trace, err := formats.Open([]string{"-"}, formats.Options{Stdin: strings.NewReader(rows)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer trace.Close()
	fmt.Println(trace.Header.Source, "blocks of", trace.Header.BlockSize, "from", trace.Header.Origin)
	for r, err := range trace.Requests() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("row", r.Row, "at", r.Arrival, r.InputTokens, r.OutputTokens, r.Blocks)
	}
	// Output:
	// mooncake blocks of 512 from 4s
	// row 1 at 0s 600 10 [0 2]
	// row 0 at 1s 700 20 [0 1]
}

func ExampleConvert() {
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	trace := filepath.Join(dir, "a.trace")
	source := `{"timestamp":5.0,"input_length":1e2,"output_length":null,"tier":"gold"}`
	o := formats.Options{Stdin: strings.NewReader(source)}
	if _, err := formats.Convert([]string{"-"}, o, formats.Target{Path: trace}); err != nil {
		fmt.Println(err)
		return
	}
	// The way back gives every literal as it stood.
	var out bytes.Buffer
	c, err := formats.Convert([]string{trace}, formats.Options{}, formats.Target{Path: "-", Format: "mooncake", Stdout: &out})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(out.String())
	fmt.Println(c.Figures.Requests, "request of", c.Figures.Input, "tokens")
	// Output:
	// {"timestamp":5.0,"input_length":1e2,"tier":"gold","output_length":null}
	// 1 request of 100 tokens
}

func ExampleDetect() {
	head := formats.NewHead([]byte(`{"timestamp":0,"input_length":5,"hash_ids":[1]}`), true)
	f, err := formats.Detect(head)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Name, f.Unit)
	_, err = formats.Detect(formats.NewHead([]byte(`[{"a":1}]`), true))
	fmt.Println(err)
	// Output:
	// mooncake 1ms
	// this is one JSON array, and not of a kind that is known here; traces are JSON lines: write one object a line, e.g. with jq -c '.[]'
}
