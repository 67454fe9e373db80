package simserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"retrace/replay/simserver"
)

// An instant server, asked for one completion.
func Example() {
	s, err := simserver.New(simserver.Config{Model: "tiny"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	if err := s.Start("127.0.0.1:0"); err != nil {
		fmt.Println(err)
		return
	}
	defer http.DefaultClient.CloseIdleConnections()
	resp, err := http.Post(s.URL()+"/v1/completions", "application/json",
		strings.NewReader(`{"model":"tiny","prompt":[1,2,3],"max_tokens":4}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	_, usage, _ := strings.Cut(string(body), `"usage":`)
	fmt.Println(resp.Status, usage, err)
	// Output: 200 OK {"prompt_tokens":3,"total_tokens":7,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":0}},"kv_transfer_params":null} <nil>
}

func ExampleParseFaults() {
	_, err := simserver.ParseFaults("429:0.9,cut:0.2")
	fmt.Println(err)
	f, err := simserver.ParseFaults("429:0.1, cut:0.05")
	fmt.Println(f, err)
	// Output:
	// parse faults: found probabilities that add up to 1.1, expected at most 1
	// 429:0.1,cut:0.05 <nil>
}
