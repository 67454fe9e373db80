package prompt_test

import (
	"fmt"

	"retrace/record"
	"retrace/replay/prompt"
)

// Two requests that share their first block of eight tokens and part in the second.
func Example() {
	header := record.Header{BlockSize: 8, Namespace: "5d41402abc4b2a76"}
	maker, err := prompt.New(prompt.Config{Namespace: header.Namespace, BlockSize: header.BlockSize})
	if err != nil {
		fmt.Println(err)
		return
	}
	planner := prompt.NewPlanner(header)
	for row, blocks := range [][]uint64{{0, 1}, {0, 2}} {
		r := record.NewRequest()
		r.Row, r.InputTokens, r.Blocks = int64(row), 11, blocks
		p, err := planner.Plan(&r)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(maker.AppendTokens(nil, p)))
		fmt.Println(string(maker.AppendText(nil, p)))
	}
	// Output:
	// [25490,16447,14853,24989,3826,23708,31104,30624,25491,25421,17325]
	// ensemble maximum national vertical social jack products under ensure sign tail
	// [25490,16447,14853,24989,3826,23708,31104,30624,25492,16666,27366]
	// ensemble maximum national vertical social jack products under enter errors since
}

// A session whose turns hold only what is new: 520 tokens, answered by 132,
// then 24 more.
func ExamplePlanner() {
	planner := prompt.NewPlanner(record.Header{BlockSize: 512, Turns: "increment"})
	for row, turn := range []struct{ input, output int64 }{{520, 132}, {24, 80}} {
		r := record.NewRequest()
		r.Row, r.Session, r.Increment = int64(row), "s1", true
		r.InputTokens, r.OutputTokens = turn.input, turn.output
		p, err := planner.Plan(&r)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(p.Tokens())
	}
	// Output:
	// 520
	// 676
}

// The same prompt of 48 tokens twice: its last token is always computed, so a
// server with blocks of 16 gives back two of its three blocks.
func ExamplePredictor() {
	maker, err := prompt.New(prompt.Config{BlockSize: 512})
	if err != nil {
		fmt.Println(err)
		return
	}
	predictor, err := prompt.NewPredictor(prompt.PredictorConfig{Maker: maker, BlockSize: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := prompt.NewPrompt(prompt.Segment{Kind: prompt.Block, Key: 7, N: 48})
	fmt.Println(predictor.Add(p), predictor.Add(p))
	fmt.Println(predictor.Totals())
	// Output:
	// 0 32
	// 32 96
}
