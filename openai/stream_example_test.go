package openai_test

import (
	"fmt"
	"strings"

	"retrace/openai"
)

func ExampleStream() {
	body := "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n" +
		"data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n" +
		"data: [DONE]\n\n"
	events := openai.NewEventReader(strings.NewReader(body), 0)
	stream := openai.NewStream()
	stream.Capture = true
	for {
		ev, err := events.Next()
		if err != nil {
			break
		}
		for range stream.Feed(ev) {
			fmt.Println("an output")
		}
	}
	verdict, _ := stream.Verdict(nil)
	fmt.Println(verdict == openai.Whole, string(stream.Text()), stream.Usage.Completion, stream.FinishReason())
	// Output:
	// an output
	// an output
	// true Hello 2 stop
}
